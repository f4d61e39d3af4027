package main

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// An invalid or forbidden message is refused to its sender with all its mistakes. It is in the
// log, and no other agent gets it.
//
// Rows: C-03, C-06, C-07, C-08, C-13, C-17, C-75, C-90, C-94, C-97, C-98, T-53, T-60.
func TestSessionBadLines(t *testing.T) {
	t.Parallel()
	h := troupeOf(t, puppetAgents("ada", "dev", "rex", "eve")+checkout(""), "ada", "dev", "rex", "eve")
	actors := h.cast("ada", "dev", "rex", "eve")
	ada, dev, rex, eve := actors[0], actors[1], actors[2], actors[3]
	ada.utter("msg-1", "dev", session.TypeTaskAssignment, assigning("t"))
	dev.nth(1, session.TypeTaskAssignment)
	say := func(id, kind, payload string, from ...string) string {
		return speech(id, append(from, "dev")[0], "ada", kind, payload)
	}
	swap := strings.NewReplacer
	for n, bad := range []struct {
		line, kind, pointer, says string
	}{
		{say("msg-X", session.TypeFeedback, `{}`), "malformed", "/payload/feedback_type", "feedback_type is missing"},
		{say("msg-X", session.TypeTaskProgress, `{"task_id":"t","progress_percent":101,"current_step":"s","files_modified_so_far":[]}`), "malformed", "/payload/progress_percent", ""},
		{say("msg-X", "task_done", `{}`), "malformed", "/message_type", "task_done"},
		{swap(noon, "yesterday").Replace(say("msg-X", session.TypeAcknowledgment, `{}`)), "malformed", "/timestamp", "yesterday"},
		{say("msg-X", session.TypeAcknowledgment, `{}`, "rex"), "rejected", "/from_agent/agent_id", `the stream of "dev"`},
		{swap(`"developer"`, `"reviewer"`).Replace(say("msg-X", session.TypeAcknowledgment, `{}`)), "rejected", "/from_agent/agent_type", "developer"},
		{swap(`"ada"`, `"eve"`).Replace(say("msg-X", session.TypeAcknowledgment, `{}`)), "rejected", "/to_agent/agent_id", "not a member"},
		{swap(`"ada"`, `"adda"`).Replace(say("msg-X", session.TypeAcknowledgment, `{}`)), "rejected", "/to_agent/agent_id", "not a member"},
		{say("msg-X", session.TypeAbort, ending), "rejected", "/from_agent/agent_type", "architect to say"},
		{say("msg-X", session.TypeTaskCompletion, completing("u")), "rejected", "/payload/task_id", "no task of this session"},
		{say("msg-X", session.TypeTaskCompletion, completing("t", "etc/passwd", "src/../../x")), "rejected", "/payload/changes", "outside of the scope"},
		{say("msg-X", session.TypeReviewResult, judging("r", "t", session.VerdictApproved)), "rejected", "/from_agent/agent_type", "reviewer to say"},
	} {
		id := fmt.Sprintf("msg-%d", 100+n)
		dev.say(strings.Replace(bad.line, "msg-X", id, 1) + "\n")
		u := dev.refusedFor(id)
		require.Equal(t, []any{bad.kind, 0, 3, "", bad.pointer}, []any{u.Type, u.Retries, u.Most, u.Next, u.Pointer}, "%s", bad.line)
		require.Contains(t, u.message, bad.says)
		if u.Reason == "scope_violation" {
			require.Equal(t, []string{"src/**"}, u.Scope)
		}
		p := h.proceedings("checkout")
		last := p.said[len(p.said)-1]
		require.Equal(t, []string{id, u.message}, []string{last.MessageID, last.Refused})
		require.NotEmpty(t, last.Errors)
		if bad.kind == "malformed" {
			require.True(t, strings.HasPrefix(last.Errors[0], bad.pointer+": "), "%s", last.Errors)
		}
		require.Len(t, p.said, n+2)
	}
	eve.say(swap(`""`, `"developer"`).Replace(speech("msg-200", "eve", "ada", session.TypeFeedback, remark("psst"))) + "\n")
	require.Equal(t, "rejected", eve.refusedFor("msg-200").Type)
	for _, a := range []*actor{ada, rex, eve} {
		a.quiet()
		require.Empty(t, a.spoken(""), "%s hears of it", a.name)
	}
	dev.utter("msg-300", "ada", session.TypeTaskCompletion, completing("t", "src/x"))
	ada.nth(1, session.TypeTaskCompletion)
	h.stop()
}

