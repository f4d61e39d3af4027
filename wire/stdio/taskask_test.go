package stdio

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
)

// Rows: D-01, D-10, D-37, D-38, T-32.
func TestWhatIsAskedAboutDelegatedWorkIsRead(t *testing.T) {
	request := string(encoded(t, fullRequest(t)))
	for _, test := range []struct {
		operation, payload string
		want               any
	}{
		{"submit-task-request", request, requested(t, request)},
		{"submit-task-request", ` { "id":"1","type":"t","payload":{"n":1.50} } `, requested(t, `{ "id":"1","type":"t","payload":{"n":1.50} }`)},
		{"get-task-response", `{"taskId":"a","later":1}`, &wire.GetTaskResponse{TaskID: "a"}},
		{"update-task-request", `{"taskId":"a","input":{"n":1.50}}`, &wire.UpdateTaskRequest{TaskID: "a", Input: wire.Raw(`{"n":1.50}`)}},
		{"update-task-request", `{"taskId":"a","input":null}`, &wire.UpdateTaskRequest{TaskID: "a", Input: wire.Raw("null")}},
		{"query-tasks", `{"conversationId":"c"}`, &wire.QueryTasks{ConversationID: "c"}},
		{"submit-task", `{"type":"t","name":"n","observability":null}`, &wire.SubmitTask{Type: "t", Name: "n"}},
		{"submit-task", `{"type":"t","name":"n","observability":{}}`, &wire.SubmitTask{Type: "t", Name: "n", Observability: &delegation.Trace{}}},
		{
			"submit-task", `{"type":"t","name":"n","observability":{"traceId":"T","spanId":"S","baggage":{"n":1.50},"later":1}}`,
			&wire.SubmitTask{Type: "t", Name: "n", Observability: &delegation.Trace{TraceID: "T", SpanID: "S", Baggage: wire.Raw(`{"n":1.50}`)}},
		},
	} {
		room := []byte(test.payload)
		body, err := wire.ReadRequest(test.operation, room, 64)
		clear(room)
		require.Nil(t, err, "%s %s", test.operation, test.payload)
		require.Equal(t, test.want, body, "%s %s", test.operation, test.payload)
	}
}

// TestWhatIsAskedAboutDelegatedWorkIsRefused checks that errors point into the request, and that
// all of them are reported.
//
// Rows: D-01, D-03, D-10, D-14, T-32.
func TestWhatIsAskedAboutDelegatedWorkIsRefused(t *testing.T) {
	big := `{"a":"` + strings.Repeat("a", 16<<10) + `"}`
	for _, test := range []struct{ operation, payload, want string }{
		{"submit-task-request", `[]`, "/payload: payload: it must be an object"},
		{"submit-task-request", `{"id":7,"payload":{}}`, "/payload/id: id must be a string\n/payload/type: type is missing"},
		{"submit-task-request", `{"id":"1","type":"t","payload":{},"routing":{"source":7}}`, "/payload/routing/source: routing.source must be a string"},
		{"submit-task-request", `{"id":"1","type":"task.status","payload":{}}`, "/payload/type: type is reserved for messages about existing tasks: task.status"},
		{"submit-task-request", `{"id":"1","id":"1","type":"t","payload":{}}`, "/payload/id: id stands twice"},
		{"submit-task-request", `{"id":"1","type":"t","payload":{},"observability":{"baggage":` + big + `}}`, "/payload/observability/baggage: observability.baggage must not be longer than 16384 bytes"},
		{"get-task-response", `{}`, "/payload/taskId: taskId is missing"},
		{"update-task-request", `{"taskId":"a"}`, "/payload/input: input is missing"},
		{"update-task-request", `{"taskId":"a","input":1,"input":1}`, "/payload/input: input stands twice"},
		{"update-task-request", `{"taskId":"a","input":null,"input":null}`, "/payload/input: input stands twice"},
		{"query-tasks", `{"conversationId":7}`, "/payload/conversationId: conversationId must be a string"},
		{"submit-task", `{"type":"t","name":"n","observability":"x"}`, "/payload/observability: observability must be an object"},
		{"submit-task", `{"type":"t","name":"n","observability":{"spanId":"\u0000","baggage":[]}}`, "/payload/observability/spanId: observability.spanId must not have control characters in it\n/payload/observability/baggage: observability.baggage must be an object"},
		{"submit-task", `{"type":"t","name":"n","observability":{"baggage":` + big + `}}`, "/payload/observability/baggage: observability.baggage must not be longer than 16384 bytes"},
		{"submit-task", `{"type":"t","observability":{"baggage":[]}}`, "/payload/name: name is missing"},
	} {
		body, err := wire.ReadRequest(test.operation, []byte(test.payload), 64)
		require.Nil(t, body)
		require.NotNil(t, err, "%s %.80s", test.operation, test.payload)
		require.Equal(t, wire.CodeInvalid, err.Code)
		require.Equal(t, test.want, strings.Join(err.Complaints(), "\n"), "%s %.80s", test.operation, test.payload)
	}
	r := reader()
	refused, ok := r.Check([]byte(`{"type":"request:submit-task-request","id":"r1","timestamp":"2026-11-20","payload":{"id":"1","type":"t","payload":{},"context":{"priority":"asap"}}}`)).(*wire.Refused)
	require.True(t, ok)
	require.Equal(t, "/payload/context/priority", refused.Err.Details["pointer"])
}

