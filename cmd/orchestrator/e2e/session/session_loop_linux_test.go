package session

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// three lists the members of a usual session: architect, developer and reviewer.
var three = []string{"lead=architect", "ann=developer", "rex=reviewer"}

// quietTeam returns the same members as agents that only read.
func quietTeam() string { return stage.Readers("lead", "ann", "rex") }

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
		playing(t, "rex", "reviewer -request-changes 1")+sessionID).Up("--json", "--exit-when-idle")
	require.Equal(t, cli.ExitOK, s.Await())
	require.Contains(t, s.Lines("lead", control.StreamOut), "all 1 tasks are approved")

	// after a restart all of it can be read
	s.Write("orchestrator.hcl", stage.QuickStop+quietTeam()+sessionID)
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "rex")
	p := proceedingsOf(s, "loop")
	requireHeard(s, p, "lead", "ann", "rex")
	round := []string{
		"lead>ann task_assignment", "ann>lead acknowledgment", "ann>lead task_progress", "ann>lead task_progress", "ann>lead task_progress",
		"ann>lead task_completion completed", "lead>rex review_request",
	}
	want := append(append(append([]string{}, round...), "rex>lead review_result changes_requested"), round...)
	require.Equal(t, append(want, "rex>lead review_result approved"), types(p.said))
	requireChained(t, p)
	requireLogged(s, p, "lead", "ann", "rex")

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
		require.Equal(t, []string{session.PhaseOver, string(wire.TaskDone)}, []string{task.Phase, string(task.State)}, task.TaskID)
		require.Equal(t, 2, p.Reviews[1].Iteration)
	}
	last := p.task(t, second)
	require.Equal(t, 2, last.Iteration)
	require.Len(t, last.Findings, 1)
	require.Equal(t, []int{1, 2}, []int{last.Findings[0].Found, last.Findings[0].Fixed})
	require.Equal(t, []string{session.VerdictChangesRequested, session.VerdictApproved}, []string{p.Reviews[0].Verdict, p.Reviews[1].Verdict})
	requireShown(s, second)
	s.Stop()
}

// requireChained requires one chain with rising sequence numbers. Answers refer to their message.
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
func requireLogged(s *stage.Orchestrator, p *proceedings, names ...string) {
	s.T.Helper()
	lines := make(map[string]string)
	for _, name := range names {
		for _, u := range tapped(s, name+".said") {
			lines[u.MessageID] = u.text
		}
	}
	require.Len(s.T, lines, len(p.said), "nothing else was said")
	for _, u := range p.said {
		require.JSONEq(s.T, u.text, logEntry(s.T, u.text, lines[u.MessageID]))
	}
}

// requireShown requires that the text output shows the same conversation.
func requireShown(s *stage.Orchestrator, last string) {
	s.T.Helper()
	shown := s.Ask("session", "show", "loop", "--all")
	require.Regexp(s.T, `(?m)^`+last+`  .*  iteration 2 of 3  by ann`, shown)
	require.NotContains(s.T, shown, "open findings")
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
		require.Len(s.T, regexpAll(pattern, shown), times, "%s in\n%s", pattern, shown)
	}
	require.Len(s.T, strings.Fields(s.Ask("session", "show", "loop", "-q")), 16)
}

func regexpAll(pattern, text string) []string {
	return regexp.MustCompile(pattern).FindAllString(text, -1)
}

// A task that is never approved is cancelled or force-approved, by the policy. The exit code of
// the program agrees.
//
// Rows: C-87, C-88, T-29.
func TestSessionThatIsNeverRight(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]struct {
		code  int
		state wire.TaskState
		says  string
	}{
		session.EscalateAbort:        {code: cli.ExitNo, state: wire.TaskCancelled, says: "task-1 comes to nothing: task task-1 is cancelled: "},
		session.EscalateForceApprove: {code: cli.ExitOK, state: wire.TaskDone, says: "task-1 is taken as it is"},
	} {
		for _, required := range []bool{true, false} {
			t.Run(fmt.Sprint(policy, " ", required), func(t *testing.T) {
				t.Parallel()
				state := want.state
				if !required {
					state = wire.TaskDone // done by its completion
				}
				sessionID := sessionOf("loop", fmt.Sprintf("on_max = %q\nmax_iterations = 2\nrequire_review = %t", policy, required), three...)
				s := newSession(t, playing(t, "lead", "architect -tasks 1 -developers ann -reviewers rex", once)+
					playing(t, "ann", "developer")+playing(t, "rex", "reviewer -request-changes 9")+sessionID).Up("--json", "--exit-when-idle")
				require.Equal(t, want.code, s.Await())
				require.Contains(t, strings.Join(s.Lines("lead", control.StreamOut), "\n"), want.says)

				s.Write("orchestrator.hcl", stage.QuickStop+quietTeam()+sessionID)
				s.Up("--json")
				s.WaitForEvents(1, events.AgentStarted, "rex")
				p := proceedingsOf(s, "loop")
				requireHeard(s, p, "lead", "ann", "rex")
				task := p.task(t, "task-1")
				require.Equal(t, []string{session.PhaseOver, string(state), policy}, []string{task.Phase, string(task.State), task.Escalated})
				require.Equal(t, []int{2, 2}, []int{task.Iteration, task.MaxIterations})
				require.Len(t, task.Findings, 1)
				require.Zero(t, task.Findings[0].Fixed, "it is taken as it is")
				require.Len(t, p.Reviews, 2)
				require.Contains(t, s.Ask("session", "show", "loop"), "escalated: "+policy)
				require.Empty(t, s.Questions())
				s.Stop()
			})
		}
	}
}

