package stdio

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/dialect"
	"orchestrator/wire/mail"
)

// calling returns the call of a method with an id; params may be missing.
func calling(id, method, params string) []byte {
	if params != "" {
		params = `,"params":` + params
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q%s}`, id, method, params)
}

// Rows: E-84.
func TestToolsAreRequests(t *testing.T) {
	for _, test := range []struct{ id, params, operation, payload string }{
		{`1`, `{"name":"bus_send_message","arguments":{"to_actor":"GO"}}`, "send-message", `{"to_actor":"GO"}`},
		{`"a\u0062"`, `{"name":"bus_poll","arguments": {"cursor": 1.0} ,"_meta":{"progressToken":1}}`, "poll-messages", `{"cursor": 1.0}`},
		{`12345678901234567890`, `{"name":"bus_ack"}`, "ack-messages", `{}`},
		{`-1.50e1`, `{"arguments":null,"name":"bus_presence_\u0068eartbeat"}`, "heartbeat", `{}`},
		{`""`, `{"name":"bus_poll"}`, "poll-messages", `{}`},
	} {
		require.Equal(t, &wire.Request{ID: test.id, Operation: test.operation, Payload: []byte(test.payload), Form: dialect.ToolCall},
			reader().Parse(calling(test.id, "tools/call", test.params)))
	}
	m, ok := reader().Check(calling(`1`, "tools/call", `{"name":"bus_presence_heartbeat","arguments":{"actor":"HO:attic"}}`)).(*wire.Request)
	require.True(t, ok)
	require.Equal(t, &wire.Heartbeat{Actor: "HO:attic"}, m.Body)
}

// Rows: E-84.
func TestCallsThatCannotBe(t *testing.T) {
	const names = "bus_send_message, bus_poll, bus_ack or bus_presence_heartbeat"
	for _, test := range []struct {
		line []byte
		want string
	}{
		{calling(`1`, "bus_poll", `{}`), `-32601 unknown method "bus_poll": the methods are initialize, ping, tools/list and tools/call`},
		{calling(`1`, "", ``), `-32601 unknown method "": the methods are initialize, ping, tools/list and tools/call`},
		{calling(`1`, "tools/call", ``), `-32602 params: it must be an object`},
		{calling(`1`, "tools/call", `null`), `-32602 params: it must be an object`},
		{calling(`1`, "tools/call", `["bus_poll"]`), `-32602 params: it must be an object`},
		{calling(`1`, "tools/call", `{"name":"bus_poll"},"params":{}`), `-32602 params stands twice`},
		{calling(`1`, "tools/call", `{}`), `-32602 name is missing`},
		{calling(`1`, "tools/call", `{"name":7}`), `-32602 name must be a string`},
		{calling(`1`, "tools/call", `{"name":"bus_poll","name":"bus_ack"}`), `-32602 name stands twice`},
		{calling(`1`, "tools/call", `{"name":"bus_nope"}`), `-32602 name must be one of ` + names + `, not "bus_nope"`},
		{calling(`1`, "tools/call", `{"name":"send-message"}`), `-32602 name must be one of ` + names + `, not "send-message"`},
		{calling(`1`, "tools/call", `{"name":"bus_poll","arguments":[]}`), `-32602 arguments must be an object`},
		{calling(`1`, "tools/call", `{"name":"bus_poll","arguments":{},"arguments":{}}`), `-32602 arguments stands twice`},
		{[]byte(`{"jsonrpc":"2.0","id":1,"method":7}`), `-32600 method must be a string`},
		{[]byte(`{"jsonrpc":"2.0","id":1,"method":"ping","x":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`), `-32600 the request cannot be taken: it nests too deeply`},
	} {
		replied, ok := reader().Parse(test.line).(*wire.Answered)
		require.True(t, ok, "%s", test.line)
		members := keysOf(t, replied.Text)
		require.Equal(t, "1", string(members["id"]))
		var fault struct {
			Code    int
			Message string
		}
		require.NoError(t, json.Unmarshal(members["error"], &fault))
		require.Equal(t, test.want, fmt.Sprintf("%d %s", fault.Code, fault.Message))
		require.Equal(t, fault.Message, replied.Err.Message)
		refused, ok := reader().Check(test.line).(*wire.Refused)
		require.True(t, ok)
		require.Equal(t, &wire.Refused{ID: []byte("1"), Type: replied.Method, Request: true, Form: dialect.ToolCall, Err: replied.Err}, refused)
	}
}

// TestCallsThatAreNotAnswered checks that a call without a usable id is log output, with the
// reason.
//
// Rows: E-84.
func TestCallsThatAreNotAnswered(t *testing.T) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"bus_poll"}}`,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`,
		`{"jsonrpc":"2.0","id":[1],"method":"ping"}`,
		`{"jsonrpc":"2.0","id":true,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
		` [ {"jsonrpc":"2.0","id":1,"method":"ping"}, {}]`,
	} {
		log, ok := reader().Parse([]byte(line)).(wire.Log)
		require.True(t, ok, line)
		require.NotEmpty(t, log.Why, line)
	}
	for _, line := range []string{`[INFO] "jsonrpc"`, `["jsonrpc"]`, `[{"type":"request:get-task"}]`, `[]`, `[`} {
		require.Equal(t, wire.Log{}, reader().Parse([]byte(line)), line)
	}
}

// Rows: E-84.
func TestCallsThatAreAnsweredAtOnce(t *testing.T) {
	welcome := func(version string) string {
		return `{"protocolVersion":"` + version + `","capabilities":{"tools":{}},"serverInfo":{"name":"orchestrator","version":"1.0"}}`
	}
	for _, test := range []struct{ method, params, want string }{
		{"ping", ``, `{}`},
		{"ping", `7`, `{}`},
		{"initialize", `{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"x"}}`, welcome("2024-11-05")},
		{"initialize", `{"protocolVersion":"2025-03-26"}`, welcome("2025-03-26")},
		{"initialize", `{"protocolVersion":"2025-06-18"}`, welcome("2025-06-18")},
		{"initialize", `{"protocolVersion":"2099-01-01"}`, welcome("2025-11-25")},
		{"initialize", `{"protocolVersion":7}`, welcome("2025-11-25")},
		{"initialize", ``, welcome("2025-11-25")},
		{"initialize", `[]`, welcome("2025-11-25")},
	} {
		line := calling(`"é1"`, test.method, test.params)
		replied, ok := reader().Parse(line).(*wire.Answered)
		require.True(t, ok, "%s", line)
		require.Equal(t, &wire.Answered{
			ID: []byte(`"é1"`), Method: test.method, Text: []byte(`{"jsonrpc":"2.0","id":"é1","result":` + test.want + "}\n"),
		}, replied)
		require.Equal(t, replied, reader().Check(line))
	}
}

// TestToolsAreDescribed checks that tools/list describes the arguments that the readers accept.
//
// Rows: E-84.
func TestToolsAreDescribed(t *testing.T) {
	replied, ok := reader().Parse(calling(`1`, "tools/list", `{"cursor":"x"}`)).(*wire.Answered)
	require.True(t, ok)
	var said struct {
		Tools []struct {
			Name, Description string
			InputSchema       json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal(keysOf(t, replied.Text)["result"], &said))
	require.Len(t, said.Tools, len(tools))
	for i, tool := range said.Tools {
		require.Equal(t, []string{"bus_send_message", "bus_poll", "bus_ack", "bus_presence_heartbeat"}[i], tool.Name)
		require.NotEmpty(t, tool.Description)
		schema := decoded(t, tool.InputSchema)
		operation := "request:" + tools[i].operation
		require.Equal(t, at(schemaOf(t, operation), "properties", "payload"), schema)
		require.Equal(t, "object", at(schema, "type"))
		compiler := jsonschema.NewCompiler()
		require.NoError(t, compiler.AddResource("urn:tool", schema))
		compiled, err := compiler.Compile("urn:tool")
		require.NoError(t, err, "it refers to nothing else")
		for _, example := range schemaOf(t, operation)["examples"].([]any) {
			arguments := at(example, "payload")
			if arguments == nil {
				arguments = map[string]any{}
			}
			require.NoError(t, compiled.Validate(arguments))
			line := encoded(t, map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool.Name, "arguments": arguments}})
			require.IsType(t, &wire.Request{}, reader().Check(line), "%s", line)
		}
	}
	require.Less(t, len(replied.Text), 8<<10, "whoever reads it pays for it")
}

