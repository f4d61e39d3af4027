package stdio

import (
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// TestWhatSchemasCannotSay checks rules that a schema cannot express. The schemas accept the
// lines of the first table and the readers do not; for the second table it is the reverse. The
// descriptions tell people.
func TestWhatSchemasCannotSay(t *testing.T) {
	compiled := validators(t)
	for _, test := range []struct{ name, line, refused string }{
		{"request:ask-user", `{"type":"request:ask-user","id":"1","timestamp":"2026-01-01","payload":{"question":"?","options":[{"value":"a"},{"label":"b","value":"a"}]}}`, "options[1].value stands twice"},
		{"request:list-questions", `{"type":"request:list-questions","id":"1","timestamp":"2026-02-29"}`, `"2026-02-29" is not an ISO 8601 time`},
		{"request:list-questions", `{"type":"request:list-questions","id":"1","timestamp":"20260431T000000Z"}`, `"20260431T000000Z" is not an ISO 8601 time`},
		// A repeated key is gone before a validator sees the document.
		{"request:get-task", `{"type":"request:get-task","id":"1","timestamp":"2026-01-01","payload":{"taskId":"a","taskId":"b"}}`, "taskId stands twice"},
		{"request:get-task", `{"type":"request:get-task","id":"1","id":"2","timestamp":"2026-01-01","payload":{"taskId":"a"}}`, "the key id stands twice"},
		{"request:add-dependency", `{"type":"request:add-dependency","id":"1","timestamp":"2026-01-01","payload":{"taskId":"a","dependsOnTaskId":"b","dependencyType":"input","contractKey":"k","contractKey":"l"}}`, "contractKey stands twice"},
		// There are many invisible characters, and lengths are counted in bytes.
		{"request:heartbeat", `{"type":"request:heartbeat","id":"1","timestamp":"2026-01-01","payload":{"actor":"HO:\u00ad"}}`, "actor must have visible text after each colon: \"HO:\\u00ad\""},
		{"request:heartbeat", `{"type":"request:heartbeat","id":"1","timestamp":"2026-01-01","payload":{"actor":"HO:` + strings.Repeat("é", 99) + `"}}`, "actor must not be longer than 200 bytes"},
		// Relations between two members.
		{"request:create-session", `{"type":"request:create-session","id":"1","timestamp":"2026-01-01","payload":{"session_id":"s","members":[{"agent_id":"a","agent_type":"architect"},{"agent_id":"a","agent_type":"developer"}]}}`, "members[1].agent_id stands twice"},
		{"request:create-session", `{"type":"request:create-session","id":"1","timestamp":"2026-01-01","payload":{"session_id":"s","members":[{"agent_id":"` + strings.Repeat("é", 101) + `","agent_type":"architect"}]}}`, "members[0].agent_id must not be longer than 200 bytes"},
		// The depth is limited, and every reader may set another limit.
		{"event:log", `{"type":"event:log","id":"1","payload":{"level":"info","message":"","context":{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}}}`, "it is something else"},
	} {
		require.NoError(t, compiled[test.name].Validate(decoded(t, []byte(test.line))), test.line)
		require.Equal(t, test.refused, refusal(test.name, []byte(test.line)), test.line)
	}
	for name, line := range map[string]string{
		// Numbers are read to 16 digits, as in most languages.
		"request:query-tasks":  `{"type":"request:query-tasks","id":"1","timestamp":"2026-01-01","payload":{"limit":1.00000000000000000001}}`,
		"event:progress":       `{"type":"event:progress","id":"1","payload":{"taskId":"a","progress":1.00000000000000000001}}`,
		"request:ack-messages": `{"type":"request:ack-messages","id":"1","timestamp":"2026-01-01","payload":{"seq":1.00000000000000000001}}`,
		"request:rotate-key":   `{"type":"request:rotate-key","id":"1","timestamp":"2026-01-01","payload":{"agent":"a","overlap":1e-400}}`,
		// A schema does not describe documents of other versions.
		"request:update-capabilities": `{"type":"request:update-capabilities","id":"1","timestamp":"2026-01-01","payload":{"capabilities":{"$schema":"orchestratia/capabilities/v2","languages":"all"}}}`,
		"request:submit-task":         `{"type":"request:submit-task","id":"1","timestamp":"2026-01-01","payload":{"type":"t","name":"n","structured_spec":{"$schema":"orchestratia/task-spec/v2"}}}`,
	} {
		require.Error(t, compiled[name].Validate(decoded(t, []byte(line))), line)
		require.Empty(t, refusal(name, []byte(line)), line)
	}
}

// TestCheckTakesMessagesFromAnybody checks that Check ignores the agent that a message names,
// because only Parse knows the agent of its line.
func TestCheckTakesMessagesFromAnybody(t *testing.T) {
	line := []byte(`{"type":"request:get-task","id":"1","agentId":"you","timestamp":"2026-01-01","payload":{"taskId":"a"}}`)
	require.IsType(t, &wire.Refused{}, reader().Parse(line))
	m, ok := reader().Check(line).(*wire.Request)
	require.True(t, ok)
	require.Equal(t, &wire.TaskID{TaskID: "a"}, m.Body)

	line = []byte(`{"type":"request:get-task","id":"é","agentId":"you","timestamp":"2026-01-01","payload":{}}`)
	refused, ok := reader().Check(line).(*wire.Refused)
	require.True(t, ok)
	require.Equal(t, `"é"`, string(refused.ID))
	require.Equal(t, "request:get-task", refused.Type)
	require.True(t, refused.Request)
	require.Equal(t, "/payload/taskId", refused.Err.Details["pointer"])

	refused, ok = reader().Check([]byte(`{"type":"event:error","id":"1"}`)).(*wire.Refused)
	require.True(t, ok)
	require.False(t, refused.Request)
	require.Equal(t, wire.Log{}, reader().Check([]byte("hello")))
}

// rounds returns how often to repeat a random test: n times, or n/8 under the race detector,
// where each round is several times slower. Races show early; rare cases are left to the run
// without it.
func rounds(n int) int {
	build, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return n / 8
	}
	return n
}
