package hub

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
)

// environment returns the environment of an agent's process.
func environment(t *testing.T, a *stage.Agent) map[string]string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", a.Pid))
	require.NoError(t, err)
	found := make(map[string]string)
	for entry := range strings.SplitSeq(string(text), "\x00") {
		name, value, _ := strings.Cut(entry, "=")
		found[name] = value
	}
	return found
}

// calling returns a JSON-RPC call of a method.
func calling(id, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
}

// An rpc is a JSON-RPC answer.
type rpc struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int
		Message string
		Data    json.RawMessage
	} `json:"error"`
}

// result returns the result of a tool call. Its structured content and its text must be equal.
func (r *rpc) result(t *testing.T) (document string, failed bool) {
	t.Helper()
	require.Nil(t, r.Error)
	var said struct {
		Content           []struct{ Type, Text string }
		StructuredContent json.RawMessage
		IsError           bool
	}
	require.NoError(t, json.Unmarshal(r.Result, &said))
	require.Len(t, said.Content, 1)
	require.Equal(t, "text", said.Content[0].Type)
	if !said.IsError {
		require.Equal(t, string(said.StructuredContent), said.Content[0].Text)
	}
	return string(said.StructuredContent), said.IsError
}

// text returns the result of a tool call that must have succeeded.
func (r *rpc) text(t *testing.T) string {
	t.Helper()
	document, failed := r.result(t)
	require.False(t, failed, document)
	return document
}

// called waits for the answer to a JSON-RPC call.
func called(a *stage.Agent, id string) (found *rpc) {
	a.T.Helper()
	stage.WaitFor(a.T, "answer to call "+id, func() bool {
		for _, line := range a.Lines() {
			var r rpc
			if strings.HasPrefix(line, `{"jsonrpc":`) && json.Unmarshal([]byte(line), &r) == nil && string(r.ID) == id {
				found = &r
			}
		}
		return found != nil
	})
	require.Equal(a.T, "2.0", found.Version)
	return found
}

// plain returns the answers to mail that was sent without an envelope.
func plain(a *stage.Agent) (found []string) {
	for _, line := range a.Lines() {
		if strings.HasPrefix(line, `{"seq":`) {
			found = append(found, line)
		}
	}
	return found
}

// calls calls a tool, which must succeed.
func calls(a *stage.Agent, id, tool, arguments string) string {
	a.T.Helper()
	a.Say(calling(id, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments)) + "\n")
	return called(a, id).text(a.T)
}

// Agents can send the requests of the bus in envelopes and get answers in envelopes. Mail to
// them is delivered as notices.
//
// Rows: E-10, E-15, E-22, E-30, E-33, E-36, E-50, E-51, E-64, E-65, E-66, B-21.
func TestBusOverStdio(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one")+writing("two", "W"), "one", "two")
	one, two, worker := actors[0], actors[1], "W:"+actors[1].Run
	payload := `{"n":12345678901234567890,"u":"\u00e9\ud83d\ude00","html":"<a&b>"}`
	m := one.Granted(nil, "send-message", stage.MailLine("PO:one", worker, stage.Direct, payload, `"reply_to":"3"`))
	h := b.Hub
	requireDescribed(h, "response.success", m.Line)
	require.Equal(t, []string{"correlationId", "id", "payload", "timestamp", "type"}, m.Keys)
	sent := readSent(t, string(m.Payload))
	require.Equal(t, payload, string(sent.Payload))
	require.EqualValues(t, 3, *sent.ReplyTo)
	require.Equal(t, []string{"it answers 3, which is not a message"}, sent.Warnings)
	sent.Warnings = nil
	told := two.Receives(1)
	sent.Text = told[0].Text
	require.Equal(t, []stage.Mail{sent}, told)
	notice := two.Notices("message")[0]
	require.Equal(t, []string{"id", "payload", "timestamp", "type"}, notice.Keys)
	requireDescribed(h, "notify.message", notice.Line)

	var list struct {
		Actor    string
		Messages []json.RawMessage
		Cursor   int64
		More     bool
	}
	two.Granted(&list, "poll-messages", `{"limit":1}`)
	require.Len(t, list.Messages, 1)
	require.Equal(t, sent.Text, string(list.Messages[0]))
	require.Zero(t, list.Cursor)
	var acked struct {
		Actor  string
		Cursor int64
	}
	two.Granted(&acked, "ack-messages", fmt.Sprintf(`{"seq":%d}`, sent.Seq))
	require.Equal(t, worker, acked.Actor)
	require.Equal(t, sent.Seq, acked.Cursor)
	two.Granted(&list, "poll-messages", `{}`)
	require.Empty(t, list.Messages)
	require.Equal(t, sent.Seq, list.Cursor)
	two.Granted(&list, "poll-messages", `{"cursor":0}`)
	require.Len(t, list.Messages, 1)
	refusal := two.Refused("INVALID_REQUEST", "ack-messages", `{"seq":1000000}`)
	require.Equal(t, "/payload/seq", refusal.Details["pointer"])

	require.Empty(t, b.known(worker).LastBeat)
	var beat struct {
		Actor    string
		LastSeen string `json:"last_seen"`
		Every    int64  `json:"heartbeat_ms"`
	}
	two.Granted(&beat, "heartbeat", `{}`)
	require.EqualValues(t, 60_000, beat.Every)
	require.Equal(t, worker, beat.Actor)
	require.Regexp(t, stage.TimePattern, beat.LastSeen)
	require.Equal(t, beat.LastSeen, b.known(worker).LastBeat)
	messages := b.sent()
	two.Granted(nil, "heartbeat", `{}`)
	require.Equal(t, messages, b.sent())
	two.Granted(nil, "send-message", `{"to_actor":"Bus","topic":"heartbeat","payload":{}}`)
	require.Equal(t, messages+1, b.sent(), "by mail it is a message")
	require.Len(t, about(b.boss.polls(""), "heartbeat"), 0)
	r := b.boss.Ask("GET /api/bus/poll?actor=Bus&cursor=0", "")
	require.Contains(t, r.Text, `"topic":"heartbeat"`)
	for _, operation := range []string{"list-actors", "list-topics"} {
		one.Granted(nil, operation, `{}`)
	}
	for pointer, payload := range map[string]string{
		"to_actor": `{"topic":"a.b","payload":{}}`, "topic": `{"to_actor":"GO","topic":"a..b","payload":{}}`,
		"payload": `{"to_actor":"GO","topic":"a.b","payload":[]}`, "reply_to": `{"to_actor":"GO","topic":"a.b","payload":{},"reply_to":1.5}`,
	} {
		require.Equal(t, "/payload/"+pointer, one.Refused("INVALID_REQUEST", "send-message", payload).Details["pointer"])
	}
	b.Stop()
}

