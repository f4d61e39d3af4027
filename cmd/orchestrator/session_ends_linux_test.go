package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// An architect aborts its session. The tasks are cancelled, and members without other work are
// stopped and stay stopped. The next start opens the session again.
//
// Rows: C-70, C-71, C-72, K-21.
func TestSessionAborted(t *testing.T) {
	t.Parallel()
	h := troupeOf(t, puppetAgents("ada", "dev", "rex", "eve")+checkout(""), "ada", "dev", "rex", "eve")
	names := []string{"ada", "dev", "rex"}
	actors := h.cast("ada", "dev", "rex", "eve")
	ada, dev, eve := actors[0], actors[1], actors[3]
	ada.utter("msg-1", "dev", session.TypeTaskAssignment, assigning("one"))
	ada.utter("msg-2", "dev", session.TypeTaskAssignment, assigning("two"))
	dev.nth(2, session.TypeTaskAssignment)
	ada.utter("msg-3", "dev", session.TypeAbort, `{"scope":"task","target_id":"one","reason":"enough of it","cleanup_required":false}`)
	require.Contains(t, dev.nth(1, session.TypeAbort).text, "enough of it")
	dev.utter("msg-4", "ada", session.TypeTaskCompletion, completing("one", "completed"))
	require.Equal(t, "rejected", dev.refusedFor("msg-4").Type)
	require.Equal(t, wire.TaskCancelled, h.proceedings("checkout").task(t, "one").State)
	ada.utter("msg-5", "dev", session.TypeAbort, strings.Replace(ending, "checkout", "another", 1))
	require.Equal(t, "rejected", ada.refusedFor("msg-5").Type)

	ada.utter("msg-6", "dev", session.TypeAbort, ending)
	require.Equal(t, "msg-6", dev.nth(2, session.TypeAbort).MessageID)
	for _, a := range actors[:3] {
		shutdown := a.wait("shutdown", func(m *message) bool { return m.Type == "notify:shutdown" })
		require.Contains(t, string(shutdown.Payload), "its session was aborted: enough")
	}
	for _, name := range names {
		h.waitForEvents(1, events.AgentStopped, name)
	}
	p := h.proceedings("checkout")
	require.Equal(t, []string{wire.SessionClosed, "enough"}, []string{p.State, p.Reason})
	require.Equal(t, wire.TaskCancelled, p.task(t, "two").State)
	eve.quiet()
	require.Empty(t, eve.notices("shutdown"))
	for _, name := range names {
		require.Equal(t, control.StateStopped, h.agent(name).State)
		require.Len(t, h.events(events.AgentStarted, name), 1)
	}

	h.stop()
	actors = h.cast("ada", "dev", "rex", "eve")
	ada, dev = actors[0], actors[1]
	require.Equal(t, wire.SessionOpen, h.proceedings("checkout").State)
	ada.utter("msg-7", "dev", session.TypeTaskAssignment, assigning("three"))
	require.Equal(t, "msg-7", dev.nth(1, "").MessageID, "and nothing of before")
	h.stop()
}

// Sessions of the file change by reloads: one is added, one gets another member, one is removed,
// and its messages remain.
//
// Rows: C-06, C-07, C-72, C-87.
func TestSessionReload(t *testing.T) {
	t.Parallel()
	agents := quick + puppetAgents("ada", "dev", "rex")
	pair := sessionOf("checkout", "", "ada=architect", "dev=developer")
	attic := sessionOf("attic", "", "ada=architect", "rex=reviewer")
	h := troupeOf(t, "", "ada", "dev", "rex")
	h.write("orchestrator.hcl", agents+pair)
	actors := h.cast("ada", "dev", "rex")
	ada, dev, rex := actors[0], actors[1], actors[2]
	ada.utter("msg-1", "rex", session.TypeFeedback, remark("early"))
	require.Equal(t, "rejected", ada.refusedFor("msg-1").Type)

	h.write("orchestrator.hcl", agents+pair+attic) // one is added
	h.ask("reload")
	require.Equal(t, "checkout\nattic\n", h.ask("session", "ls", "-q"))
	ada.utter("msg-2", "rex", session.TypeFeedback, remark("now"))
	require.Equal(t, "msg-2", rex.nth(1, "").MessageID)

	h.write("orchestrator.hcl", agents+checkout("require_review = true\nmax_iterations = 5")+attic) // one changes
	h.ask("reload")
	require.Contains(t, h.ask("session", "show", "checkout"), "a task is done when it is approved; 5 at most")
	ada.utter("msg-3", "rex", session.TypeFeedback, remark("where"))
	require.Equal(t, "ambiguous_session", ada.refusedFor("msg-3").Reason)
	ada.say(strings.Replace(speech("msg-4", "ada", "rex", session.TypeFeedback, remark("there")), `{`, `{"session_id":"checkout",`, 1) + "\n")
	require.Equal(t, "msg-4", rex.nth(2, "").MessageID)
	ada.utter("msg-5", "dev", session.TypeTaskAssignment, assigning("t"))
	dev.nth(1, session.TypeTaskAssignment)

	h.write("orchestrator.hcl", agents+attic) // one is removed
	h.ask("reload")
	dev.told("task-cancelled", "t", "")
	p := h.proceedings("checkout")
	require.Equal(t, wire.SessionClosed, p.State)
	require.Equal(t, wire.TaskCancelled, p.task(t, "t").State)
	ada.utter("msg-6", "dev", session.TypeFeedback, remark("late"))
	require.Contains(t, ada.refusedFor("msg-6").message, "is closed")
	ada.utter("msg-7", "rex", session.TypeFeedback, remark("only one is left"))
	require.Equal(t, "msg-7", rex.nth(3, "").MessageID)
	require.Len(t, h.events(events.AgentStarted, ""), 3, "nobody was started again for it")

	h.write("orchestrator.hcl", agents+pair+attic) // it is added again
	h.ask("reload")
	p = h.proceedings("checkout")
	require.Equal(t, wire.SessionOpen, p.State)
	require.GreaterOrEqual(t, len(p.said), 3)
	ada.utter("msg-8", "dev", session.TypeFeedback, remark("again"))
	require.Equal(t, "msg-8", dev.nth(1, session.TypeFeedback).MessageID)
	h.stop()
}

// The environment of an agent names its session and its type there, those of the first session
// in the file. For an agent without a session they are unset, even if inherited.
//
// Rows: C-13, C-72.
func TestSessionEnvironment(t *testing.T) {
	t.Parallel()
	hcl := quick
	for _, name := range []string{"ada", "dev", "eve"} {
		hcl += "\nagent \"" + name + "\" {\n  command = [\"sh\", \"-c\", \"echo $ORC_SESSION/$ORC_SESSION_TYPE; exec cat\"]\n}\n"
	}
	s := newStage(t, hcl+sessionOf("one", "", "ada=architect", "dev=developer")+sessionOf("two", "", "dev=reviewer", "ada=developer"))
	s.start(exec.Command("env", "ORC_SESSION=outer", "ORC_SESSION_TYPE=architect", s.program, "up", "--json", "--state-dir", s.state(), "--timeout", "3m"))
	for name, want := range map[string]string{"ada": "one/architect", "dev": "one/developer", "eve": "/"} {
		require.Equal(t, want, s.waitForLines(1, name)[0], name)
	}
	s.stop()
}
