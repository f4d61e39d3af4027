package handlers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// TestOperations: every operation can be read, and what is read is what it
// takes.
//
// Rows: B-17, B-57.
func TestOperations(t *testing.T) {
	payloads := map[string]string{
		"query-agents": `{}`, "query-tasks": `{}`, "list-questions": `{}`,
		"submit-task":   `{"type":"t","name":"n"}`,
		"get-task":      `{"taskId":"x"}`,
		"start-task":    `{"taskId":"x"}`,
		"complete-task": `{"taskId":"x"}`,
		"fail-task":     `{"taskId":"x","error":"e"}`,
		"cancel-task":   `{"taskId":"x"}`,
		"ask-user":      `{"question":"q"}`, "answer-question": `{"questionId":"q1","answer":"a"}`,
		"issue-key": `{"agent":"a"}`,
	}
	var standard []string
	for _, o := range Operations() {
		require.Contains(t, payloads, o.Name)
		r := &wire.Request{Operation: o.Name, Payload: []byte(payloads[o.Name])}
		require.Nil(t, Prepare(r, 64), o.Name)
		require.IsType(t, o.Request, r.Body, o.Name)
		require.Equal(t, o.Writes, Writes(o.Name))
		require.Equal(t, o.Writes, r.Sum != 0, "%s is recognised when it comes again", o.Name)
		require.Equal(t, o.Who != Operators, MayAgents(o.Name))
		require.NotEmpty(t, o.Summary)
		require.NotEmpty(t, o.Who.String())
		require.NotNil(t, o.Answer)
		if o.Standard {
			standard = append(standard, o.Name)
		}
		delete(payloads, o.Name)
	}
	require.Empty(t, payloads, "there are no others")
	require.Equal(t, []string{"query-agents", "query-tasks", "submit-task", "get-task", "ask-user"}, standard)
	require.False(t, Writes("no-such-thing"))
	require.False(t, MayAgents("no-such-thing"))
}
