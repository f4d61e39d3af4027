package stdio

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

func reader() *Reader {
	return &Reader{
		Agent: "me", Depth: 64,
		Capability: func(name string) bool { return name == "weigh_salt" },
		Given:      func(id string) bool { return strings.HasPrefix(id, "mine") },
	}
}

// read returns a short description of a parsed line.
func read(line string) string {
	switch m := reader().Parse([]byte(line)).(type) {
	case wire.Log:
		return "log"
	case *wire.Request:
		return []string{"request ", "mail ", "tool ", "session ", "task ", "act "}[m.Form] + m.Operation
	case *wire.AgentEvent:
		return "event " + m.Name
	case *wire.Refused:
		return fmt.Sprintf("refused %s %s", m.Err.Code, m.ID)
	case *wire.Answered:
		if m.Err != nil {
			return "refused at once"
		}
		return "replied"
	case *wire.Session:
		if m.Err == nil {
			return "session"
		}
		return fmt.Sprintf("session %s %s", m.Err.Code, m.RawID)
	}
	return "?"
}

// TestDialects checks the rules of Reader, one by one, with their hard cases.
//
// Rows: B-03, B-04, B-05, B-12, B-17, B-18, B-19, B-20, B-84, D-02, D-17, D-18, E-84, K-10, T-02, T-03, T-32.
func TestDialects(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		// 0: not one object
		{``, "log"}, {`hello`, "log"}, {`42`, "log"}, {`"text"`, "log"}, {`null`, "log"}, {`true`, "log"},
		{`[{"type":"request:get-task"}]`, "log"}, {`{"type":"request:x"}{"type":"request:y"}`, "log"}, {`{"type":`, "log"},
		{"{\"type\":\"request:x\",\"id\":\"\xff\"}", "log"},
		// 1: requests and events
		{`{"type":"request:query-agents","id":"1","timestamp":"2026-01-01T00:00:00Z","payload":{}}`, "request query-agents"},
		{`{"type":"request:nope","id":"1","timestamp":"2026-01-01T00:00:00Z"}`, "request nope"},
		{`{"type":"event:progress","id":"1","timestamp":"2026-01-01T00:00:00Z","payload":{}}`, "event progress"},
		{`  {"type":"event:log","id":"1"}  `, "event log"},
		{`{"t\u0079pe":"request\u003aquery-agents","id":"1","timestamp":"2026-01-01"}`, "request query-agents"},
		// 2: messages that only the orchestrator sends
		{`{"type":"response:success","id":"1","correlationId":"2","timestamp":"x","payload":{}}`, "log"},
		{`{"type":"response:error","id":"1"}`, "log"},
		{`{"type":"notify:task-assigned","id":"1","timestamp":"x","payload":{}}`, "log"},
		// 3: tools
		{`{"jsonrpc":"2.0","method":"tools/call","id":1,"params":{"name":"bus_poll"}}`, "tool poll-messages"},
		{`{"jsonrpc":"2.0","method":"ping","id":1,"from_actor":"GO","topic":"t"}`, "replied"},
		{`{"jsonrpc":"2.0","method":"bus_send","id":1}`, "refused at once"},
		{`{"jsonrpc":"1.0","method":"ping","id":1}`, "log"},
		{`{"jsonrpc":2.0,"method":"ping","id":1}`, "log"},
		{`{"jsonrpc":"2.0","id":1}`, "log"},
		{`{"type":"info","id":"1","jsonrpc":"2.0","method":"ping"}`, "replied"},
		{`{"type":"notify:x","id":"1","jsonrpc":"2.0","method":"ping"}`, "log"},
		// 4: session messages, even with an unknown type beside their other keys (e)
		{`{"message_type":"task_assignment"}`, "session invalid "},
		{`{"message_type":"acknowledgment","message_id":"m"}`, `session invalid "m"`},
		{`{"message_type":"acknowledgement","message_id":"msg-1"}`, `session invalid "msg-1"`},
		{`{"message_type":"status_query","message_id":"msg-1","timestamp":"2026-01-01","from_agent":{"agent_id":"me","agent_type":"developer"},"to_agent":{"agent_id":"you","agent_type":"developer"},"payload":{}}`, "session"},
		{`{"message_type":"anything"}`, "log"},
		{`{"message_type":7,"message_id":"m"}`, "log"},
		// 5, 6: mail and its echo
		{`{"seq":1,"created_at":"x","from_actor":"GO","topic":"t"}`, "log"},
		{`{"seq":1,"created_at":"x","from_actor":"GO","message_type":"abort"}`, "session invalid "},
		{`{"from_actor":"GO","topic":"t"}`, "mail send-message"},
		{`{"from_actor":"GO","to_actor":"S:x"}`, "mail send-message"},
		{`{"from_actor":7,"to_actor":"S:x","seq":1}`, "mail send-message"},
		{`{"from_actor":"GO","topic":"t","type":"weigh_salt","id":"1","payload":{}}`, "mail send-message"},
		{`{"from_actor":"GO","topic":"t","topic":"t"}`, "log"},
		{`{"from_actor":"GO"}`, "log"}, {`{"topic":"t","to_actor":"GO"}`, "log"},
		{`{"FROM_ACTOR":"GO","topic":"t"}`, "log"},
		// 7 against 9 (a)
		{`{"type":"weigh_salt","id":"1","payload":{}}`, "task submit-task-request"},
		{`{"type":"weigh_salt","id":"1","timestamp":"2026-01-01T00:00:00Z","payload":{}}`, "task submit-task-request"},
		{`{"type":"query-agents","id":"1","timestamp":"2026-01-01T00:00:00Z","payload":{}}`, `refused unknown_type "1"`},
		{`{"type":"query-agents","id":"1","timestamp":"2026-01-01T00:00:00Z","payload":{},"routing":{}}`, "task submit-task-request"},
		{`{"type":"query-agents","id":"1","timestamp":"2026-01-01T00:00:00Z","payload":{},"routing":null}`, `refused unknown_type "1"`},
		{`{"type":"query-agents","id":"1","timestamp":"2026-01-01T00:00:00Z","payload":{},"context":{}}`, "task submit-task-request"},
		{`{"type":"query-agents","id":"1","timestamp":"2026-01-01T00:00:00Z","payload":{},"observability":{}}`, "task submit-task-request"},
		{`{"type":"weigh_salt","id":"1"}`, `refused unknown_type "1"`},
		{`{"type":"weigh_salt","id":"1","payload":[]}`, `refused invalid "1"`},
		{`{"type":"weigh_salt","id":7,"payload":{}}`, `refused invalid 7`},
		{`{"type":"weigh_salt","id":{},"payload":{}}`, `refused invalid `},
		// 7: an agent cannot request a task that it has (c), and its acts are not requests
		{`{"type":"weigh_salt","id":"mine","payload":{}}`, "log"},
		{`{"type":"weigh_salt","id":"mine","payload":7,"routing":{"source":"you"}}`, "log"},
		{`{"type":"weigh_salt","id":"1","payload":{},"routing":{"source":"you"}}`, `refused denied "1"`},
		{`{"type":"task.status","id":"1","payload":{}}`, "act get-task-response"},
		{`{"type":"task.update","id":"1","payload":{"input":null}}`, "act update-task-request"},
		{`{"type":"task.cancel","id":"1","timestamp":"2026-01-01T00:00:00Z","payload":{}}`, "act cancel-task"},
		{`{"type":"task.status","id":"1"}`, `refused invalid "1"`},
		{`{"type":"task.status","id":"mine","payload":{}}`, "log"},
		{`{"type":"task.status","id":"mine"}`, "log"},
		{`{"type":"task.status","payload":{}}`, "log"},
		{`{"type":"task.report","id":"1","timestamp":"2026-01-01T00:00:00Z","payload":{}}`, `refused unknown_type "1"`},
		// 8: task responses, of a task that this agent has (d)
		{`{"id":"mine","status":"completed","result":{}}`, "event task-response"},
		{`{"id":"mine","status":"in_progress","result":{}}`, `refused invalid "mine"`},
		{`{"id":"1","status":"completed","result":{}}`, "log"},
		{`{"id":"1","status":"in_progress","title":"Fix the login form"}`, "log"},
		{`{"id":7,"status":"completed"}`, "log"}, {`{"id":null,"status":"completed"}`, "log"},
		{`{"id":"1","status":"done"}`, "log"}, {`{"id":"mine","status":"done"}`, `refused invalid "mine"`}, {`{"id":"mine","status":"done","title":"t"}`, "log"}, {`{"status":"completed"}`, "log"},
		{`{"id":"1","status":"completed","type":"x"}`, `refused unknown_type "1"`},
		// 10: loggers that print JSON stay loggers (b)
		{`{"type":"info","message":"started"}`, "log"},
		{`{"level":"info","msg":"x"}`, "log"}, {`{}`, "log"}, {`{"$schema":"x"}`, "log"},
		{`{"TYPE":"request:query-agents","id":"1"}`, "log"}, {`{"type":7,"id":"1"}`, "log"},
		{`{"type":null,"id":"1"}`, "log"},
		// but one with a payload is a message
		{`{"type":7,"id":"1","timestamp":"2026-02-04T14:30:00Z","payload":{}}`, `refused unknown_type "1"`},
		{`{"type":null,"id":"1","payload":{}}`, `refused unknown_type "1"`}, {`{"type":["x"],"id":"1","payload":7}`, `refused unknown_type "1"`},
		{`{"type":{},"id":"1","payload":{},"status":"completed"}`, `refused unknown_type "1"`},
	} {
		require.Equal(t, test.want, read(test.line), test.line)
	}
}

