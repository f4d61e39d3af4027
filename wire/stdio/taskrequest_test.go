package stdio

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// delegatedExamples returns the examples of a schema; the first has all optional members.
func delegatedExamples(t testing.TB, name string) []map[string]any {
	t.Helper()
	var found []map[string]any
	for _, example := range schemaOf(t, name)["examples"].([]any) {
		found = append(found, example.(map[string]any))
	}
	return found
}

// fullRequest returns a request with all optional members.
func fullRequest(t testing.TB) map[string]any { return delegatedExamples(t, "task-request")[0] }

// requested reads a valid request.
func requested(t testing.TB, line string) *delegation.Request {
	t.Helper()
	r, err := wire.ReadTaskRequest([]byte(line), 64)
	require.Nil(t, err, "%v\n%s", err, line)
	return r
}

// Why a line is not a message of delegated work, or nil if it is one.

func refusedRequest(line []byte) *wire.Error {
	_, err := wire.ReadTaskRequest(line, 64)
	return err
}

func refusedAct(line []byte) *wire.Error {
	_, err := wire.ReadTaskAct(line, 64)
	return err
}

func refusedResponse(line []byte) *wire.Error {
	_, err := wire.ReadTaskResponse(line, 64)
	return err
}

// complaintsOf returns all errors of a message, or nil.
func complaintsOf(err *wire.Error) []string {
	if err == nil {
		return nil
	}
	return err.Complaints()
}

// Rows: D-01, D-02, D-03, D-05, D-06, D-07, D-08, D-09, D-10, D-11, D-12, D-13, D-14.
func TestTaskRequestsAreRead(t *testing.T) {
	line := string(encoded(t, fullRequest(t)))
	r := requested(t, " "+line+"\r")
	require.NotZero(t, r.Sum)
	require.Equal(t, line, string(r.Document))
	r.Sum, r.Document = 0, nil
	require.Equal(t, &delegation.Request{
		ID: "3c1f7a52-8d04-4b6e-9a1f-5e2b7c90d114", Type: "weigh_tea", Payload: wire.Raw(`{"cups":3,"tea":"assam"}`),
		Context: delegation.Context{
			ConversationID: "breakfast-12", ParentTaskID: "9e40b6c8-21d7-4f3a-b5c2-7a8d1e6f0b39", User: "ada",
			Timestamp: "2026-11-20T09:15:00Z", Priority: "high",
		},
		Routing:       delegation.Routing{Source: "kitchen", Target: "scale", Chain: []string{"orchestrator", "kitchen"}},
		Observability: delegation.Trace{TraceID: "5b8aa5a2d2c872e8321cf37308d69df2", SpanID: "051581bf3cb55c13", Baggage: wire.Raw(`{"house":"12"}`)},
	}, r)
}

// TestTaskRequestsThatSayLittle checks that three members are enough, and that null counts as
// missing.
//
// Rows: D-04, K-23.
func TestTaskRequestsThatSayLittle(t *testing.T) {
	const bare = `{"id":"1","type":"weigh_tea","payload":{}}`
	want := requested(t, bare)
	require.Equal(t, &delegation.Request{ID: "1", Type: "weigh_tea", Payload: wire.Raw("{}"), Document: wire.Raw(bare), Sum: want.Sum}, want)
	for _, more := range []string{
		`"context":null,"routing":null,"observability":null`,
		`"context":{},"routing":{},"observability":{}`,
		`"context":{"conversationId":null,"parentTaskId":"","user":null,"timestamp":null,"priority":null}`,
		`"routing":{"source":null,"target":"","delegationChain":null}`,
		`"routing":{"delegationChain":[]}`,
		`"observability":{"traceId":null,"spanId":"","baggage":null}`,
	} {
		r := requested(t, strings.Replace(bare, "}}", "},"+more+"}", 1))
		r.Document = want.Document
		require.Equal(t, want, r, more)
	}
}

// Rows: D-01, D-02, D-03.
func TestTaskRequestsNeedThreeMembers(t *testing.T) {
	for pointer := range places(fullRequest(t), "") {
		without := with(fullRequest(t), pointer, gone)
		_, err := wire.ReadTaskRequest(encoded(t, without), 64)
		switch pointer {
		case "/id", "/type", "/payload":
			require.Equal(t, []string{pointer + ": " + pointer[1:] + " is missing"}, complaintsOf(err))
		case "/routing/delegationChain/0", "/routing/delegationChain/1": // items of a list
		default:
			require.Nil(t, err, pointer)
		}
	}
}