// Mail may be sent without an envelope. The answer is the stored message or the refusal.
//
// Rows: E-10, E-11, E-13, E-16, E-19, E-21, E-22.
func TestBusMailAsItIs(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one"), "one")
	one := actors[0]
	one.Say(stage.MailLine("PO:one", "HO:x", stage.Direct, `{"n":1.50}`, `"reply_to":"7"`) + "\n")
	stage.WaitFor(t, "answer", func() bool { return len(plain(one)) == 1 })
	sent := readSent(t, plain(one)[0])
	require.Contains(t, sent.Warnings[0], "does not exist yet")
	require.EqualValues(t, 7, *sent.ReplyTo)
	found := b.clerk("HO:x").polls("")
	require.Equal(t, []int64{sent.Seq}, seqs(found))
	require.Equal(t, `{"n":1.50}`, string(found[0].Payload))

	messages := b.sent()
	for key, row := range map[string][2]string{ // invalid mail, and the expected refusal
		"k-topic":   {stage.MailLine("PO:one", "HO:x", "a..b", `{}`, `"idempotency_key":"k-topic"`), `"pointer":"/topic"`},
		"k-payload": {stage.MailLine("PO:one", "HO:x", stage.Direct, `[]`, `"idempotency_key":"k-payload"`), `"pointer":"/payload"`},
		"k-to":      {`{"from_actor":"PO:one","topic":"a.b","payload":{},"idempotency_key":"k-to"}`, `"pointer":"/to_actor"`},
		"k-from":    {stage.MailLine("GO", "HO:x", stage.Direct, `{}`, `"idempotency_key":"k-from"`), `"UNAUTHORIZED"`},
		"k-all":     {stage.MailLine("PO:one", "broadcast", stage.Direct, `{}`, `"idempotency_key":"k-all"`), `"UNAUTHORIZED"`},
	} {
		one.Say(row[0] + "\n")
		m := one.Answer(key)
		require.Equal(t, "response:error", m.Type)
		require.Contains(t, m.Line, row[1])
	}
	one.Say(stage.MailLine("PO:one", "HO:x", "", `{}`) + "\n") // mail without a key gets no refusal
	m := one.Wait("refusal of nothing", func(m *stage.Message) bool { return m.Type == "response:error" && string(m.CorrelationID) == "null" })
	require.Contains(t, m.Line, `"pointer":"/topic"`)
	require.Equal(t, messages, b.sent())
	b.Stop()
}

