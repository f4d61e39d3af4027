package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// three lists the members of a usual session: architect, developer and reviewer.
var three = []string{"lead=architect", "ann=developer", "rex=reviewer"}

// quietTeam returns the same members as agents that only read.
func quietTeam() string { return listening("lead", "ann", "rex") }

// SDK agents assign, do, review and revise a task until it is approved. The test runs with and
// without require_review, and with and without a new id for each revision.
//
// Rows: C-02, C-05, C-10, C-11, C-15, C-16, C-65, C-73, C-74, C-83, C-85, C-99, C-100, T-27.
func TestSessionLoop(t *testing.T) {
	t.Parallel()
	for _, required := range []bool{true, false} {
		for _, renamed := range []bool{false, true} {
			t.Run(fmt.Sprintf("required=%t renamed=%t", required, renamed), func(t *testing.T) {
				t.Parallel()
				goRound(t, required, renamed)
			})
		}
	}
}

func goRound(t *testing.T, required, renamed bool) {
	sessionID := sessionOf("loop", fmt.Sprintf("require_review = %t", required), three...)
	architect := "architect -tasks 1 -developers ann -reviewers rex -scope src/**"
	if renamed {
		architect += " -new-id"
	}
	s := newSession(t, playing(t, "lead", architect)+playing(t, "ann", "developer -slow 60ms")+
		playing(t, "rex", "reviewer -request-changes 1")+sessionID).up("--json", "--exit-when-idle")
	require.Equal(t, cli.ExitOK, s.await())
	require.Contains(t, s.lines("lead", control.StreamOut), "all 1 tasks are approved")

	// after a restart all of it can be read
	s.write("orchestrator.hcl", quick+quietTeam()+sessionID)
	s.up("--json")
	s.waitForEvents(1, events.AgentStarted, "rex")
	p := s.proceedings("loop")
	s.requireHeard(p, "lead", "ann", "rex")
	round := []string{
		"lead>ann task_assignment", "ann>lead acknowledgment", "ann>lead task_progress", "ann>lead task_progress", "ann>lead task_progress",
		"ann>lead task_completion completed", "lead>rex review_request",
	}
	want := append(append(append([]string{}, round...), "rex>lead review_result changes_requested"), round...)
	require.Equal(t, append(want, "rex>lead review_result approved"), types(p.said))
	requireChained(t, p)
	s.requireLogged(p, "lead", "ann", "rex")

	second := "task-1"
	if renamed {
		second = "task-1.2"
		require.Equal(t, "task-1", p.task(t, second).Revises)
	}
	require.Equal(t, second, p.said[8].task())
	attempts := p.said[8].body.Task.Context.Attempts
	require.Len(t, attempts, 1)
	require.Equal(t, session.VerdictChangesRequested, attempts[0].Outcome)
	require.Contains(t, attempts[0].Feedback, "fill the gap")
	require.Equal(t, 2, p.said[15].body.Findings[0].Fixed)
	for _, task := range p.Tasks {
		require.Equal(t, []string{wire.PhaseOver, string(wire.TaskDone)}, []string{task.Phase, string(task.State)}, task.TaskID)
		require.Equal(t, 2, p.Reviews[1].Iteration)
	}
	last := p.task(t, second)
	require.Equal(t, 2, last.Iteration)
	require.Len(t, last.Findings, 1)
	require.Equal(t, []int{1, 2}, []int{last.Findings[0].Found, last.Findings[0].Fixed})
	require.Equal(t, []string{session.VerdictChangesRequested, session.VerdictApproved}, []string{p.Reviews[0].Verdict, p.Reviews[1].Verdict})
	s.requireShown(second)
	s.stop()
}

// requireChained requires one chain with rising sequence numbers, in which answers refer to
// their message.
func requireChained(t *testing.T, p *proceedings) {
	t.Helper()
	answers := make(map[string]string) // the last assignment and request, by recipient
	for i, u := range p.said {
		require.Equal(t, p.said[0].Chain, u.Chain)
		require.NotEmpty(t, u.Chain)
		require.Empty(t, u.Refused)
		if i > 0 {
			require.Greater(t, u.Sequence, p.said[i-1].Sequence)
		}
		switch u.Type {
		case session.TypeTaskAssignment, session.TypeReviewRequest:
			answers[u.To.AgentID] = u.MessageID
		case session.TypeAcknowledgment, session.TypeTaskCompletion, session.TypeReviewResult:
			require.Equal(t, answers[u.From.AgentID], u.ReplyTo, u.Type)
		}
	}
}

// requireLogged requires that the log has every message unchanged, with only its own members
// added.
func (s *stage) requireLogged(p *proceedings, names ...string) {
	s.t.Helper()
	lines := make(map[string]string)
	for _, name := range names {
		for _, u := range s.tapped(name + ".said") {
			lines[u.MessageID] = u.text
		}
	}
	require.Len(s.t, lines, len(p.said), "nothing else was said")
	for _, u := range p.said {
		require.JSONEq(s.t, u.text, logEntry(s.t, u.text, lines[u.MessageID]))
	}
}

// requireShown requires that the text output shows the same conversation.
func (s *stage) requireShown(last string) {
	s.t.Helper()
	shown := s.ask("session", "show", "loop", "--all")
	require.Regexp(s.t, `(?m)^`+last+`  .*  iteration 2 of 3  by ann`, shown)
	require.NotContains(s.t, shown, "open findings")
	for pattern, times := range map[string]int{
		` lead -> ann  +task_assignment`:                                2,
		` └─ ann -> lead  +acknowledgment`:                              2,
		` └─ ann -> lead  +task_completion  (task-1\S*: )?completed`:    2,
		`task_progress .*75%`:                                           2,
		` └─ rex -> lead  +review_result +(task-1: )?changes_requested`: 1,
		` └─ rex -> lead  +review_result +(task-1.2: )?approved`:        1,
		`(?m)^  1 finding is fixed$`:                                    1,
		`(?m)^chain `:                                                   1,
		`(?m)^rex +reviewer +idle +0  -$`:                               1,
		`gap  src/task-1\S*:1  something is missing`:                    1,
	} {
		require.Len(s.t, regexpAll(pattern, shown), times, "%s in\n%s", pattern, shown)
	}
	require.Len(s.t, strings.Fields(s.ask("session", "show", "loop", "-q")), 16)
}

func regexpAll(pattern, text string) []string {
	return regexp.MustCompile(pattern).FindAllString(text, -1)
}
