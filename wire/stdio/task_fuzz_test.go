package stdio

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
	"orchestrator/wire/trace"
)

// addDelegated adds the examples of a schema as seeds, and lines that may confuse a reader.
func addDelegated(f *testing.F, name string, more ...string) {
	for _, example := range delegatedExamples(f, name) {
		f.Add(encoded(f, example))
	}
	for _, line := range more {
		f.Add([]byte(line))
	}
}

// requireToldAll requires that a refusal has at least one error and a bounded number of them.
func requireToldAll(t *testing.T, err *wire.Error) {
	t.Helper()
	problems, _ := err.Details["errors"].([]object.Problem)
	require.LessOrEqual(t, len(problems), object.MaxProblems)
	require.NotEmpty(t, err.Complaints())
}

func FuzzTaskRequest(f *testing.F) {
	addDelegated(f, "task-request",
		`{"id":"1","type":"t","payload":{"n":1.50},"r\u006futing":{ },"observability":null,"context":{}}`,
		"{\"id\":\"1\",\n\"type\":\"t\",\"payload\":{},\"routing\":{\"delegationChain\":[ \"a\" ] ,\"ttl\":1} }")
	schema := validators(f)["task-request"]
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := wire.ReadTaskRequest(line, 64)
		if err != nil {
			requireToldAll(t, err)
			return
		}
		again := requested(t, string(r.Document))
		require.Equal(t, r, again)
		if !strangeNumbers.Match(line) {
			require.NoError(t, schema.Validate(decoded(t, r.Document)), "%s", line)
		}
		require.Equal(t, r.Document, r.Forwarded(delegation.Forwarding{}))
		requireForwarded(t, r, delegation.Forwarding{Source: "a", Target: "b", Chain: []string{"a"}})
		requireForwarded(t, r, delegation.Forwarding{Source: "a", TraceID: "t", SpanID: "s"})
		requireForwarded(t, r, delegation.Forwarding{Context: delegation.Context{ConversationID: "c", User: "u"}})
		own := *r
		own.Document = nil
		back := requested(t, string(own.Forwarded(delegation.Forwarding{})))
		own.Document, own.Notes, back.Notes = back.Document, nil, nil
		require.Equal(t, &own, back)
	})
}

func FuzzTaskAct(f *testing.F) {
	addDelegated(f, "task-act", `{"id":"1","type":"task.update","payload":{"input":null}}`, `{"id":"1","type":"task.update","payload":{"input":[1.50,{}]},"later":1}`)
	schema := validators(f)["task-act"]
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := wire.ReadTaskAct(line, 64)
		if err != nil {
			requireToldAll(t, err)
			return
		}
		if !strangeNumbers.Match(line) {
			require.NoError(t, schema.Validate(decoded(t, a.Document)), "%s", line)
		}
		spelled := delegation.AppendAct(nil, a)
		require.Equal(t, len(spelled)-1, bytes.IndexAny(spelled, "\r\n"), "one line")
		back, err := wire.ReadTaskAct(spelled, 64)
		require.Nil(t, err, "%s", spelled)
		back.Document = a.Document
		require.Equal(t, a, back)
	})
}

func FuzzTaskResponse(f *testing.F) {
	addDelegated(f, "task-response",
		`{"id":"1","status":"failed"}`, `{"id":"1","status":"input_required","input":{"question":"?","options":["a","b"]}}`,
		`{"id":"1","status":"input_required","error":{"message":"?"},"message":7}`, `{"id":"1","status":"cancelled","error":{"details":{"n":1.50}}}`,
		"{\"id\":\"1\",\"status\":\"completed\",\r\n\"result\": [ 1.50 ] }",
		`{"id":"1","status":"completed","artifacts":[{"name":"a","type":"t","content":"\u00e9\/"} , { "content" : "\"plain\"","name":"b","type":"t" }]}`)
	schema := validators(f)["task-response"]
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := wire.ReadTaskResponse(line, 64)
		if err != nil {
			requireToldAll(t, err)
			return
		}
		again := responded(t, string(r.Document))
		again.Notes = r.Notes // nothing is left to fix, so there are no notes
		if r.Status == delegation.Cancelled {
			again.Fault = r.Fault // dropped: its message becomes the reason
		}
		require.Equal(t, r, again)
		if !strangeNumbers.Match(line) {
			require.NoError(t, schema.Validate(decoded(t, r.Document)), "%s", line)
		}
		requireAnswered(t, r)
		requireAttached(t, r, len(line)%7)
	})
}

func FuzzTraceparent(f *testing.F) {
	f.Add("00-5b8aa5a2d2c872e8321cf37308d69df2-051581bf3cb55c13-01")
	f.Add("00-" + strings.Repeat("0", 32) + "-051581bf3cb55c13-00")
	f.Fuzz(func(t *testing.T, line string) {
		if c, ok := trace.Parse(line); ok {
			require.Equal(t, line[2:55], c.Traceparent()[2:]) // all versions have this part
		}
		id, span := trace.IDOf([]byte(line)), trace.SpanIDOf([]byte(line))
		require.True(t, trace.IsID(id) && trace.IsSpanID(span))
		c := trace.Context{TraceID: id, SpanID: span, Flags: byte(len(line))}
		back, ok := trace.Parse(c.Traceparent())
		require.True(t, ok)
		require.Equal(t, c, back)
	})
}