// TestEveryKindOfValueInTaskRequestsIsChecked replaces every value by one of another type, one
// by one. Each is refused at its place.
//
// Rows: D-01..D-03, D-05..D-14, K-23.
func TestEveryKindOfValueInTaskRequestsIsChecked(t *testing.T) {
	requireKindsChecked(t, fullRequest(t), refusedRequest, "/payload/", "/observability/baggage/")
}

// requireKindsChecked replaces every value of an example by one of another type, and requires
// that it is refused at its place. Places that begin with one of free may have any value.
func requireKindsChecked(t *testing.T, example map[string]any, read func([]byte) *wire.Error, free ...string) {
	t.Helper()
	kinds := map[string]any{"number": json.Number("-7"), "truth": true, "text": "text", "list": []any{}, "object": map[string]any{}}
	for pointer, value := range places(example, "") {
		begins := func(place string) bool { return strings.HasPrefix(pointer, place) }
		if value == nil || slices.ContainsFunc(free, begins) {
			continue
		}
		for name, other := range kinds {
			if name == kindOf(value) {
				continue
			}
			line := encoded(t, with(example, pointer, other))
			err := read(line)
			require.NotNil(t, err, "%s\n%s", pointer, line)
			require.Equal(t, wire.CodeInvalid, err.Code)
			require.Len(t, err.Details["errors"], 1, "%v\n%s", err.Complaints(), line)
			require.Equal(t, pointer, err.Details["pointer"], "%s", line)
		}
	}
}

// Rows: D-01, D-02, D-03, D-08, D-09, D-12, T-32.
func TestTaskRequestsAreRefused(t *testing.T) {
	line := string(encoded(t, fullRequest(t)))
	for _, test := range []struct{ from, to, want string }{
		{`"id":"3c1f7a52-8d04-4b6e-9a1f-5e2b7c90d114"`, `"id":""`, "/id: id must not be empty"},
		{`"id":"3c1f7a52-8d04-4b6e-9a1f-5e2b7c90d114"`, `"id":" "`, "/id: id must not be empty"},
		{`"id":"3c1f7a52-8d04-4b6e-9a1f-5e2b7c90d114"`, `"id":null`, "/id: id must not be null"},
		{`"id":"3c1f7a52-8d04-4b6e-9a1f-5e2b7c90d114"`, `"ID":"1"`, "/id: id is missing"},
		{`"id":"3c1f7a52-8d04-4b6e-9a1f-5e2b7c90d114"`, `"id":"a\u0000"`, "/id: id must not have control characters in it"},
		{`"id":"3c1f7a52-8d04-4b6e-9a1f-5e2b7c90d114"`, `"id":"` + strings.Repeat("a", 4097) + `"`, "/id: id must not be longer than 4096 bytes"},
		{`"id":"3c1f7a52-8d04-4b6e-9a1f-5e2b7c90d114"`, `"id":"1","id":"1"`, "/id: id stands twice"},
		{`"type":"weigh_tea"`, `"type":""`, "/type: type must not be empty"},
		{`"type":"weigh_tea"`, `"type":"task.status"`, "/type: type is reserved for messages about existing tasks: task.status"},
		{`"type":"weigh_tea"`, `"type":"notify:shutdown"`, "/type: type must not begin with request:, event:, response: or notify:"},
		{`"payload":{"cups":3,"tea":"assam"}`, `"payload":[]`, "/payload: payload must be an object"},
		{`"payload":{"cups":3,"tea":"assam"}`, `"payload":null`, "/payload: payload must not be null"},
		{`"payload":{"cups":3,"tea":"assam"}`, `"payload":{},"payload":{}`, "/payload: payload stands twice"},
		{`"priority":"high"`, `"priority":"High"`, `/context/priority: context.priority must be one of low, normal, high or urgent, not "High"`},
		{`"priority":"high"`, `"priority":"medium"`, `/context/priority: context.priority must be one of low, normal, high or urgent, not "medium"`},
		{`"priority":"high"`, `"priority":""`, `/context/priority: context.priority must be one of low, normal, high or urgent, not ""`},
		{`2026-11-20T09:15:00Z`, `soon`, `/context/timestamp: context.timestamp must be an ISO 8601 time, not "soon"`},
		{`2026-11-20T09:15:00Z`, ``, `/context/timestamp: context.timestamp must be an ISO 8601 time, not ""`},
		{`"delegationChain":["orchestrator",`, `"delegationChain":["",`, "/routing/delegationChain/0: routing.delegationChain[0] must not be empty"},
		{`"delegationChain":["orchestrator",`, `"delegationChain":[null,`, "/routing/delegationChain/0: routing.delegationChain[0] must be a string"},
		{`"delegationChain":["orchestrator",`, `"delegationChain":["a\n",`, "/routing/delegationChain/0: routing.delegationChain[0] must not have control characters in it"},
		{`"source":"kitchen"`, `"source":"a","source":"b"`, "/routing/source: routing.source stands twice"},
		{`"context":{`, `"context":{},"context":{`, "/context: context stands twice"},
	} {
		require.Contains(t, line, test.from)
		_, err := wire.ReadTaskRequest([]byte(strings.Replace(line, test.from, test.to, 1)), 64)
		require.Equal(t, []string{test.want}, complaintsOf(err), test.to)
	}
}

