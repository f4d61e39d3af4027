package session

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
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
	h := stage.NewQuickTeam(t, stage.ScriptedAgents("ada", "dev", "rex", "eve")+checkout(""), "ada", "dev", "rex", "eve")
	actors := h.StartAll("ada", "dev", "rex", "eve")
	ada, dev, rex, eve := actors[0], actors[1], actors[2], actors[3]
	utter(ada, "msg-1", "dev", session.TypeTaskAssignment, assigning("t"))
	nth(dev, 1, session.TypeTaskAssignment)
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
		{swap(stage.Noon, "yesterday").Replace(say("msg-X", session.TypeAcknowledgment, `{}`)), "malformed", "/timestamp", "yesterday"},
		{say("msg-X", session.TypeAcknowledgment, `{}`, "rex"), "rejected", "/from_agent/agent_id", `the stream of "dev"`},
		{swap(`"developer"`, `"reviewer"`).Replace(say("msg-X", session.TypeAcknowledgment, `{}`)), "rejected", "/from_agent/agent_type", "developer"},
		{swap(`"ada"`, `"eve"`).Replace(say("msg-X", session.TypeAcknowledgment, `{}`)), "rejected", "/to_agent/agent_id", "not a member"},
		{swap(`"ada"`, `"adda"`).Replace(say("msg-X", session.TypeAcknowledgment, `{}`)), "rejected", "/to_agent/agent_id", "not a member"},
		{say("msg-X", session.TypeAbort, ending), "rejected", "/from_agent/agent_type", "architect to say"},
		{say("msg-X", session.TypeTaskCompletion, completing("u")), "rejected", "/payload/task_id", "no task of this session"},
		{say("msg-X", session.TypeTaskCompletion, completing("t", "etc/passwd", "src/../../x")), "rejected", "/payload/changes", "outside the scope"},
		{say("msg-X", session.TypeReviewResult, judging("r", "t", session.VerdictApproved)), "rejected", "/from_agent/agent_type", "reviewer to say"},
	} {
		id := fmt.Sprintf("msg-%d", 100+n)
		dev.Say(strings.Replace(bad.line, "msg-X", id, 1) + "\n")
		u := refusedFor(dev, id)
		require.Equal(t, []any{bad.kind, 0, 3, "", bad.pointer}, []any{u.Type, u.Retries, u.Most, u.Next, u.Pointer}, "%s", bad.line)
		require.Contains(t, u.message, bad.says)
		if u.Reason == "scope_violation" {
			require.Equal(t, []string{"src/**"}, u.Scope)
		}
		p := proceedingsOf(h.Orchestrator, "checkout")
		last := p.said[len(p.said)-1]
		require.Equal(t, []string{id, u.message}, []string{last.MessageID, last.Refused})
		require.NotEmpty(t, last.Errors)
		if bad.kind == "malformed" {
			require.True(t, strings.HasPrefix(last.Errors[0], bad.pointer+": "), "%s", last.Errors)
		}
		require.Len(t, p.said, n+2)
	}
	eve.Say(swap(`""`, `"developer"`).Replace(speech("msg-200", "eve", "ada", session.TypeFeedback, remark("psst"))) + "\n")
	require.Equal(t, "rejected", refusedFor(eve, "msg-200").Type)
	for _, a := range []*stage.Agent{ada, rex, eve} {
		a.Settle()
		require.Empty(t, spoken(a, ""), "%s hears of it", a.Name)
	}
	utter(dev, "msg-300", "ada", session.TypeTaskCompletion, completing("t", "src/x"))
	nth(ada, 1, session.TypeTaskCompletion)
	h.Stop()
}