// TestTaskAnswersAreTheirDocument checks that an answer is encoded as the task response,
// unchanged.
//
// Rows: D-18, D-36.
func TestTaskAnswersAreTheirDocument(t *testing.T) {
	const document = `{"id":"tea-7","status":"completed","result":{"n":1.50,"h":"<&>"},"later":[1]}`
	answer := wire.TaskAnswer{Document: wire.Raw(document), Trace: &delegation.Trace{TraceID: "trace-1"}}
	require.Equal(t, "tea-7", answer.TaskID())
	text, err := object.Encode(&answer)
	require.NoError(t, err)
	require.Equal(t, document, string(text), "its place in a trace goes beside it")
	var back wire.TaskAnswer
	require.NoError(t, object.Decode(text, &back))
	clear(text)
	require.Equal(t, wire.TaskAnswer{Document: wire.Raw(document)}, back)
	for _, none := range []string{``, `[]`, `{}`, `{"id":7}`, `{"id":null}`, `{"id":"a","id":"b"}`} {
		require.Empty(t, (&wire.TaskAnswer{Document: wire.Raw(none)}).TaskID(), none)
	}
	require.Error(t, object.Decode([]byte(`{"id":`), &back))
	line := noon.AppendReply(nil, dialect.Native, "r1", &back, nil)
	require.Contains(t, string(line), `"payload":`+document)
	requireValid(t, "response:success", line)
	require.IsType(t, wire.Log{}, reader().Parse(line))
}

// TestDelegationIsShownWithATask checks that lists omit large members, and that missing members
// are omitted everywhere.
//
// Rows: D-05, D-07, D-12, D-14, D-43.
func TestDelegationIsShownWithATask(t *testing.T) {
	for _, d := range []*wire.Details{{Context: &delegation.Context{User: "ada"}}, {Routing: &delegation.Routing{Source: "a"}}, {Observability: &delegation.Trace{TraceID: "t"}}} {
		require.Same(t, d, d.Filled())
		require.Nil(t, d.Brief())
		d = d.Copy()
		d.ProjectID = "p"
		require.Equal(t, &wire.Details{ProjectID: "p"}, d.Brief())
	}
	require.Nil(t, new(wire.Details).Filled())
	task := bareTask
	task.Details = &fullDetails
	const want = `"context":{"conversationId":"c","parentTaskId":"t9","user":"ada","timestamp":"2026-11-20","priority":"urgent"},` +
		`"routing":{"source":"planner","target":"coder","delegationChain":["planner"]},"observability":{"traceId":"t","spanId":"s","baggage":{"n":1.0}}`
	text, err := object.Encode(&task)
	require.NoError(t, err)
	require.Contains(t, string(text), want)
	text, err = object.Encode(task.Hub())
	require.NoError(t, err)
	require.Contains(t, string(text), want)
	require.True(t, json.Valid(text))
}