func TestKeysThatStandTwice(t *testing.T) {
	for line, want := range map[string]string{ // the reply has the last id
		`{"type":"request:query-agents","type":"request:submit-task","id":"1"}`:                                       `refused invalid "1"`,
		`{"id":"1","type":"request:query-agents","id":"2"}`:                                                           `refused invalid "2"`,
		`{"id":"1","type":"request:query-agents","\u0069d":"2"}`:                                                      `refused invalid "2"`,
		`{"id":"1","type":"request:query-agents","timestamp":"2026-01-01","timestamp":"2026-01-01"}`:                  `refused invalid "1"`,
		`{"id":"1","level":"info","id":"2"}`:                                                                          "log",
		`{"type":"event:progress","id":"1","timestamp":"2026-01-01","timestamp":"2026-01-01","payload":{"taskId":1}}`: "log",
		`{"type":"request:query-agents","type":"request:query-agents"}`:                                               "log",
	} {
		require.Equal(t, want, read(line), line)
	}
	require.Equal(t, "request query-agents", read(`{"type":"request:query-agents","id":"1","timestamp":"2026-01-01","x":1,"x":2}`))
}

func TestNestingIsBounded(t *testing.T) {
	line := `{"type":"request:x","id":"1","payload":` + strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70) + "}"
	require.Contains(t, reader().Parse([]byte(line)).(*wire.Refused).Err.Message, "it nests too deeply")
	require.Equal(t, "it nests too deeply", reader().Parse([]byte(strings.Replace(line, "request:x", "event:x", 1))).(wire.Log).Why)
}