// Lines that are too long, not text, or incomplete affect no other message.
//
// Rows: C-90, C-97, C-98, K-21.
func TestSessionOddLines(t *testing.T) {
	t.Parallel()
	h := troupeOf(t, "\nprotocol {\n  max_line = \"64KiB\"\n}\n"+puppetAgents("ada", "dev")+listening("rex")+checkout(""), "ada", "dev")
	actors := h.cast("ada", "dev")
	ada, dev := actors[0], actors[1]
	dev.utter("msg-1", "ada", session.TypeFeedback, remark(strings.Repeat("x", 100<<10)))
	u := dev.refusedFor("msg-1")
	require.Equal(t, "malformed", u.Type)
	require.Contains(t, u.message, "more than protocol.max_line = ")
	for _, odd := range []string{
		"\x00\xff\xfe{\"message_type\":\"feedback\"}\n",
		strings.Replace(speech("msg-2", "dev", "ada", session.TypeFeedback, remark("\x01")), "\\u0001", "\xff\xfe\x00", 1) + "\n",
		speech("msg-3", "dev", "ada", session.TypeFeedback, remark("cut off"))[:200] + "\n",
		"[" + speech("msg-4", "dev", "ada", session.TypeFeedback, remark("in a list")) + "]\n",
		strings.Replace(speech("msg-5", "dev", "ada", session.TypeFeedback, remark("two")), `"payload"`, `"message_type":"abort","payload"`, 1) + "\n",
		speech("msg-6", "dev", "ada", session.TypeFeedback, strings.Repeat(`{"a":`, 5000)+"1"+strings.Repeat("}", 5000)) + "\n",
	} {
		dev.say(odd)
	}
	dev.utter("msg-7", "ada", session.TypeFeedback, remark("after all"))
	require.Equal(t, "msg-7", ada.nth(1, session.TypeFeedback).MessageID)
	require.Len(t, ada.spoken(""), 1)
	p := h.proceedings("checkout")
	for _, u := range p.said {
		require.Equal(t, u.MessageID != "msg-7", u.Refused != "", u.text)
	}
	require.Equal(t, "msg-1", p.said[0].MessageID)
	require.NotEmpty(t, p.said[0].Errors)
	require.Equal(t, control.StateRunning, h.agent("dev").State)
	h.stop()
}

// An agent that echoes messages and notices sends nothing by that, and gets no answer.
//
// Rows: C-06, C-90.
func TestSessionEcho(t *testing.T) {
	t.Parallel()
	const said = 5
	h := troupeOf(t, "\nagent \"dev\" {\n  command = [\"cat\"]\n}\n"+puppetAgents("ada")+listening("rex")+checkout(""), "ada")
	ada := h.cast("ada")[0]
	for n := range said {
		ada.utter(fmt.Sprintf("msg-%d", n), "dev", session.TypeFeedback, remark("echo"))
	}
	ada.utter("msg-10", "dev", session.TypeTaskAssignment, assigning("t"))
	h.ask("task", "cancel", "t") // it is notified of this in another form
	ada.nth(1, session.TypeTaskCompletion)
	echoes := h.waitForLines(said+2, "dev")
	require.Contains(t, echoes[said], "task_assignment")
	require.Contains(t, echoes[said+1], "notify:task-cancelled")
	ada.quiet()
	p := h.proceedings("checkout")
	require.Equal(t, append(slices.Repeat([]string{"ada>dev feedback"}, said), "ada>dev task_assignment", "dev>ada task_completion failed"), types(p.said))
	require.Len(t, ada.spoken(""), 1)
	require.Len(t, h.waitForLines(said+2, "dev"), said+2)
	require.Empty(t, h.events(events.AgentRefused, "dev"))
	h.stop()
}

