package why

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// TestLastHolder checks that the advice on a requeued task is a valid command. why accepts the
// agents in the status, but not servers on other machines.
func TestLastHolder(t *testing.T) {
	c := &taskCauses{
		Tried:  []tried{{Kind: events.TaskRequeued, Agent: "coder"}},
		status: &control.Status{Agents: []control.AgentView{{Name: "coder"}}},
	}
	require.Equal(t, []string{"Why coder has it no more: orchestrator why coder"}, c.lastHolder())
	c.Tried[0].Agent = "attic"
	require.Equal(t, []string{"It was with the server attic. Whether that is online: orchestrator agent servers"}, c.lastHolder())
	c.Tried[0].Kind = events.TaskFailed
	require.Nil(t, c.lastHolder())
}