// MCP clients find four tools.
//
// Rows: E-10, E-30, E-36, E-64, E-84.
func TestBusTools(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("one", "PO:one")+writing("two", "HO:two"), "one", "two")
	one, two := actors[0], actors[1]
	one.Say(calling(`"hello"`, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`) + "\n")
	require.Contains(t, string(called(one, `"hello"`).Result), `"protocolVersion":"2025-06-18"`)
	one.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + calling(`"list"`, "tools/list", `{}`) + "\n")
	var list struct {
		Tools []struct {
			Name, Description string
			InputSchema       struct{ Type string }
		}
	}
	require.NoError(t, json.Unmarshal(called(one, `"list"`).Result, &list))
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		require.NotEmpty(t, tool.Description)
		require.Equal(t, "object", tool.InputSchema.Type)
	}
	require.Equal(t, []string{"bus_send_message", "bus_poll", "bus_ack", "bus_presence_heartbeat"}, names)

	sent := readSent(t, calls(one, `"send"`, "bus_send_message", `{"to_actor":"HO:two","topic":"message.direct","payload":{"n":1.50}}`))
	require.Equal(t, []stage.Mail{sent}, two.Receives(1))
	require.Contains(t, calls(two, `"poll"`, "bus_poll", `{}`), sent.Text)
	require.Equal(t, fmt.Sprintf(`{"actor":"HO:two","cursor":%d}`, sent.Seq), calls(two, `"ack"`, "bus_ack", fmt.Sprintf(`{"seq":%d}`, sent.Seq)))
	require.NotContains(t, calls(two, `"poll again"`, "bus_poll", `{}`), sent.Text)
	require.Contains(t, calls(two, `"poll all"`, "bus_poll", `{"cursor":0}`), sent.Text)
	require.Contains(t, calls(two, `"beat"`, "bus_presence_heartbeat", `{"actor":"HO:two"}`), `"actor":"HO:two"`)
	require.NotEmpty(t, b.known("HO:two").LastBeat)

	for id, line := range map[string]string{
		`"tool"`: calling(`"tool"`, "tools/call", `{"name":"bus_nope","arguments":{}}`), `"none"`: calling(`"none"`, "tools/call", `{}`),
		`"list of"`: calling(`"list of"`, "tools/call", `{"name":"bus_poll","arguments":[]}`), `"method"`: calling(`"method"`, "resources/list", `{}`),
	} {
		one.Say(line + "\n")
		answer := called(one, id)
		require.NotNil(t, answer.Error, line)
		require.Equal(t, map[bool]int{true: -32601, false: -32602}[id == `"method"`], answer.Error.Code)
	}
	messages := b.sent()
	for id, arguments := range map[string]string{
		`"no topic"`: `{"to_actor":"HO:two","payload":{}}`, `"as GO"`: stage.MailLine("GO", "HO:two", stage.Direct, `{}`), `"to all"`: stage.MailLine("PO:one", "broadcast", stage.Direct, `{}`),
	} {
		one.Say(calling(id, "tools/call", `{"name":"bus_send_message","arguments":`+arguments+`}`) + "\n")
		document, failed := called(one, id).result(t)
		require.True(t, failed, document)
		require.Contains(t, document, `"error"`)
	}
	require.Equal(t, messages, b.sent())
	b.Stop()
}

// An agent that echoes its input has no effect: echoed mail, answers and refusals are ignored.
//
// Rows: E-01, E-03, E-86, T-03.
func TestBusEchoes(t *testing.T) {
	t.Parallel()
	b, actors := newBureau(t, writing("parrot", "PO:parrot")+`
agent "cat" {
  command = ["cat"]
  actor   = "PO:cat"
}

agent "terminal" {
  command = ["cat"]
  actor   = "PO:terminal"
  pty     = true
}
`, "parrot")
	parrot, far := actors[0], b.clerk("HO:far")
	parrot.Granted(nil, "send-message", `{"to_actor":"PO:parrot","topic":"message.direct","payload":{}}`)
	parrot.Say(stage.MailLine("PO:parrot", "HO:x", stage.Direct, `{}`) + "\n" + stage.MailLine("PO:parrot", "HO:x", "..", `{}`, `"idempotency_key":"no"`) + "\n")
	calls(parrot, `"call"`, "bus_poll", `{}`)
	parrot.Say(calling(`"no"`, "tools/call", `{"name":"bus_ack","arguments":{}}`) + "\n")
	called(parrot, `"no"`)
	for _, who := range []string{"PO:parrot", "PO:cat", "PO:terminal"} {
		far.send(who, stage.Direct, stage.MailLine("GO", "HO:x", stage.Direct, `{}`))
		far.send(who, stage.Direct, `{"type":"request:send-message","id":"1","timestamp":"`+stage.Noon+`","payload":{}}`)
		b.boss.send(who, "task.assigned", `{}`)
	}
	b.boss.send("broadcast", "broadcast.all", `{}`)
	parrot.Receives(5)
	for _, name := range []string{"cat", "terminal"} {
		stage.WaitFor(t, "echoes of "+name, func() bool { return b.Agent(name).Mailbox.Messages == 0 && b.Agent(name).Mailbox.Refused == 0 })
	}
	stage.WaitFor(t, "echoes in the log", func() bool { return strings.Count(strings.Join(b.Logged("cat", ".out"), "\n"), "notify:message") == 4 })
	messages := b.sent()
	heard := parrot.Lines()
	parrot.Say(strings.Join(heard, "\n") + "\n")
	parrot.Settle()
	require.Equal(t, messages, b.sent())
	require.Len(t, parrot.Lines(), len(heard)+1, "it is answered nothing but what it has just asked")
	require.Len(t, about(b.clerk("HO:x").polls("&cursor=0"), stage.Direct), 1)
	b.Stop()
}