// TestEnvelopes checks where an envelope is wrong and why; it includes torture row 14.
//
// Rows: B-13, B-14, B-16, B-27, B-78.
func TestEnvelopes(t *testing.T) {
	const good = `"timestamp":"2026-01-01T00:00:00Z"`
	for _, test := range []struct{ line, id, code, pointer string }{
		{`{"type":"request:x",` + good + `}`, ``, "invalid", "/id"},
		{`{"type":"request:x","id":"",` + good + `}`, `""`, "invalid", "/id"},
		{`{"type":"request:x","id":7,` + good + `}`, `7`, "invalid", "/id"},
		{`{"type":"request:x","id":9007199254740993,` + good + `}`, `9007199254740993`, "invalid", "/id"},
		{`{"type":"request:x","id":null,` + good + `}`, ``, "invalid", "/id"},
		{`{"type":"request:x","id":["1"],` + good + `}`, ``, "invalid", "/id"},
		{`{"type":"request:x","id":"1"}`, `"1"`, "invalid", "/timestamp"},
		{`{"type":"request:x","id":"1","timestamp":"now"}`, `"1"`, "invalid", "/timestamp"},
		{`{"type":"request:x","id":"1","timestamp":1700000000}`, `"1"`, "invalid", "/timestamp"},
		{`{"type":"request:x","id":"1",` + good + `,"payload":[]}`, `"1"`, "invalid", "/payload"},
		{`{"type":"request:x","id":"1",` + good + `,"payload":null}`, `"1"`, "invalid", "/payload"},
		{`{"type":"request:x","id":"1",` + good + `,"agentId":"you"}`, `"1"`, "denied", "/agentId"},
		{`{"type":"request:x","id":"1",` + good + `,"agentId":7}`, `"1"`, "invalid", "/agentId"},
		{`{"type":"event:x","id":"1","agentId":"you"}`, `"1"`, "denied", "/agentId"},
		{`{"type":"event:x","payload":{}}`, ``, "invalid", "/id"},
	} {
		m, ok := reader().Parse([]byte(test.line)).(*wire.Refused)
		require.True(t, ok, test.line)
		require.Equal(t, test.id, string(m.ID), test.line)
		require.EqualValues(t, test.code, m.Err.Code, test.line)
		require.Equal(t, test.pointer, m.Err.Details["pointer"], test.line)
		require.Equal(t, strings.HasPrefix(m.Type, "request:"), m.Request)
	}
}

