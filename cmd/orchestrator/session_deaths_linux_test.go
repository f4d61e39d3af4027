package main

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// soon restarts an agent without delay.
const soon = `  restart {
    policy = "on-failure"
    delay  = "10ms"
    factor = 1
    jitter = 0
  }`

// afterDeath runs a session of one task whose developer dies, and returns the ended session.
func afterDeath(t *testing.T, code int, developer string, more ...string) (*stage, *proceedings) {
	t.Helper()
	sessionID := sessionOf("loop", "require_review = true", three...)
	s := newSession(t, playing(t, "lead", "architect -tasks 1 -developers ann -reviewers rex -scope src/**", once)+
		playing(t, "ann", developer, more...)+playing(t, "rex", "reviewer")+sessionID).up("--json", "--exit-when-idle")
	require.Equal(t, code, s.await())
	s.write("orchestrator.hcl", quick+quietTeam()+sessionID)
	s.up("--json")
	s.waitForEvents(1, events.AgentStarted, "rex")
	return s, s.proceedings("loop")
}

// A developer that crashes during a task gets it again with the earlier attempts, and completes
// it. The architect does not notice.
//
// Rows: C-78, C-92, C-96, T-57.
func TestSessionDeveloperDies(t *testing.T) {
	t.Parallel()
	s, p := afterDeath(t, cli.ExitOK, "developer -slow 30ms -die-at task-1 -once died", soon)
	require.FileExists(t, s.path("died"))
	require.Equal(t, []string{
		"lead>ann task_assignment", "ann>lead acknowledgment", "ann>lead task_progress", "ann>lead task_progress", "ann>lead task_progress",
		"lead>ann task_assignment",
		"ann>lead acknowledgment", "ann>lead task_progress", "ann>lead task_progress", "ann>lead task_progress", "ann>lead task_completion completed",
		"lead>rex review_request", "rex>lead review_result approved",
	}, types(p.said))
	again := &p.said[5]
	require.Equal(t, p.said[0].Chain, again.Chain)
	require.Equal(t, p.said[0].MessageID, again.ReplyTo)
	require.Equal(t, "exception", again.body.Task.Context.Attempts[0].Outcome)
	require.Contains(t, again.body.Task.Context.Attempts[0].Feedback, "exit 3")
	require.Equal(t, again.MessageID, p.said[10].ReplyTo)
	require.Equal(t, "attempt 2", p.said[10].body.Summary)

	task := p.task(t, "task-1")
	require.Equal(t, []string{wire.PhaseOver, string(wire.TaskDone)}, []string{task.Phase, string(task.State)})
	require.Equal(t, 2, task.Tries)
	require.Equal(t, 1, task.Iteration, "a death is no review")
	require.NotNil(t, task.Error)
	require.Equal(t, []string{session.ExecutionException, session.SuggestRetry}, []string{task.Error.ErrorType, task.Error.SuggestedAction})
	require.True(t, task.Error.Recoverable)
	s.stop()
}

// After the second crash, the architect gets a failed completion in the developer's name. A
// developer that is not restarted gets no second attempt.
//
// Rows: C-78, C-92, C-96, T-57.
func TestSessionDeveloperDiesAgain(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]string{"twice": soon, "for good": once} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, p := afterDeath(t, cli.ExitNo, "developer -die-at task-1", restart)
			last := p.one(t, session.TypeTaskCompletion, "lead")
			require.Equal(t, []string{"ann", "failed"}, []string{last.From.AgentID, last.body.Status})
			require.Equal(t, p.said[0].Chain, last.Chain)
			heard := s.tapped("lead.heard")
			require.JSONEq(t, last.text, logEntry(t, last.text, heard[len(heard)-1].text), "the architect has it")
			task := p.task(t, "task-1")
			require.Equal(t, []string{wire.PhaseOver, string(wire.TaskFailed)}, []string{task.Phase, string(task.State)})
			require.NotNil(t, task.Error)
			require.False(t, task.Error.Recoverable)
			if name == "twice" {
				require.Equal(t, 2, task.Tries)
				require.Equal(t, session.SuggestAbort, task.Error.SuggestedAction)
				require.Equal(t, []string{
					"lead>ann task_assignment", "ann>lead acknowledgment", "lead>ann task_assignment", "ann>lead acknowledgment", "ann>lead task_completion failed",
				}, types(p.said))
			} else {
				require.Equal(t, session.SuggestReassign, task.Error.SuggestedAction)
			}
			require.Contains(t, s.ask("session", "show", "loop"), "error exception: ")
			s.stop()
		})
	}
}

