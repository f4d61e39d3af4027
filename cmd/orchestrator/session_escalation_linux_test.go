package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

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
					playing(t, "ann", "developer")+playing(t, "rex", "reviewer -request-changes 9")+sessionID).up("--json", "--exit-when-idle")
				require.Equal(t, want.code, s.await())
				require.Contains(t, strings.Join(s.lines("lead", control.StreamOut), "\n"), want.says)

				s.write("orchestrator.hcl", quick+quietTeam()+sessionID)
				s.up("--json")
				s.waitForEvents(1, events.AgentStarted, "rex")
				p := s.proceedings("loop")
				s.requireHeard(p, "lead", "ann", "rex")
				task := p.task(t, "task-1")
				require.Equal(t, []string{wire.PhaseOver, string(state), policy}, []string{task.Phase, string(task.State), task.Escalated})
				require.Equal(t, []int{2, 2}, []int{task.Iteration, task.MaxIterations})
				require.Len(t, task.Findings, 1)
				require.Zero(t, task.Findings[0].Fixed, "it is taken as it is")
				require.Len(t, p.Reviews, 2)
				require.Contains(t, s.ask("session", "show", "loop"), "escalated: "+policy)
				require.Empty(t, s.questions())
				s.stop()
			})
		}
	}
}

// human returns a session whose only review requests changes, so that a person is asked.
func human(t *testing.T, required bool) (*theatre, *actor) {
	t.Helper()
	h := troupeOf(t, puppetAgents("ada")+untapped(t, "dev", "developer")+untapped(t, "rex", "reviewer -request-changes 1")+
		checkout(fmt.Sprintf("max_iterations = 1\nrequire_review = %t", required)), "ada")
	ada := h.cast("ada")[0]
	ada.utter("msg-1", "dev", session.TypeTaskAssignment, assigning("t"))
	ada.nth(1, session.TypeTaskCompletion)
	ada.utter("msg-2", "rex", session.TypeReviewRequest, reviewing("r-1", "t", 0))
	require.Equal(t, session.VerdictChangesRequested, ada.nth(1, session.TypeReviewResult).body.Verdict)
	ada.told("task-updated", "t", "A person is asked")
	p := h.waitForPhase("checkout", "t", wire.PhaseHuman)
	require.Equal(t, session.EscalateHumanReview, p.task(t, "t").Escalated)
	if required {
		require.Equal(t, wire.TaskNeedsHuman, p.task(t, "t").State)
	}
	shown := h.ask("inbox")
	require.Regexp(t, `What is to become of it\? .*approve: .*revise: .*abort: `, shown)
	ada.utter("msg-3", "dev", session.TypeTaskAssignment, assigning("t"))
	require.Equal(t, "rejected", ada.refusedFor("msg-3").Type, "it is a person's to decide")
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
			h.stop() // the question is kept
			ada := h.cast("ada")[0]
			require.Contains(t, h.ask("inbox"), "What is to become of it?")
			_, said, code := h.call("inbox", "answer", "q1", "maybe")
			require.Equal(t, cli.ExitUsage, code, said)
			h.ask("inbox", "answer", "q1", "approve")
			ada.told("task-updated", "t", "Approved by a person")
			task := h.waitForPhase("checkout", "t", wire.PhaseOver).task(t, "t")
			require.Equal(t, wire.TaskDone, task.State)
			require.Empty(t, h.questions())
			h.stop()
		})
		t.Run(fmt.Sprint("revise ", required), func(t *testing.T) {
			t.Parallel()
			h, ada := human(t, required)
			h.ask("inbox", "answer", "q1", "revise")
			ada.told("task-updated", "t", "assign it again")
			ada.utter("msg-4", "dev", session.TypeTaskAssignment, assigning("t"))
			ada.nth(2, session.TypeTaskCompletion)
			ada.utter("msg-5", "rex", session.TypeReviewRequest, reviewing("r-2", "t", 1))
			require.Equal(t, session.VerdictApproved, ada.nth(2, session.TypeReviewResult).body.Verdict)
			task := h.waitForPhase("checkout", "t", wire.PhaseOver).task(t, "t")
			require.Equal(t, wire.TaskDone, task.State)
			require.Equal(t, []int{2, 2, 2}, []int{task.Iteration, task.MaxIterations, task.Findings[0].Fixed})
			h.stop()
		})
		t.Run(fmt.Sprint("abort ", required), func(t *testing.T) {
			t.Parallel()
			h, ada := human(t, required)
			h.ask("inbox", "answer", "q1", "abort")
			ada.told("task-updated", "t", "Aborted by a person")
			task := h.waitForPhase("checkout", "t", wire.PhaseOver).task(t, "t")
			require.Equal(t, map[bool]wire.TaskState{true: wire.TaskCancelled, false: wire.TaskDone}[required], task.State)
			ada.utter("msg-4", "dev", session.TypeTaskAssignment, assigning("t"))
			require.Equal(t, "task_id_taken", ada.refusedFor("msg-4").Reason)
			h.stop()
		})
	}
}