// TestRequestsAreKeptExactly checks that ids and payloads are kept exactly, and that agentId is
// optional.
//
// Rows: B-13, B-15, T-06, T-48.
func TestRequestsAreKeptExactly(t *testing.T) {
	m := reader().Parse([]byte(`{"type":"request:submit-task","id":"req-é\u0041","agentId":"me","timestamp":"2026-02-04T15:30:00.5+01:00","payload":{"n": 12345678901234567890, "html":"<a&b>"},"extra":1}`)).(*wire.Request)
	require.Equal(t, "req-éA", m.ID)
	require.Equal(t, `{"n": 12345678901234567890, "html":"<a&b>"}`, string(m.Payload))
	require.Equal(t, "{}", string(reader().Parse([]byte(`{"type":"request:x","id":"1","timestamp":"2026-01-01"}`)).(*wire.Request).Payload))
}

// Rows: B-14.
func TestTimes(t *testing.T) {
	for _, good := range []string{
		"2026-11-20T09:15:00Z", "2026-11-20T09:15:00.123Z", "2026-11-20T09:15:00+05:30", "2026-11-20T09:15:00.123456789-0800",
		"2026-11-20T09:15:00", "2026-02-04T14:30Z", "20260204T143000Z", "2026-02-04", "2026-11-20T09:15:00,5-23:59", "20260204T143000-0130",
		"2026-02-04T14:30", "2026-02-04T16:30:00+02", "2026-02-04T16:30:00.5-11",
	} {
		_, ok := object.ParseTime(good)
		require.True(t, ok, good)
	}
	for _, bad := range []string{"", "now", "2026-13-01T00:00:00Z", "04.02.2026", "1700000000", "2026-02-04 14:30",
		// accepted only by time.Parse
		"2026-02-04T1:30:00Z", "2026-11-20T09:15:00+24:00", "2026-11-20T09:15:00-05:60", "20260204T143000+0060", "2026-02-04T16:30:00+24", "2026-02-04T16:30:00+2", "2026-02-04T16:30+02", "2026-02-04T14:30Z+", "2026-02-30",
	} {
		_, ok := object.ParseTime(bad)
		require.False(t, ok, bad)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"type":"request:query-agents","id":"1","timestamp":"2026-01-01T00:00:00Z","payload":{}}`))
	f.Add([]byte(`{"type":"request:query-tasks","id":"1","timestamp":"2026-01-01T00:00:00Z","payload":{"limit":2,"status":"queued","status":null}}`))
	f.Add([]byte(`{"type":"request:submit-task","id":"1","timestamp":"2026-01-01T00:00:00Z","payload":{"name":"n","type":"t","payload":{"payload":{}}}}`))
	f.Add([]byte(`{"type":"event:log","id":"1","payload":{"level":"info","message":"m","context":{"a":1}}}`))
	f.Add([]byte(`{"type":"event:log","id":"1","p\u0061yload":{"level":" ","message":7}}`))
	f.Add([]byte(`{"message_type":"abort","from_agent":{}}`))
	f.Add([]byte(`{"id":"1","status":"failed"}`))
	f.Add([]byte(`{"id":"mine","status":"input_required","input":{"options":["a"]},"message":"?"}`))
	f.Add([]byte(`{"id":"1","type":"weigh_salt","payload":{"n":1.50},"context":{"user":"ada"},"routing":{"source":"me"},"observability":{"baggage":{}}}`))
	f.Add([]byte(`{"id":"1","type":"task.update","payload":{"input":[1.50]}}`))
	f.Add([]byte(`{"id":"1","type":"task.cancel","payload":{"reason":7}}`))
	f.Add([]byte(`{"id":"1","type":"t","payload":{},"payload":{"x":"\ud800"}}`))
	f.Add([]byte(`{"from_actor":"GO","to_actor":"HO:attic","topic":"task.assigned","payload":{},"reply_to":null,"idempotency_key":"k"}`))
	f.Add([]byte(`{"seq":1,"from_actor":"GO","to_actor":"HO:attic","topic":"t","payload":{},"reply_to":null,"created_at":"2026-01-01T00:00:00.000Z"}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bus_ack","arguments":{"seq":1}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"x","method":"initialize","params":{}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		m := reader().Parse(line)
		require.Equal(t, m, reader().Parse(line))
		switch m.(type) {
		case wire.Log, *wire.Refused, *wire.Answered, *wire.Session: // also the kinds for truncated lines
		default:
			require.True(t, jsontext.Value(line).IsValid(jsontext.AllowDuplicateNames(true)), "a message that is no JSON object: %q", line)
		}
		reader().ParseHead(line, "cut")
		requireSameBody(t, m)
		requireOutlived(t, m, line)
		requireNotHeard(t, m)
	})
}

