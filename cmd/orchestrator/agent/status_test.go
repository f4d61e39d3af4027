package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/control"
	"orchestrator/wire/object"
)

// TestActivityNote checks the text of tables about a coding agent. A limit comes before a question,
// and a question before its activity.
func TestActivityNote(t *testing.T) {
	now := time.Now()
	limit := now.Add(time.Minute)
	ago := object.Timestamp(now.Add(-2*time.Minute - time.Second))
	busy := control.Activity{State: "busy", Since: ago, What: "go test\n./..."}
	asking, limited := busy, busy
	asking.Question = "q7"
	limited.Question, limited.LimitedUntil = "q7", object.Timestamp(limit)
	require.Empty(t, activityNote(nil))
	require.Empty(t, activityNote(&control.Activity{State: "idle", Since: ago}))
	require.Regexp(t, `^busy 2m\S* go test \./\.\.\.$`, activityNote(&busy))
	require.Equal(t, "waits for you q7", activityNote(&asking))
	require.Contains(t, activityNote(&limited), "limited until ")
	require.Contains(t, activityNote(&limited), limit.Format("15:04"))
	limited.LimitedBy = "its turn failed:\nno answer"
	require.Contains(t, activityNote(&limited), ": its turn failed: no answer")
}

// A team without a running agent names the command that starts one, if tasks wait.
func TestIdleTeam(t *testing.T) {
	team := func(state string, pending int, agents ...control.State) *control.Status {
		status := &control.Status{State: state}
		status.Tasks.Pending = pending
		for i, s := range agents {
			status.Agents = append(status.Agents, control.AgentView{Name: fmt.Sprintf("a%d", i), State: s})
		}
		return status
	}
	require.Equal(t, "1 pending task (orchestrator agent start a0)", idleTeam(team("running", 1, control.StateExited)))
	require.Equal(t, "2 pending tasks (orchestrator agent start a0)", idleTeam(team("running", 2, control.StateFailed, control.StateStopped)))
	require.Empty(t, idleTeam(team("running", 0, control.StateExited)))
	require.Empty(t, idleTeam(team("running", 1, control.StateExited, control.StateRunning)))
	require.Empty(t, idleTeam(team("running", 1, control.StateBackoff)))
	require.Empty(t, idleTeam(team("stopping", 1, control.StateExited)))
	require.Empty(t, idleTeam(team("running", 1)))
}