// FuzzCalls checks that the reply to any call is one line of JSON with its id, and is log output
// if an agent prints it.
func FuzzCalls(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`,
		`{"jsonrpc":"2.0","id":"\ud83d\ude00","method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":-1.5e3,"method":"n\u006fpe\u2028"}`,
		`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"bus_poll","arguments":{"cursor":0,"limit":1}}}`,
		`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"bus_send_message","arguments":` + mailLine + `}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		mailLine,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		id, answers := []byte(nil), [][]byte(nil)
		switch m := reader().Parse(line).(type) {
		case *wire.Answered:
			id, answers = m.ID, [][]byte{m.Text}
		case *wire.Request:
			if m.Form == dialect.Native {
				return
			}
			if id = m.RawID(); m.Form == dialect.Mail {
				id = nil
			}
			body, err := wire.ReadRequest(m.Operation, m.Payload, 64)
			if err != nil {
				answers = [][]byte{noon.AppendRefused(nil, m.Form, m.RawID(), err)}
				break
			}
			sent := &mail.Sent{Message: fullMail}
			if said, ok := body.(*wire.SendMessage); ok {
				sent.From, sent.To, sent.Topic, sent.Payload = said.From, said.To, said.Topic, said.Payload
			}
			answers = [][]byte{noon.AppendReply(nil, m.Form, m.ID, sent, nil), noon.AppendReply(nil, m.Form, m.ID, &mail.List{Messages: []mail.Message{sent.Message}}, nil)}
			answers = answers[:2-int(m.Form)%2] // mail is only answered with mail
		}
		for _, answer := range answers {
			text, ended := strings.CutSuffix(string(answer), "\n")
			require.True(t, ended)
			require.NotContains(t, text, "\n")
			require.True(t, jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true)), "%s", text)
			require.IsType(t, wire.Log{}, (&Reader{Agent: "me", Depth: 80}).Parse([]byte(text)), "%s", text)
			if id != nil {
				require.Contains(t, text, `{"jsonrpc":"2.0","id":`+string(id)+`,`)
			}
		}
	})
}
