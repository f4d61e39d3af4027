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
		"issue-key": `{"agent":"a"}`, "rotate-key": `{"agent":"a","overlap":1000}`, "revoke-key": `{"id":"k"}`, "list-keys": `{}`,
		"issue-registration": `{}`, "issue-token": `{"sub":"ann"}`, "revoke-token": `{"id":"t"}`, "list-tokens": `{}`,
		"update-task":         `{"taskId":"x","name":"n"}`,
		"assign-task":         `{"taskId":"x","agent":"a"}`,
		"auto-assign":         `{"taskId":"x"}`,
		"match-agents":        `{"taskId":"x"}`,
		"poll-tasks":          `{}`,
		"check-tasks":         `{}`,
		"request-help":        `{"taskId":"x","question":"q"}`,
		"submit-plan":         `{"taskId":"x","plan":"p"}`,
		"approve-plan":        `{"taskId":"x"}`,
		"revise-plan":         `{"taskId":"x","feedback":"f"}`,
		"add-dependency":      `{"taskId":"x","dependsOnTaskId":"y"}`,
		"remove-dependency":   `{"taskId":"x","dependencyId":"y"}`,
		"add-note":            `{"taskId":"x","content":"c"}`,
		"list-notes":          `{"taskId":"x"}`,
		"update-capabilities": `{}`,
		"query-servers":       `{}`,
		"register-agent":      `{"name":"n","registration_token":"t"}`,
		"send-message":        `{"to_actor":"GO","topic":"a.b","payload":{}}`,
		"poll-messages":       `{}`, "ack-messages": `{"seq":1}`, "heartbeat": `{}`, "list-actors": `{}`, "list-topics": `{}`,
		"submit-task-request": `{"id":"x","type":"t","payload":{}}`, "get-task-response": `{"taskId":"x"}`,
		"update-task-request":  `{"taskId":"x","input":null}`,
		"send-session-message": `{"message":{}}`, "get-session": `{}`, "list-sessions": `{}`, "list-reviews": `{}`,
		"create-session": `{"session_id":"s","members":[]}`,
	}
	var standard []string
	for _, o := range Operations() {
		require.Contains(t, payloads, o.Name)
		r := &wire.Request{Operation: o.Name, Payload: []byte(payloads[o.Name])}
		require.Nil(t, Prepare(r, 64), o.Name)
		require.IsType(t, o.Request, r.Body, o.Name)
		require.Equal(t, o.Writes, Writes(o.Name))
		require.Equal(t, o.Writes, r.Sum != 0, "%s is recognised when it comes again", o.Name)
		require.Equal(t, o.Who <= Agents || o.Who == Actors, MayAgents(o.Name))
		require.Equal(t, o.Who == Actors, MayOutsiders(o.Name))
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