// TestEverythingThatIsWrongWithATaskRequestIsTold checks that all errors are reported together.
//
// Rows: D-01, D-03, D-08, D-09.
func TestEverythingThatIsWrongWithATaskRequestIsTold(t *testing.T) {
	_, err := wire.ReadTaskRequest([]byte(`{"type":7,"payload":"x","context":{"timestamp":1,"priority":"asap"},"routing":[],"observability":{"baggage":"b"}}`), 64)
	require.Equal(t, []string{
		"/id: id is missing", "/type: type must be a string", "/payload: payload must be an object",
		"/context/timestamp: context.timestamp must be a string", `/context/priority: context.priority must be one of low, normal, high or urgent, not "asap"`,
		"/routing: routing must be an object", "/observability/baggage: observability.baggage must be an object",
	}, complaintsOf(err))
	require.Equal(t, "id is missing", err.Message)
	require.Equal(t, "/id", err.Details["pointer"])
	for line, want := range map[string]string{
		``: "the message: it must be an object", `[]`: "the message: it must be an object",
		`{"id":`: "the message: it is not valid JSON", `{"a":{"b":{}}}`: "the message: it nests too deeply",
	} {
		_, err := wire.ReadTaskRequest([]byte(line), 2)
		require.Equal(t, []string{want}, complaintsOf(err))
	}
}

// TestPrioritiesOfTaskRequests checks the words of the protocol and their classes.
//
// Rows: D-09, K-02.
func TestPrioritiesOfTaskRequests(t *testing.T) {
	for word, class := range map[string]uint8{"low": 3, "normal": 2, "high": 1, "urgent": 0} {
		r := requested(t, `{"id":"1","type":"t","payload":{},"context":{"priority":"`+word+`"}}`)
		require.Equal(t, word, r.Context.Priority)
		require.Equal(t, class, hub.Urgency(object.Quote(r.Context.Priority)))
	}
}

// Rows: D-03, D-14, T-48, K-23.
func TestTaskRequestsAreKeptDigitForDigit(t *testing.T) {
	const payload = `{"n": 12345678901234567890,"html":"<a&b>","x":1,"e":1.00E+2,"u":"\u00e9\/","later":[null]}`
	const line = `{"id":"1","type":"t","payload":` + payload + `,"observability":{"baggage": {"k":9007199254740993}},"priority":{},"n":1.0}`
	text := []byte(strings.ReplaceAll(line, `,"`, ",\r\n\""))
	r, err := wire.ReadTaskRequest(text, 64)
	require.Nil(t, err)
	clear(text)
	const compact = `{"n":12345678901234567890,"html":"<a&b>","x":1,"e":1.00E+2,"u":"\u00e9\/","later":[null]}`
	require.Equal(t, compact, string(r.Payload), "on one line, wherever it came from")
	require.Equal(t, payload, string(requested(t, line).Payload))
	require.Equal(t, line, string(requested(t, line).Document))
	require.Equal(t, `{"k":9007199254740993}`, string(r.Observability.Baggage))
}