// A developer that has not acknowledged an assignment gets it again, unchanged, in its next run.
// A completion without acknowledgment is accepted.
//
// Rows: C-16, C-73, C-74.
func TestSessionLostAcknowledgment(t *testing.T) {
	t.Parallel()
	h := troupeOf(t, puppetAgents("ada", "dev")+untapped(t, "rex", "reviewer")+checkout(""), "ada", "dev")
	actors := h.cast("ada", "dev")
	ada, dev := actors[0], actors[1]
	ada.utter("msg-1", "dev", session.TypeTaskAssignment, assigning("t"))
	first := dev.nth(1, session.TypeTaskAssignment)
	dev.die()
	dev = h.enter("dev")
	require.Equal(t, first.text, dev.nth(1, session.TypeTaskAssignment).text, "letter for letter")
	require.Equal(t, wire.PhaseAssigned, h.proceedings("checkout").task(t, "t").Phase)
	require.Equal(t, 1, h.proceedings("checkout").task(t, "t").Tries, "it had not begun")
	dev.utter("msg-2", "ada", session.TypeTaskCompletion, completing("t", "completed", "src/a"))
	ada.nth(1, session.TypeTaskCompletion)
	task := h.proceedings("checkout").task(t, "t")
	require.Equal(t, []string{wire.PhaseCompleted, string(wire.TaskDone)}, []string{task.Phase, string(task.State)})
	require.Empty(t, ada.spoken(session.TypeAcknowledgment), "nobody invents one")
	dev.die()
	dev = h.enter("dev")
	dev.quiet()
	require.Empty(t, dev.spoken(""), "what is done is not assigned again")
	h.stop()
}

// Duplicate messages have no effect and no error.
//
// Rows: C-02, T-26.
func TestSessionSaidTwice(t *testing.T) {
	t.Parallel()
	s, p := afterDeath(t, cli.ExitOK, "developer -slow 30ms -double")
	require.Equal(t, []string{
		"lead>ann task_assignment", "ann>lead acknowledgment", "ann>lead task_progress", "ann>lead task_progress", "ann>lead task_progress",
		"ann>lead task_completion completed", "lead>rex review_request", "rex>lead review_result approved",
	}, types(p.said))
	require.Len(t, s.tapped("ann.said"), 10)
	require.Len(t, s.tapped("lead.heard"), 6)
	s.requireHeard(p, "lead", "ann", "rex")
	s.stop()
}

// An architect that crashes before it has read a completion gets it in its next run, also if the
// orchestrator was killed.
//
// Rows: C-02, C-91, T-57.
func TestSessionArchitectDies(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]func(h *theatre, ada *actor){
		"by itself": func(_ *theatre, ada *actor) { ada.die() },
		"with the orchestrator": func(h *theatre, _ *actor) {
			h.signal(syscall.SIGKILL)
			<-h.ended
			h.up("--json")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := troupeOf(t, puppetAgents("ada", "dev")+untapped(t, "rex", "reviewer")+checkout(""), "ada", "dev")
			actors := h.cast("ada", "dev")
			ada, dev := actors[0], actors[1]
			ada.utter("msg-1", "dev", session.TypeTaskAssignment, assigning("t"))
			dev.nth(1, session.TypeTaskAssignment)
			dev.utter("msg-2", "ada", session.TypeTaskCompletion, completing("t", "completed", "src/a"))
			first := ada.nth(1, session.TypeTaskCompletion)
			kill(h, ada)
			again := h.enter("ada").nth(1, session.TypeTaskCompletion)
			require.Equal(t, first.text, again.text, "letter for letter")
			h.stop()
		})
	}
}
