package stdio

import (
	"bytes"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// TestTaskResponsesAreSpelled checks the responses of the orchestrator itself.
//
// Rows: D-20..D-25, D-27, D-29, D-31..D-35, T-33.
func TestTaskResponsesAreSpelled(t *testing.T) {
	none, took := int64(0), int64(2000)
	for _, test := range []struct {
		r    delegation.Response
		want string
	}{
		{delegation.Response{ID: "t-\"1\"", Status: delegation.Pending}, `{"id":"t-\"1\"","status":"pending"}`},
		{
			delegation.Response{ID: "1", Status: delegation.InProgress, Result: wire.Raw("1"), Fault: &delegation.Fault{}, Question: "?", Metadata: delegation.Metadata{StartedAt: "2026-11-20T09:15:00Z"}},
			`{"id":"1","status":"in_progress","metadata":{"startedAt":"2026-11-20T09:15:00Z"}}`,
		},
		{
			delegation.Response{
				ID: "1", Status: delegation.Completed, Result: wire.Raw(`{"n": 12345678901234567890,"h":"<&>"}`),
				Metadata:  delegation.Metadata{StartedAt: "2026-11-20T09:15:00Z", CompletedAt: "2026-11-20T09:15:02Z", DurationMS: &took, Agent: "scale", RetryCount: &none},
				Artifacts: []delegation.Artifact{{Name: "a", Type: "text/plain", Content: "<\n>"}, {Name: "b", Type: "image/png", Ref: "r"}},
			},
			`{"id":"1","status":"completed","result":{"n": 12345678901234567890,"h":"<&>"},` +
				`"metadata":{"startedAt":"2026-11-20T09:15:00Z","completedAt":"2026-11-20T09:15:02Z","duration_ms":2000,"agent":"scale","retryCount":0},` +
				`"artifacts":[{"name":"a","type":"text/plain","content":"<\n>"},{"name":"b","type":"image/png","content":"","ref":"r"}]}`,
		},
		{
			delegation.Response{ID: "1", Status: delegation.Failed, Fault: &delegation.Fault{Code: delegation.FaultAgentNotFound, Message: "There is no agent scale", Details: wire.Raw(`{"n":1.50}`), Recoverable: true}},
			`{"id":"1","status":"failed","error":{"code":"AGENT_NOT_FOUND","message":"There is no agent scale","details":{"n":1.50},"recoverable":true}}`,
		},
		{
			delegation.Response{ID: "1", Status: delegation.Failed},
			`{"id":"1","status":"failed","error":{"code":"INTERNAL_ERROR","message":"The task failed, and its agent gave no reason","recoverable":false}}`,
		},
		{delegation.Response{ID: "1", Status: delegation.Cancelled}, `{"id":"1","status":"cancelled"}`},
		{
			delegation.Response{ID: "1", Status: delegation.Cancelled, Fault: &delegation.Fault{Code: delegation.FaultTimeout, Message: "m"}, Question: "Enough"},
			`{"id":"1","status":"cancelled","message":"Enough"}`,
		},
		{
			delegation.Response{ID: "1", Status: delegation.InputRequired, Question: "Milk?", Options: []wire.Option{{Label: "Yes", Value: "yes"}}},
			`{"id":"1","status":"input_required","message":"Milk?","input":{"question":"Milk?","options":[{"label":"Yes","value":"yes"}]}}`,
		},
		{
			delegation.Response{ID: "1", Status: delegation.InputRequired},
			`{"id":"1","status":"input_required","message":"The agent needs input to continue, and did not specify it"}`,
		},
	} {
		line := delegation.AppendResponse([]byte("x"), &test.r)
		require.Equal(t, "x"+test.want+"\n", string(line))
		require.Nil(t, refusedResponse(line[1:]))
	}
}

// requireAnswered requires that a response can be encoded as one line and decoded to the same
// value.
func requireAnswered(t *testing.T, r *delegation.Response) {
	t.Helper()
	line := delegation.AppendResponse(nil, r)
	require.Equal(t, len(line)-1, bytes.IndexAny(line, "\r\n"), "one line")
	back, err := wire.ReadTaskResponse(line, 64)
	require.Nil(t, err, "%s", line)
	want := *r
	want.Document, want.Notes, back.Notes = back.Document, nil, nil
	if r.Status == delegation.Cancelled {
		want.Fault = nil // the error is dropped
	}
	require.Equal(t, &want, back, "%s", line)
}

// Rows: D-18, D-19, D-27, D-29, D-31..D-35.
func TestTaskResponsesReadAgain(t *testing.T) {
	for _, example := range delegatedExamples(t, "task-response") {
		requireAnswered(t, responded(t, string(encoded(t, example))))
	}
}

// TestRefusalsAsFaults checks the encoding of refusals in this dialect.
//
// Rows: D-29, D-30, K-06.
func TestRefusalsAsFaults(t *testing.T) {
	for _, test := range []struct {
		why  wire.Error
		want delegation.Fault
	}{
		{wire.Error{Code: wire.CodeInvalid, Message: "m", Details: map[string]any{"pointer": "/id"}}, delegation.Fault{Code: "INVALID_INPUT", Message: "m", Details: wire.Raw(`{"pointer":"/id"}`)}},
		{wire.Error{Code: wire.CodeMalformed, Message: "m"}, delegation.Fault{Code: "INVALID_INPUT", Message: "m"}},
		{wire.Error{Code: wire.CodeNotFound, Message: "m", Hint: "look"}, delegation.Fault{Code: "AGENT_NOT_FOUND", Message: "m", Details: wire.Raw(`{"hint":"look"}`)}},
		{wire.Error{Code: wire.CodeUnknownType, Message: "m"}, delegation.Fault{Code: "CAPABILITY_NOT_FOUND", Message: "m"}},
		{wire.Error{Code: wire.CodeConflict, Message: "m"}, delegation.Fault{Code: "INVALID_INPUT", Message: "m", Details: wire.Raw(`{"reason":"conflict"}`)}},
		{wire.Error{Code: wire.CodeConflict, Message: "m", Details: map[string]any{"reason": "cycle"}}, delegation.Fault{Code: "TASK_GRAPH_CYCLE", Message: "m", Details: wire.Raw(`{"reason":"cycle"}`)}},
		{wire.Error{Code: wire.CodeTooLarge, Message: "m"}, delegation.Fault{Code: "INVALID_INPUT", Message: "m", Details: wire.Raw(`{"reason":"too_large"}`)}},
		{wire.Error{Code: wire.CodeDenied, Message: "m"}, delegation.Fault{Code: "DELEGATION_FAILED", Message: "m", Details: wire.Raw(`{"reason":"denied"}`)}},
		{wire.Error{Code: wire.CodeLimited, Message: "m"}, delegation.Fault{Code: "RATE_LIMITED", Message: "m", Recoverable: true}},
		{wire.Error{Code: wire.CodeTimeout, Message: "m"}, delegation.Fault{Code: "TIMEOUT", Message: "m", Recoverable: true}},
		{wire.Error{Code: wire.CodeInternal, Message: "m"}, delegation.Fault{Code: "INTERNAL_ERROR", Message: "m"}},
		{
			wire.Error{Code: wire.CodeNotFound, Message: "m", Details: map[string]any{"fault": "CAPABILITY_NOT_FOUND", "type": "t"}},
			delegation.Fault{Code: "CAPABILITY_NOT_FOUND", Message: "m", Details: wire.Raw(`{"type":"t"}`)},
		},
		{wire.Error{Code: wire.CodeConflict, Message: "m", Details: map[string]any{"fault": "AGENT_BUSY"}}, delegation.Fault{Code: "AGENT_BUSY", Message: "m", Recoverable: true}},
		{wire.Error{Code: wire.CodeConflict, Message: "m", Details: map[string]any{"fault": "AGENT_UNAVAILABLE"}}, delegation.Fault{Code: "AGENT_UNAVAILABLE", Message: "m", Recoverable: true}},
		{
			wire.Error{Code: wire.CodeConflict, Message: "m", Details: map[string]any{"fault": "DELEGATION_FAILED", "reason": "cycle"}},
			delegation.Fault{Code: "DELEGATION_FAILED", Message: "m", Details: wire.Raw(`{"reason":"cycle"}`)},
		},
		{wire.Error{Code: wire.CodeConflict, Message: "m", Details: map[string]any{"fault": 7}}, delegation.Fault{Code: "INVALID_INPUT", Message: "m", Details: wire.Raw(`{"fault":7,"reason":"conflict"}`)}},
	} {
		before := maps.Clone(test.why.Details)
		require.Equal(t, &test.want, delegation.FaultOf(&test.why))
		require.Equal(t, before, test.why.Details, "it may be said again in another form")
	}
}