// TestTaskMessagesAreNothingElse checks that a message that its receiver could take for another
// kind is refused.
//
// Rows: D-02.
func TestTaskMessagesAreNothingElse(t *testing.T) {
	for more, want := range map[string]string{
		`"jsonrpc":"2.0","method":"x"`:                  "/jsonrpc: jsonrpc makes it the call of a tool",
		`"message_type":"abort"`:                        "/message_type: message_type makes it a message of a session",
		`"message_type":"x","from_agent":null`:          "/message_type: message_type makes it a message of a session",
		`"from_actor":"HO","topic":"x"`:                 "/from_actor: from_actor makes it mail",
		`"from_actor":"HO","to_actor":"x"`:              "/from_actor: from_actor makes it mail",
		`"from_actor":"HO","seq":1,"created_at":"x"`:    "/from_actor: from_actor makes it mail",
		`"method":"x","jsonrpc":"2.0","jsonrpc":"1"`:    "/jsonrpc: jsonrpc stands twice",
		`"jsonrpc":"2.0"`:                               "",
		`"jsonrpc":"1.0","method":"x"`:                  "",
		`"message_type":"x","topic":"y","seq":1`:        "",
		`"message_type":7,"message_id":"x"`:             "",
		`"from_actor":"HO","seq":1`:                     "",
		`"timestamp":"2026-11-20","agentId":"somebody"`: "",
	} {
		for line, read := range map[string]func([]byte) *wire.Error{
			`{"id":"1","type":"t","payload":{},`:           refusedRequest,
			`{"id":"1","type":"task.status","payload":{},`: refusedAct,
			`{"id":"1","status":"pending",`:                refusedResponse,
		} {
			require.Equal(t, want, strings.Join(complaintsOf(read([]byte(line+more+"}"))), "\n"), more)
		}
	}
}

// TestKeysOfTaskRequestsAreExact checks that keys are exact, and that a probable misspelling is
// noted.
//
// Rows: K-10, T-33.
func TestKeysOfTaskRequestsAreExact(t *testing.T) {
	r := requested(t, `{"id":"1","type":"t","payload":{},"Context":{},"context":{"conversation_id":"c","Priority":"urgent"},"routing":{"delegation-chain":1},"observability":{"traceID":"x","later":1}}`)
	require.Empty(t, r.Context)
	require.Empty(t, r.Routing)
	require.Empty(t, r.Observability)
	require.Equal(t, []string{
		"/context/conversation_id: context.conversation_id is ignored: it is spelled conversationId",
		"/context/Priority: context.Priority is ignored: it is spelled priority",
		"/routing/delegation-chain: routing.delegation-chain is ignored: it is spelled delegationChain",
		"/observability/traceID: observability.traceID is ignored: it is spelled traceId",
		"/Context: Context is ignored: it is spelled context",
	}, r.Notes)
	require.Empty(t, requested(t, `{"id":"1","type":"t","payload":{},"i`+strings.Repeat("_", 100)+`d":1}`).Notes)
}

// TestSumsOfTaskRequests checks that a repeat has the same sum, although its time and its span
// may differ.
//
// Rows: D-39.
func TestSumsOfTaskRequests(t *testing.T) {
	line := string(encoded(t, fullRequest(t)))
	same := requested(t, line).Sum
	for from, to := range map[string]string{
		`2026-11-20T09:15:00Z`: `2026-11-20T09:16:00Z`, `051581bf3cb55c13`: `051581bf3cb55c14`, `"id":`: `"later":1,"id":`, `"source":"kitchen",`: ``,
	} {
		require.Contains(t, line, from)
		require.Equal(t, same, requested(t, strings.Replace(line, from, to, 1)).Sum, to)
	}
	for from, to := range map[string]string{`weigh_tea`: `weigh_milk`, `"cups":3`: `"cups":3.0`, `"target":"scale"`: `"target":"scales"`} {
		require.Contains(t, line, from)
		require.NotEqual(t, same, requested(t, strings.Replace(line, from, to, 1)).Sum, to)
	}
	require.Equal(t, uint64(0xa598d2facd433bb8), requested(t, `{"id":"1","type":"t","payload":{}}`).Sum, "it is kept in records: it stays as it is")
}

// TestLongChains checks the limit of a chain, which is passed to all following requests.
//
// Rows: D-12.
func TestLongChains(t *testing.T) {
	ask := func(names ...string) *wire.Error {
		_, err := wire.ReadTaskRequest(fmt.Appendf(nil, `{"id":"1","type":"weigh","payload":{},"routing":{"delegationChain":%s}}`, encoded(t, names)), 64)
		return err
	}
	many := make([]string, delegation.MaxChain)
	for i := range many {
		many[i] = strconv.Itoa(i)
	}
	require.Nil(t, ask(many...))
	require.Equal(t, "/routing/delegationChain", ask(append(many, "one")...).Details["pointer"])
	long := strings.Repeat("n", maxIDLength)
	require.Nil(t, ask(long, long, long))
	require.NotNil(t, ask(long, long, long, long, "n"))
}