// human returns a session with a single review that requests changes, so that a person is asked.
func human(t *testing.T, required bool) (*stage.Team, *stage.Agent) {
	t.Helper()
	h := stage.NewQuickTeam(t, stage.ScriptedAgents("ada")+untapped(t, "dev", "developer")+untapped(t, "rex", "reviewer -request-changes 1")+
		checkout(fmt.Sprintf("max_iterations = 1\nrequire_review = %t", required)), "ada")
	ada := h.StartAll("ada")[0]
	utter(ada, "msg-1", "dev", session.TypeTaskAssignment, assigning("t"))
	nth(ada, 1, session.TypeTaskCompletion)
	utter(ada, "msg-2", "rex", session.TypeReviewRequest, reviewing("r-1", "t", 0))
	require.Equal(t, session.VerdictChangesRequested, nth(ada, 1, session.TypeReviewResult).body.Verdict)
	ada.Notified("task-updated", "t", "A person is asked")
	p := waitForPhase(h.Orchestrator, session.PhaseHuman)
	require.Equal(t, session.EscalateHumanReview, p.task(t, "t").Escalated)
	if required {
		require.Equal(t, wire.TaskNeedsHuman, p.task(t, "t").State)
	}
	shown := h.Ask("inbox")
	require.Regexp(t, `What should happen to it\? .*approve: .*revise: .*abort: `, shown)
	utter(ada, "msg-3", "dev", session.TypeTaskAssignment, assigning("t"))
	require.Equal(t, "rejected", refusedFor(ada, "msg-3").Type, "it is a person's to decide")
	return h, ada
}

// A person decides about a task at its review limit: it is approved, revised once more, or
// cancelled. require_review makes no difference to the members.
//
// Rows: C-88, T-29.
func TestSessionAsksAPerson(t *testing.T) {
	t.Parallel()
	for _, required := range []bool{true, false} {
		t.Run(fmt.Sprint("approve ", required), func(t *testing.T) {
			t.Parallel()
			h, _ := human(t, required)
			h.Stop() // the question is kept
			ada := h.StartAll("ada")[0]
			require.Contains(t, h.Ask("inbox"), "What should happen to it?")
			_, said, code := h.Call("inbox", "answer", "q1", "maybe")
			require.Equal(t, cli.ExitUsage, code, said)
			h.Ask("inbox", "answer", "q1", "approve")
			ada.Notified("task-updated", "t", "Approved by a person")
			task := waitForPhase(h.Orchestrator, session.PhaseOver).task(t, "t")
			require.Equal(t, wire.TaskDone, task.State)
			require.Empty(t, h.Questions())
			h.Stop()
		})
		t.Run(fmt.Sprint("revise ", required), func(t *testing.T) {
			t.Parallel()
			h, ada := human(t, required)
			h.Ask("inbox", "answer", "q1", "revise")
			ada.Notified("task-updated", "t", "assign it again")
			utter(ada, "msg-4", "dev", session.TypeTaskAssignment, assigning("t"))
			nth(ada, 2, session.TypeTaskCompletion)
			utter(ada, "msg-5", "rex", session.TypeReviewRequest, reviewing("r-2", "t", 1))
			require.Equal(t, session.VerdictApproved, nth(ada, 2, session.TypeReviewResult).body.Verdict)
			task := waitForPhase(h.Orchestrator, session.PhaseOver).task(t, "t")
			require.Equal(t, wire.TaskDone, task.State)
			require.Equal(t, []int{2, 2, 2}, []int{task.Iteration, task.MaxIterations, task.Findings[0].Fixed})
			h.Stop()
		})
		t.Run(fmt.Sprint("abort ", required), func(t *testing.T) {
			t.Parallel()
			h, ada := human(t, required)
			h.Ask("inbox", "answer", "q1", "abort")
			ada.Notified("task-updated", "t", "Aborted by a person")
			task := waitForPhase(h.Orchestrator, session.PhaseOver).task(t, "t")
			require.Equal(t, map[bool]wire.TaskState{true: wire.TaskCancelled, false: wire.TaskDone}[required], task.State)
			utter(ada, "msg-4", "dev", session.TypeTaskAssignment, assigning("t"))
			require.Equal(t, "task_id_taken", refusedFor(ada, "msg-4").Reason)
			h.Stop()
		})
	}
}
