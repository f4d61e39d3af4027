package main

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

// An agent that another library implements works on a task, and asks a person before it changes
// anything.
func TestACPAgent(t *testing.T) {
	path, err := exec.Command("go", "tool", "-n", "agent").Output() // builds it
	require.NoError(t, err)
	s := newStage(t, quick+`
agent "coder" {
  protocol    = "acp"
  command     = [`+strconv.Quote(strings.TrimSpace(string(path)))+`]
  on_turn_end = "complete"
}
`).up("--json")
	s.waitForEvents(1, events.AgentStarted, "")
	words := map[string]string{"allow": "successfully updated the configuration", "deny": "I understand you prefer not to make that change"}
	for answer, last := range words {
		id := strings.TrimSpace(s.ask("task", "add", "Improve the settings", "-q"))
		q := s.waitForQuestions(1)[0]
		require.Equal(t, id, q.Task)
		require.Equal(t, "Edit", q.Permission.Tool)
		require.Equal(t, []string{"/home/user/project/config.json"}, q.Permission.Paths)
		s.answerQuestion(q.ID, answer)
		s.waitForState(id, wire.TaskDone)
		waitForThat(t, last, func() bool { return strings.Contains(strings.Join(s.lines("coder", "stderr"), "\n"), last) })
	}
	for _, last := range words {
		require.Equal(t, 1, strings.Count(strings.Join(s.lines("coder", "stderr"), "\n"), last), "said once, for its own answer")
	}
	s.ask("agent", "stop", "coder")
}