// Lines that are too long, not text, or incomplete affect no other message.
//
// Rows: C-90, C-97, C-98, K-21.
func TestSessionOddLines(t *testing.T) {
	t.Parallel()
	h := stage.NewQuickTeam(t, "\nprotocol {\n  max_line = \"64KiB\"\n}\n"+stage.ScriptedAgents("ada", "dev")+stage.Readers("rex")+checkout(""), "ada", "dev")
	actors := h.StartAll("ada", "dev")
	ada, dev := actors[0], actors[1]
	utter(dev, "msg-1", "ada", session.TypeFeedback, remark(strings.Repeat("x", 100<<10)))
	u := refusedFor(dev, "msg-1")
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
		dev.Say(odd)
	}
	utter(dev, "msg-7", "ada", session.TypeFeedback, remark("after all"))
	require.Equal(t, "msg-7", nth(ada, 1, session.TypeFeedback).MessageID)
	require.Len(t, spoken(ada, ""), 1)
	p := proceedingsOf(h.Orchestrator, "checkout")
	for _, u := range p.said {
		require.Equal(t, u.MessageID != "msg-7", u.Refused != "", u.text)
	}
	require.Equal(t, "msg-1", p.said[0].MessageID)
	require.NotEmpty(t, p.said[0].Errors)
	require.Equal(t, control.StateRunning, h.Agent("dev").State)
	h.Stop()
}

// An agent that echoes messages and notices sends no message by that, and gets no answer.
//
// Rows: C-06, C-90.
func TestSessionEcho(t *testing.T) {
	t.Parallel()
	const said = 5
	h := stage.NewQuickTeam(t, "\nagent \"dev\" {\n  command = [\"cat\"]\n}\n"+stage.ScriptedAgents("ada")+stage.Readers("rex")+checkout(""), "ada")
	ada := h.StartAll("ada")[0]
	for n := range said {
		utter(ada, fmt.Sprintf("msg-%d", n), "dev", session.TypeFeedback, remark("echo"))
	}
	utter(ada, "msg-10", "dev", session.TypeTaskAssignment, assigning("t"))
	h.Ask("task", "cancel", "t") // it is notified of this in another form
	nth(ada, 1, session.TypeTaskCompletion)
	echoes := h.WaitForLines(said+2, "dev")
	require.Contains(t, echoes[said], "task_assignment")
	require.Contains(t, echoes[said+1], "notify:task-cancelled")
	ada.Settle()
	p := proceedingsOf(h.Orchestrator, "checkout")
	require.Equal(t, append(slices.Repeat([]string{"ada>dev feedback"}, said), "ada>dev task_assignment", "dev>ada task_completion failed"), types(p.said))
	require.Len(t, spoken(ada, ""), 1)
	require.Len(t, h.WaitForLines(said+2, "dev"), said+2)
	require.Empty(t, h.Events(events.AgentRefused, "dev"))
	h.Stop()
}

// The check commands of a review request are passed to the reviewer and are not run.
//
// Rows: C-49, T-56.
func TestSessionRunsNoChecks(t *testing.T) {
	t.Parallel()
	h := stage.NewQuickTeam(t, stage.ScriptedAgents("ada", "dev")+playing(t, "rex", "reviewer")+checkout("require_review = true"), "ada", "dev")
	actors := h.StartAll("ada", "dev")
	ada, dev := actors[0], actors[1]
	command := fmt.Sprintf(`"custom_checks":[{"name":"harmless","command":"touch %s; $(touch %[1]s)","expected_exit_code":0}]`, h.Path("pwned"))
	utter(ada, "msg-1", "dev", session.TypeTaskAssignment, assigning("t"))
	nth(dev, 1, session.TypeTaskAssignment)
	utter(dev, "msg-2", "ada", session.TypeTaskCompletion, completing("t"))
	nth(ada, 1, session.TypeTaskCompletion)
	utter(ada, "msg-3", "rex", session.TypeReviewRequest, reviewing("r-1", "t", 0, command))
	require.Equal(t, session.VerdictApproved, nth(ada, 1, session.TypeReviewResult).body.Verdict)
	heard := tapped(h.Orchestrator, "rex.heard")
	require.Len(t, heard, 1)
	require.Contains(t, heard[0].text, command)
	h.Ask("session", "show", "checkout", "-v")
	h.Stop()
	require.NoFileExists(t, h.Path("pwned"))
}

