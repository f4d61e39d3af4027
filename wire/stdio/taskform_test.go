package stdio

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
)

// TestTaskRequestsAreAnsweredWhenTheyAreRefused checks that a refused request is reported to its
// source as a failed task, in the form of all responses.
//
// Rows: D-11, D-29, D-30, D-39, K-06.
func TestTaskRequestsAreAnsweredWhenTheyAreRefused(t *testing.T) {
	refused := &wire.Error{Code: wire.CodeNotFound, Message: "m", Details: map[string]any{"pointer": "/payload/x", "fault": delegation.FaultCapabilityNotFound}}
	const fault = `{"code":"CAPABILITY_NOT_FOUND","message":"m","details":{"pointer":"/payload/x"},"recoverable":false}`
	require.Empty(t, noon.AppendReply(nil, dialect.TaskRequest, "tea-7", &wire.TaskAnswer{Document: wire.Raw(`{}`)}, nil))
	require.Empty(t, noon.AppendReply(nil, dialect.TaskRequest, "tea-7", nil, nil))
	for id, raw := range map[string]string{"tea-7": `"tea-7"`, `"`: `"\""`} {
		line := noon.AppendReply([]byte("before "), dialect.TaskRequest, id, &wire.TaskAnswer{}, refused)
		require.Equal(t, `before {"id":`+raw+`,"status":"failed","error":`+fault+"}\n", string(line))
		require.Nil(t, refusedResponse(line[len("before "):]))
	}
	require.Equal(t, `{"id":"\u0074ea-7","status":"failed","error":`+fault+"}\n", string(noon.AppendRefused(nil, dialect.TaskRequest, []byte(`"\u0074ea-7"`), refused)), "as it stood")

	reused := &wire.Error{Code: wire.CodeConflict, Message: "m", Details: map[string]any{"reason": wire.ReasonReused}}
	for _, raw := range []string{"7", "9007199254740993", "-0.50e1", ""} {
		id := []byte(raw)
		if raw == "" {
			id = nil
		}
		line := noon.AppendRefused(nil, dialect.TaskRequest, id, refused)
		require.Equal(t, string(noon.AppendRefusal(nil, id, refused)), string(line))
		require.Contains(t, string(line), `"type":"response:error"`)
	}
	line := noon.AppendReply(nil, dialect.TaskRequest, "tea-7", nil, reused)
	require.Equal(t, string(noon.AppendRefusal(nil, []byte(`"tea-7"`), reused)), string(line), "it is no word about the task that has the id")
	requireValid(t, "response:error", line)
}

// Rows: D-37, D-38, T-32.
func TestActsAreAnsweredWhenTheyAreRefused(t *testing.T) {
	refused := object.Invalid("/payload/input", "m")
	require.Empty(t, noon.AppendReply(nil, dialect.TaskAct, "tea-7", &wire.TaskAnswer{Document: wire.Raw(`{}`)}, nil))
	require.Empty(t, noon.AppendReply(nil, dialect.TaskAct, "tea-7", nil, nil))
	line := noon.AppendReply(nil, dialect.TaskAct, "tea-7", nil, refused)
	require.Equal(t, string(noon.AppendRefusal(nil, []byte(`"tea-7"`), refused)), string(line))
	require.Contains(t, string(line), `"pointer":"/payload/input"`)
	requireValid(t, "response:error", line)
	require.Equal(t, `"tea-7"`, string((&wire.Request{ID: "tea-7", Form: dialect.TaskAct}).RawID()))
}

// TestRefusalsOfDelegatedWorkAreNotHeard checks that a refusal in this dialect is log output if
// an agent prints it.
//
// Rows: B-20, T-02.
func TestRefusalsOfDelegatedWorkAreNotHeard(t *testing.T) {
	for _, given := range []bool{false, true} {
		refused := 0
		for name := range taskReaders {
			for _, example := range delegatedExamples(t, name) {
				for changed := range changes(example) {
					m, ok := whose("kitchen", given).Parse(encoded(t, changed)).(*wire.Refused)
					if !ok {
						continue
					}
					refused++
					line := noon.AppendRefused(nil, m.Form, m.ID, m.Err)
					keysOf(t, line)
					require.IsType(t, wire.Log{}, whose("kitchen", given).Parse(line), "%s", line)
				}
			}
		}
		require.Greater(t, refused, 100)
	}
}