// requireSameBody checks that a payload that was taken apart with its line is read as one that was not.
func requireSameBody(t *testing.T, m wire.Message) {
	t.Helper()
	p := wire.Payloads{Depth: reader().Depth}
	switch m := m.(type) {
	case *wire.Request:
		if m.Body != nil {
			return
		}
		body, err := p.Request(m)
		again, refused := wire.ReadRequest(m.Operation, m.Payload, p.Depth)
		require.Equal(t, []any{again, refused}, []any{body, err})
	case *wire.AgentEvent:
		if m.Body != nil {
			return
		}
		body, err := p.Report(m)
		again, refused := wire.ReadReport(m.Name, m.Payload, p.Depth)
		require.Equal(t, []any{again, refused}, []any{body, err})
		if m.Name == "log" {
			require.Equal(t, refused, p.CheckLog(m))
		}
	}
}

// TestReadingALineAllocatesLittle checks that the most frequent lines allocate nothing, or
// almost nothing.
func TestReadingALineAllocatesLittle(t *testing.T) {
	for line, most := range map[string]float64{
		`hello`:                                           0,
		`{"level":"info","msg":"x","id":"1"}`:             0,
		`{"id":"1","status":"in_progress"}`:               1, // it looks up the owner of the task
		`{"type":"info","message":"x"}`:                   1,
		`{"type":"event:progress","id":"1","payload":{}}`: 1,
		`{"type":"request:query-agents","id":"1","timestamp":"2026-01-01T00:00:00Z","payload":{}}`:                  0,
		`{"type":"event:log","id":"1","timestamp":"2026-01-01T00:00:00Z","payload":{"level":"info","message":"x"}}`: 0,
		`{"type":"request:list-notes","id":"1","timestamp":"2026-01-01T00:00:00Z","payload":{"x":"y"}}`:             0,
	} {
		r, text := reader(), []byte(line)
		r.Parse(text)
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() { r.Parse(text) }), most, line)
	}
}

// TestMessagesThatShareAnAllocation checks that none of them changes when more are read.
func TestMessagesThatShareAnAllocation(t *testing.T) {
	r := reader()
	var requests []*wire.Request
	for i := range 2 * fewValues {
		id := strings.Repeat("x", i*i)
		m := r.Parse(fmt.Appendf(nil, `{"type":"request:query-agents","id":"%d%s","timestamp":"2026-01-01T00:00:00Z"}`, i, id))
		requests = append(requests, m.(*wire.Request))
	}
	for i, q := range requests {
		require.Equal(t, strconv.Itoa(i)+strings.Repeat("x", i*i), q.ID)
		require.Equal(t, "2026-01-01T00:00:00Z", q.Timestamp)
	}

	last := requests[len(requests)-1]
	r.Answered()
	m := r.Parse([]byte(`{"type":"request:get-task","id":"next","timestamp":"2026-01-01T00:00:01Z","payload":{"taskId":"t"}}`))
	require.Equal(t, "next", m.(*wire.Request).ID)
	require.Empty(t, last.ID, "it is ready for the next one")
	require.Equal(t, &wire.Request{ID: "own", Operation: "cancel-task", Timestamp: "2026-01-01T00:00:02Z", Payload: []byte(`{}`), Declared: wire.OperationNamed("cancel-task"), Members: []object.Member{}},
		r.Parse([]byte(`{"type":"request:cancel-task","id":"own","timestamp":"2026-01-01T00:00:02Z","payload":{}}`)), "a request that writes is allocated by itself")
}

func BenchmarkParse(b *testing.B) {
	line := []byte(`{"type":"event:progress","id":"evt-7b1c90de-52f4-4c1e-9a60-3d5e8f0a2100","timestamp":"2026-11-20T09:15:00Z","payload":{"taskId":"task-123","progress":0.75,"message":"Compiles, now the manual now"}}`)
	r := reader()
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		r.Parse(line)
	}
}