// An architect aborts its session. The tasks are cancelled, and members without other work are
// stopped and stay stopped. The next start opens the session again.
//
// Rows: C-70, C-71, C-72, K-21.
func TestSessionAborted(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.PatientStop+stage.ScriptedAgents("ada", "dev", "rex", "eve")+checkout(""), "ada", "dev", "rex", "eve")
	names := []string{"ada", "dev", "rex"}
	actors := h.StartAll("ada", "dev", "rex", "eve")
	ada, dev, eve := actors[0], actors[1], actors[3]
	utter(ada, "msg-1", "dev", session.TypeTaskAssignment, assigning("one"))
	utter(ada, "msg-2", "dev", session.TypeTaskAssignment, assigning("two"))
	nth(dev, 2, session.TypeTaskAssignment)
	utter(ada, "msg-3", "dev", session.TypeAbort, `{"scope":"task","target_id":"one","reason":"enough of it","cleanup_required":false}`)
	require.Contains(t, nth(dev, 1, session.TypeAbort).text, "enough of it")
	utter(dev, "msg-4", "ada", session.TypeTaskCompletion, completing("one"))
	require.Equal(t, "rejected", refusedFor(dev, "msg-4").Type)
	require.Equal(t, wire.TaskCancelled, proceedingsOf(h.Orchestrator, "checkout").task(t, "one").State)
	utter(ada, "msg-5", "dev", session.TypeAbort, strings.Replace(ending, "checkout", "another", 1))
	require.Equal(t, "rejected", refusedFor(ada, "msg-5").Type)

	utter(ada, "msg-6", "dev", session.TypeAbort, ending)
	require.Equal(t, "msg-6", nth(dev, 2, session.TypeAbort).MessageID)
	for _, a := range actors[:3] {
		shutdown := a.Wait("shutdown", func(m *stage.Message) bool { return m.Type == "notify:shutdown" })
		require.Contains(t, string(shutdown.Payload), "its session was aborted: enough")
	}
	for _, name := range names {
		h.WaitForEvents(1, events.AgentStopped, name)
	}
	p := proceedingsOf(h.Orchestrator, "checkout")
	require.Equal(t, []string{session.Closed, "enough"}, []string{p.State, p.Reason})
	require.Equal(t, wire.TaskCancelled, p.task(t, "two").State)
	eve.Settle()
	require.Empty(t, eve.Notices("shutdown"))
	for _, name := range names {
		require.Equal(t, control.StateStopped, h.Agent(name).State)
		require.Len(t, h.Events(events.AgentStarted, name), 1)
	}

	h.Stop()
	actors = h.StartAll("ada", "dev", "rex", "eve")
	ada, dev = actors[0], actors[1]
	require.Equal(t, session.Open, proceedingsOf(h.Orchestrator, "checkout").State)
	utter(ada, "msg-7", "dev", session.TypeTaskAssignment, assigning("three"))
	require.Equal(t, "msg-7", nth(dev, 1, "").MessageID, "and nothing of before")
	h.Stop()
}

