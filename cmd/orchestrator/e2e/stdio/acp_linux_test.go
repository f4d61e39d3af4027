package stdio

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// An agent that another library implements works on a task, and asks a person before it changes
// anything.
func TestACPAgent(t *testing.T) {
	path, err := exec.Command("go", "tool", "-n", "agent").Output() // builds it
	require.NoError(t, err)
	s := stage.New(t, stage.QuickStop+`
agent "coder" {
  protocol    = "acp"
  command     = [`+strconv.Quote(strings.TrimSpace(string(path)))+`]
  on_turn_end = "complete"
}
`).Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "")
	words := map[string]string{"allow": "successfully updated the configuration", "deny": "I understand you prefer not to make that change"}
	for answer, last := range words {
		id := strings.TrimSpace(s.Ask("task", "add", "Improve the settings", "-q"))
		q := s.WaitForQuestions(1)[0]
		require.Equal(t, id, q.Task)
		require.Equal(t, "Edit", q.Permission.Tool)
		require.Equal(t, []string{"/home/user/project/config.json"}, q.Permission.Paths)
		s.AnswerQuestion(q.ID, answer)
		s.WaitForState(id, wire.TaskDone)
		stage.WaitFor(t, last, func() bool { return strings.Contains(strings.Join(s.Lines("coder", "stderr"), "\n"), last) })
	}
	for _, last := range words {
		require.Equal(t, 1, strings.Count(strings.Join(s.Lines("coder", "stderr"), "\n"), last), "said once, for its own answer")
	}
	s.Ask("agent", "stop", "coder")
}
