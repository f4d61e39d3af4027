package stdio

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// TestTaskRequestsAreForwarded checks that only the routing and the span change, for any source
// and any form.
//
// Rows: D-05, D-06, D-07, D-12, D-13, D-14, D-15, T-48, T-50.
func TestTaskRequestsAreForwarded(t *testing.T) {
	way := delegation.Forwarding{Source: "kitchen", Target: "scale", Chain: []string{"orchestrator", "kitchen"}}
	const routing = `"routing":{"source":"kitchen","target":"scale","delegationChain":["orchestrator","kitchen"]}`
	for _, test := range []struct {
		name, line, want string
		f                delegation.Forwarding
	}{
		{"what is missing is added", `{"id":"1","type":"t","payload":{}}`, `{"id":"1","type":"t","payload":{},` + routing + `}`, way},
		{
			"null is nothing", `{"routing":null,"id":"1","type":"t","payload":{}}`,
			`{` + routing + `,"id":"1","type":"t","payload":{}}`, way,
		},
		{
			"an empty block", `{"id":"1","routing" : { } ,"type":"t","payload":{}}`,
			`{"id":"1","routing" : { "source":"kitchen","target":"scale","delegationChain":["orchestrator","kitchen"]} ,"type":"t","payload":{}}`,
			way,
		},
		{
			"everything else stays",
			`{ "id":"1","type":"t","payload":{"n":12345678901234567890,"h":"<a&b>"},"r\u006futing":{"ttl":3.0,"target" : "x","source":"y","delegationChain":[ "z" ]},` +
				`"observability":{"traceId":"T","spanId":"S","baggage":{"b":1.50},"sampled":true},"later":[1,{}] }`,
			`{ "id":"1","type":"t","payload":{"n":12345678901234567890,"h":"<a&b>"},"r\u006futing":{"ttl":3.0,"target" : "scale","source":"kitchen","delegationChain":["orchestrator","kitchen"]},` +
				`"observability":{"traceId":"T","spanId":"S","baggage":{"b":1.50},"sampled":true},"later":[1,{}] }`,
			way,
		},
		{
			"a span of our own", `{"id":"1","type":"t","payload":{},"observability":{"traceId":"T","spanId":"S","baggage":{"b":1.50}}}`,
			`{"id":"1","type":"t","payload":{},"observability":{"traceId":"T","spanId":"s2","baggage":{"b":1.50}}}`, delegation.Forwarding{SpanID: "s2"},
		},
		{
			"a trace of our own", `{"id":"1","type":"t","payload":{},"observability":null}`,
			`{"id":"1","type":"t","payload":{},"observability":{"traceId":"t1","spanId":"s\"1"}}`, delegation.Forwarding{TraceID: "t1", SpanID: `s"1`},
		},
		{
			"what is missing in the context", `{"id":"1","type":"t","payload":{},"context":{"user":null,"parentTaskId":"p","later":1.0}}`,
			`{"id":"1","type":"t","payload":{},"context":{"user":"ada","parentTaskId":"p","later":1.0,"conversationId":"c"}}`,
			delegation.Forwarding{Context: delegation.Context{ConversationID: "c", ParentTaskID: "q", User: "ada", Timestamp: "2026-11-20", Priority: "urgent"}},
		},
		{
			"no context at all", `{"id":"1","type":"t","payload":{}}`,
			`{"id":"1","type":"t","payload":{},"context":{"conversationId":"c"}}`, delegation.Forwarding{Context: delegation.Context{ConversationID: "c"}},
		},
		{
			"a context that says it all", `{"id":"1","type":"t","payload":{},"context":{ "conversationId":"c","parentTaskId":"p","user":"u" }}`,
			`{"id":"1","type":"t","payload":{},"context":{ "conversationId":"c","parentTaskId":"p","user":"u" }}`,
			delegation.Forwarding{Context: delegation.Context{ConversationID: "d", ParentTaskID: "q", User: "ada"}},
		},
		{"nothing is said anew", `{"id":"1","type":"t","payload":{},"routing":{"target":"x"}}`, `{"id":"1","type":"t","payload":{},"routing":{"target":"x"}}`, delegation.Forwarding{}},
	} {
		r := requested(t, test.line)
		require.Equal(t, test.want, string(r.Forwarded(test.f)), test.name)
		require.Equal(t, test.line, string(r.Document), "%s: the request stays as it was", test.name)
		requireForwarded(t, r, test.f)
	}
}

// requireForwarded requires that a forwarded request is one line and the same request, except
// for the members that f sets.
func requireForwarded(t *testing.T, r *delegation.Request, f delegation.Forwarding) {
	t.Helper()
	line := r.Forwarded(f)
	require.NotContains(t, string(line), "\n")
	require.NotContains(t, string(line), "\r")
	back, err := wire.ReadTaskRequest(line, 64)
	require.Nil(t, err, "%s", line)
	want := *r
	replace := func(what *string, with string) {
		if with != "" {
			*what = with
		}
	}
	replace(&want.Routing.Source, f.Source)
	replace(&want.Routing.Target, f.Target)
	replace(&want.Observability.TraceID, f.TraceID)
	replace(&want.Observability.SpanID, f.SpanID)
	fill := func(what *string, with string) {
		if *what == "" {
			*what = with
		}
	}
	fill(&want.Context.ConversationID, f.Context.ConversationID)
	fill(&want.Context.ParentTaskID, f.Context.ParentTaskID)
	fill(&want.Context.User, f.Context.User)
	if len(f.Chain) > 0 {
		want.Routing.Chain = f.Chain
	}
	want.Document, want.Sum = back.Document, back.Sum
	require.Equal(t, &want, back)
	require.Equal(t, line, back.Forwarded(f), "once more changes nothing")
	before, _, _ := object.Scan(r.Document, 64, nil)
	after, _, _ := object.Scan(line, 64, nil)
	for i, m := range before {
		if key := string(m.Key); key != "routing" && key != "observability" && key != "context" {
			require.Equal(t, m, after[i], key)
		}
	}
}

// TestTaskRequestsOfOurOwn checks the encoding of a request of the orchestrator itself.
//
// Rows: D-01..D-14.
func TestTaskRequestsOfOurOwn(t *testing.T) {
	want := requested(t, string(encoded(t, fullRequest(t))))
	own := *want
	own.Document = nil
	var document any
	require.NoError(t, json.Unmarshal(own.Forwarded(delegation.Forwarding{}), &document))
	require.JSONEq(t, string(want.Document), string(encoded(t, document)))
	require.Equal(t,
		`{"id":"1","type":"t","payload":{},"routing":{"target":"scale"}}`,
		string((&delegation.Request{ID: "1", Type: "t"}).Forwarded(delegation.Forwarding{Target: "scale"})))
	require.Equal(t,
		`{"id":"1","type":"t","payload":{"n":1.0},"observability":{"baggage":{"b":1.50},"spanId":"s"}}`,
		string((&delegation.Request{ID: "1", Type: "t", Payload: wire.Raw(`{"n":1.0}`), Observability: delegation.Trace{Baggage: wire.Raw(`{"b":1.50}`)}}).Forwarded(delegation.Forwarding{SpanID: "s"})))
	require.NotContains(t, string(own.Forwarded(delegation.Forwarding{Source: strings.Repeat("a\n", 3)})), "\n")
}
