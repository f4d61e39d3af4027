package session

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// A task that is to be reviewed goes to the leader of the session, who has it done and reviewed
// until it is approved.
func TestLead(t *testing.T) {
	s := newSession(t, sessionOf("change", "  require_review = true", "lead=architect", "dev=developer", "rex=reviewer")+
		"\nagent \"lead\" {\n  command = [\"orchestrator\", \"lead\"]\n  role    = \"planner\"\n}\n"+
		playing(t, "dev", "developer")+playing(t, "rex", "reviewer -request-changes 1"))
	s.Up("--json")
	s.WaitForEvents(3, "agent.started", "")
	id := strings.TrimSpace(s.Ask("task", "add", "Write the page", "--spec", "One line.", "--criterion", "It is short", "--review", "-q"))
	s.WaitForState(id, wire.TaskDone)
	result := string(s.ShownTask(id).Result)
	require.Contains(t, result, `"verdict":"approved"`)
	require.Contains(t, result, `"reviews":2`)
	shown := s.Ask("session", "show", "change")
	require.Contains(t, shown, "changes_requested")
	require.Contains(t, s.Ask("session", "show", "change", "--json"), `"acceptance_criteria":["It is short"]`)

	// The cancellation of the task ends the work on it.
	_, stderr, code := s.Call("task", "add", "Other", "--review", "--assign", "dev")
	require.Equal(t, cli.ExitUsage, code, stderr)
	s.Ask("agent", "stop", "dev")
	id = strings.TrimSpace(s.Ask("task", "add", "Write another", "--review", "-q"))
	inner := "work-" + wire.ShortID(id) + "-1"
	stage.WaitFor(t, "the task of the developer", func() bool {
		status, _ := s.Operate("get-task", `{"taskId":"`+inner+`"}`)
		return status == http.StatusOK
	})
	s.Ask("task", "cancel", id)
	s.WaitForState(inner, wire.TaskCancelled)
}

// A task does not fail because its developer does not run. A person is asked, and it is tried
// again.
func TestLeadWithoutDeveloper(t *testing.T) {
	t.Parallel()
	s := newSession(t, sessionOf("change", "", "lead=architect", "dev=developer")+
		"\nagent \"lead\" {\n  command = [\"orchestrator\", \"lead\"]\n}\n"+
		"agent \"dev\" {\n  command = [\"./later\"]\n  capabilities {\n    max_concurrent_tasks = 0\n  }\n}\n")
	s.Up("--json")
	s.WaitForEvents(1, events.AgentGaveUp, "dev")
	s.WaitForEvents(1, events.AgentStarted, "lead")
	id := strings.TrimSpace(s.Ask("task", "add", "Write the page", "--review", "-q"))
	s.WaitForEvents(1, events.SessionAssigned, "dev")
	_, _, code := s.Call("agent", "start", "dev")
	require.Equal(t, cli.ExitNo, code)
	s.WaitForState(id, wire.TaskNeedsHuman)
	require.Contains(t, s.Ask("inbox"), "dev has not taken the message: dev is no longer running")
	folder, err := builtMembers()
	require.NoError(t, err)
	require.NoError(t, os.Link(filepath.Join(folder, "developer"), s.Path("later")))
	s.Ask("agent", "start", "dev")
	s.Ask("inbox", "answer", "q1", "it runs now")
	s.WaitForState(id, wire.TaskDone)
	s.Stop()
}

// A leader is an agent of a session.
func TestLeadAlone(t *testing.T) {
	s := stage.New(t, stage.QuickStop+stage.OneIdler)
	_, stderr, code := s.Call("lead")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "architect of a session")
	s.Up("--json")
	s.WaitForEvents(1, "agent.started", "")
	_, stderr, code = s.Call("task", "add", "Write", "--review")
	require.Equal(t, cli.ExitNo, code)
	require.Contains(t, stderr, "init --team review")
}

// A leader that follows another continues its tasks, in each phase.
func TestLeadGoesOn(t *testing.T) {
	of := "  capabilities {\n    max_concurrent_tasks = 0\n  }"
	s := newSession(t, sessionOf("change", "  require_review = true", "lead=architect", "dev=developer", "rex=reviewer")+
		"\nagent \"lead\" {\n  command = [\"orchestrator\", \"lead\"]\n}\n"+
		playing(t, "dev", "developer", of)+playing(t, "rex", "reviewer -request-changes 1", of))
	s.Up("--json")
	s.WaitForEvents(3, "agent.started", "")
	for _, idle := range []struct{ agent, phase string }{{"dev", session.PhaseAssigned}, {"rex", session.PhaseReviewing}} {
		s.Ask("agent", "stop", idle.agent)
		id := strings.TrimSpace(s.Ask("task", "add", "Write the page", "--review", "-q"))
		inner := "work-" + wire.ShortID(id) + "-1"
		stage.WaitFor(t, "the phase "+idle.phase, func() bool {
			shown := s.Ask("session", "show", "change", "--json")
			return strings.Contains(shown, inner) && strings.Contains(shown, `"phase":"`+idle.phase+`"`)
		})
		s.Ask("agent", "restart", "lead")
		s.Ask("agent", "start", idle.agent)
		s.WaitForState(id, wire.TaskDone)
		s.WaitForState(inner, wire.TaskDone)
		require.Contains(t, string(s.ShownTask(id).Result), `"reviews":2`, idle.phase)
		require.Contains(t, string(s.ShownTask(id).Result), `"verdict":"approved"`, idle.phase)
		shown := s.Ask("session", "show", "change")
		require.Contains(t, shown, inner)
		require.NotContains(t, shown, "work-"+wire.ShortID(id)+"-2")
		require.NotContains(t, shown, "refused")
	}
}