// Sessions of the file change by reloads: one is added, one gets another member, one is removed,
// and its messages remain.
//
// Rows: C-06, C-07, C-72, C-87.
func TestSessionReload(t *testing.T) {
	t.Parallel()
	agents := stage.QuickStop + stage.ScriptedAgents("ada", "dev", "rex")
	pair := sessionOf("checkout", "", "ada=architect", "dev=developer")
	attic := sessionOf("attic", "", "ada=architect", "rex=reviewer")
	h := stage.NewQuickTeam(t, "", "ada", "dev", "rex")
	h.Write("orchestrator.hcl", agents+pair)
	actors := h.StartAll("ada", "dev", "rex")
	ada, dev, rex := actors[0], actors[1], actors[2]
	utter(ada, "msg-1", "rex", session.TypeFeedback, remark("early"))
	require.Equal(t, "rejected", refusedFor(ada, "msg-1").Type)

	h.Write("orchestrator.hcl", agents+pair+attic) // one is added
	h.Ask("reload")
	require.Equal(t, "checkout\nattic\n", h.Ask("session", "ls", "-q"))
	utter(ada, "msg-2", "rex", session.TypeFeedback, remark("now"))
	require.Equal(t, "msg-2", nth(rex, 1, "").MessageID)

	h.Write("orchestrator.hcl", agents+checkout("require_review = true\nmax_iterations = 5")+attic) // one changes
	h.Ask("reload")
	require.Contains(t, h.Ask("session", "show", "checkout"), "a task is done when it is approved; 5 at most")
	utter(ada, "msg-3", "rex", session.TypeFeedback, remark("where"))
	require.Equal(t, "ambiguous_session", refusedFor(ada, "msg-3").Reason)
	ada.Say(strings.Replace(speech("msg-4", "ada", "rex", session.TypeFeedback, remark("there")), `{`, `{"session_id":"checkout",`, 1) + "\n")
	require.Equal(t, "msg-4", nth(rex, 2, "").MessageID)
	utter(ada, "msg-5", "dev", session.TypeTaskAssignment, assigning("t"))
	nth(dev, 1, session.TypeTaskAssignment)

	h.Write("orchestrator.hcl", agents+attic) // one is removed
	h.Ask("reload")
	dev.Notified("task-cancelled", "t", "")
	p := proceedingsOf(h.Orchestrator, "checkout")
	require.Equal(t, session.Closed, p.State)
	require.Equal(t, wire.TaskCancelled, p.task(t, "t").State)
	utter(ada, "msg-6", "dev", session.TypeFeedback, remark("late"))
	require.Contains(t, refusedFor(ada, "msg-6").message, "is closed")
	utter(ada, "msg-7", "rex", session.TypeFeedback, remark("only one is left"))
	require.Equal(t, "msg-7", nth(rex, 3, "").MessageID)
	require.Len(t, h.Events(events.AgentStarted, ""), 3, "nobody was started again for it")

	h.Write("orchestrator.hcl", agents+pair+attic) // it is added again
	h.Ask("reload")
	p = proceedingsOf(h.Orchestrator, "checkout")
	require.Equal(t, session.Open, p.State)
	require.GreaterOrEqual(t, len(p.said), 3)
	utter(ada, "msg-8", "dev", session.TypeFeedback, remark("again"))
	require.Equal(t, "msg-8", nth(dev, 1, session.TypeFeedback).MessageID)
	h.Stop()
}

// The environment of an agent names its session and its type there, from the first session in the
// file. For an agent without a session the variables are unset, even if inherited.
//
// Rows: C-13, C-72.
func TestSessionEnvironment(t *testing.T) {
	t.Parallel()
	hcl := stage.QuickStop
	for _, name := range []string{"ada", "dev", "eve"} {
		hcl += "\nagent \"" + name + "\" {\n  command = [\"sh\", \"-c\", \"echo $ORC_SESSION/$ORC_SESSION_TYPE; exec cat\"]\n}\n"
	}
	s := stage.New(t, hcl+sessionOf("one", "", "ada=architect", "dev=developer")+sessionOf("two", "", "dev=reviewer", "ada=developer"))
	s.Start(exec.Command("env", "ORC_SESSION=outer", "ORC_SESSION_TYPE=architect", s.Program, "up", "--json", "--state-dir", s.State(), "--timeout", "3m"))
	for name, want := range map[string]string{"ada": "one/architect", "dev": "one/developer", "eve": "/"} {
		require.Equal(t, want, s.WaitForLines(1, name)[0], name)
	}
	s.Stop()
}