// The check commands of a review request are passed to the reviewer and are not run.
//
// Rows: C-49, T-56.
func TestSessionRunsNoChecks(t *testing.T) {
	t.Parallel()
	h := troupeOf(t, puppetAgents("ada", "dev")+playing(t, "rex", "reviewer")+checkout("require_review = true"), "ada", "dev")
	actors := h.cast("ada", "dev")
	ada, dev := actors[0], actors[1]
	command := fmt.Sprintf(`"custom_checks":[{"name":"harmless","command":"touch %s; $(touch %[1]s)","expected_exit_code":0}]`, h.path("pwned"))
	ada.utter("msg-1", "dev", session.TypeTaskAssignment, assigning("t"))
	dev.nth(1, session.TypeTaskAssignment)
	dev.utter("msg-2", "ada", session.TypeTaskCompletion, completing("t"))
	ada.nth(1, session.TypeTaskCompletion)
	ada.utter("msg-3", "rex", session.TypeReviewRequest, reviewing("r-1", "t", 0, command))
	require.Equal(t, session.VerdictApproved, ada.nth(1, session.TypeReviewResult).body.Verdict)
	heard := h.tapped("rex.heard")
	require.Len(t, heard, 1)
	require.Contains(t, heard[0].text, command)
	h.ask("session", "show", "checkout", "-v")
	h.stop()
	require.NoFileExists(t, h.path("pwned"))
}

// An architect aborts its session. The tasks are cancelled, and members without other work are
// stopped and stay stopped. The next start opens the session again.
//
// Rows: C-70, C-71, C-72, K-21.
func TestSessionAborted(t *testing.T) {
	t.Parallel()
	h := troupe(t, unhurried+puppetAgents("ada", "dev", "rex", "eve")+checkout(""), "ada", "dev", "rex", "eve")
	names := []string{"ada", "dev", "rex"}
	actors := h.cast("ada", "dev", "rex", "eve")
	ada, dev, eve := actors[0], actors[1], actors[3]
	ada.utter("msg-1", "dev", session.TypeTaskAssignment, assigning("one"))
	ada.utter("msg-2", "dev", session.TypeTaskAssignment, assigning("two"))
	dev.nth(2, session.TypeTaskAssignment)
	ada.utter("msg-3", "dev", session.TypeAbort, `{"scope":"task","target_id":"one","reason":"enough of it","cleanup_required":false}`)
	require.Contains(t, dev.nth(1, session.TypeAbort).text, "enough of it")
	dev.utter("msg-4", "ada", session.TypeTaskCompletion, completing("one"))
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
	require.Equal(t, []string{session.Closed, "enough"}, []string{p.State, p.Reason})
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
	require.Equal(t, session.Open, h.proceedings("checkout").State)
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
	require.Equal(t, session.Closed, p.State)
	require.Equal(t, wire.TaskCancelled, p.task(t, "t").State)
	ada.utter("msg-6", "dev", session.TypeFeedback, remark("late"))
	require.Contains(t, ada.refusedFor("msg-6").message, "is closed")
	ada.utter("msg-7", "rex", session.TypeFeedback, remark("only one is left"))
	require.Equal(t, "msg-7", rex.nth(3, "").MessageID)
	require.Len(t, h.events(events.AgentStarted, ""), 3, "nobody was started again for it")

	h.write("orchestrator.hcl", agents+pair+attic) // it is added again
	h.ask("reload")
	p = h.proceedings("checkout")
	require.Equal(t, session.Open, p.State)
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