// TestUnfinishedRequestsAreRefused checks that a truncated request is answered if its beginning
// has the id.
//
// Rows: B-21, B-27.
func TestUnfinishedRequestsAreRefused(t *testing.T) {
	r := Reader{Agent: "a", Depth: 8}
	deep := `{"type":"request:submit-task","id":"7","payload":` + strings.Repeat("[", 9) + strings.Repeat("]", 9) + "}"
	refused, ok := r.Parse([]byte(deep)).(*wire.Refused)
	require.True(t, ok)
	require.Equal(t, `"7"`, string(refused.ID))
	require.Equal(t, wire.CodeInvalid, refused.Err.Code)
	refused, ok = r.ParseHead([]byte(`{"type":"request:submit-task","id":"8","payload":{"text":"xxxx`), "too long").(*wire.Refused)
	require.True(t, ok)
	require.Equal(t, `"8"`, string(refused.ID))
	for _, head := range []string{`{"type":"event:log","id":"8","pay`, `{"type":"request:x","payload":{"te`, `xxxx`, ``, `{"id":"1","id":"2","type":"request:x",`} {
		require.IsType(t, wire.Log{}, r.ParseHead([]byte(head), "too long"), head)
	}
}

// FuzzPlainTime checks that ParseTime accepts everything that plainTime does.
func FuzzPlainTime(f *testing.F) {
	for _, at := range []string{"2026-11-21T10:00:00Z", "2026-02-28T23:59:59.123456789Z", "2026-13-01T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00.Z"} {
		f.Add(at)
	}
	f.Fuzz(func(t *testing.T, at string) {
		if plainTime([]byte(`"` + at + `"`)) {
			_, ok := object.ParseTime(at)
			require.True(t, ok, at)
		}
	})
}

// TestHalfOfACharacterIsAnswered checks half of a surrogate pair, an escape that JSON accepts
// and text cannot hold. The request with it is answered.
//
// Rows: B-21, B-27.
func TestHalfOfACharacterIsAnswered(t *testing.T) {
	for _, half := range []string{`\ud800`, `\udc00`, `\ud83dx`, `\ud83d\u0041`} {
		refused, ok := reader().Parse([]byte(`{"type":"request:submit-task","id":"1","timestamp":"2026-11-21T10:00:00Z","payload":{"x":"` + half + `"}}`)).(*wire.Refused)
		require.True(t, ok, half)
		require.Equal(t, `"1"`, string(refused.ID))
		require.Contains(t, refused.Err.Message, "half of a character")
	}
	require.IsType(t, &wire.Request{}, reader().Parse([]byte(`{"type":"request:submit-task","id":"1","timestamp":"2026-11-21T10:00:00Z","payload":{"x":"\ud83d\ude00"}}`)))
}

func TestNearlyAMessage(t *testing.T) {
	r := Reader{Agent: "a", Depth: 64}
	for line, nearly := range map[string]string{
		`{"type":"request:get-task","id":"1",}`:     "it is not a JSON object on one line: use a JSON library to write it",
		`{'type': 'event:progress', 'id': '1'}`:     "it is not a JSON object on one line: use a JSON library to write it",
		`{"type":5,"payload":{}}`:                   "its type is not a string, and it has no id",
		`{"type":"complete_task","payload":{}}`:     `unknown message type "complete_task": did you mean "request:complete-task"?`,
		`{"type":"error","message":"no such page"}`: "",
		`{"level":"info","msg":"hello"}`:            "",
		`{"type":"info","payload":{}}`:              "",
		`sent "request:get-task"`:                   "",
	} {
		log, ok := r.Parse([]byte(line)).(wire.Log)
		require.True(t, ok, line)
		require.Equal(t, nearly, log.Nearly, line)
	}
}

// TestUnknownTypes checks that a request of an unknown type is refused with that reason. An
// event is not, because events have no reply.
//
// Rows: B-12, B-28.
func TestUnknownTypes(t *testing.T) {
	m := reader().Check([]byte(`{"type":"request:nope","id":"1","timestamp":"2026-01-01T00:00:00Z"}`)).(*wire.Refused)
	require.True(t, m.Request)
	line := string(Envelope{ID: "r1"}.AppendRefusal(nil, m.ID, m.Err))
	require.Contains(t, line, `"correlationId":"1"`)
	require.Contains(t, line, `"code":"INVALID_MESSAGE_TYPE"`)

	m = reader().Check([]byte(`{"type":"event:nope","id":"1"}`)).(*wire.Refused)
	require.False(t, m.Request)
	require.Equal(t, wire.CodeUnknownType, m.Err.Code)
}
