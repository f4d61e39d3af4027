package stdio

import (
	"fmt"
	"slices"
	"strconv"

	"orchestrator/wire"
	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
	"orchestrator/wire/schema"
)

// A tool is an operation that can be called as in the Model Context Protocol, with one call on a
// line. The schema of the operation's payload describes its arguments.
type tool struct{ name, operation, summary string }

var tools = []tool{
	{
		"bus_send_message", operationMail,
		"Sends a message to another actor. The message is kept until the recipient reads it. The answer is the message with its number, seq.",
	},
	{
		"bus_poll", "poll-messages",
		"Returns your messages, in the order of their numbers. Reading removes nothing: acknowledge processed messages with bus_ack.",
	},
	{
		"bus_ack", "ack-messages",
		"Acknowledges your messages up to a number. bus_poll continues after that number.",
	},
	{
		"bus_presence_heartbeat", "heartbeat",
		"Reports that you are present. After the first call, call it once a minute.",
	},
}

// toolVersions are the supported versions of the Model Context Protocol, the latest last.
var toolVersions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}

// The JSON-RPC error codes of a call.
const (
	rpcInvalidRequest = -32600
	rpcNoMethod       = -32601
	rpcInvalidParams  = -32602
)

// call reads a line that calls a method. A tool call becomes a Request; any other call is
// answered at once. A call without an id is not answered.
func (r *Reader) call() wire.Message {
	k := &r.known
	id := dialect.Correlatable(k.ID)
	switch {
	case k.ID == nil || object.IsNull(k.ID):
		return wire.Log{Why: "a call without an id is ignored"}
	case id == nil:
		return wire.Log{Why: "the id of a call must be a string or a number"}
	}
	method, ok := object.Text(k.Method)
	switch {
	case !ok:
		return r.fault(id, rpcInvalidRequest, object.Invalid("/method", "method must be a string"))
	case method == "tools/call":
		return r.callTool(id)
	case method == "tools/list":
		return r.reply(id, appendTools(nil))
	case method == "initialize":
		return r.reply(id, r.appendWelcome(nil))
	case method == "ping":
		return r.reply(id, []byte("{}"))
	}
	return r.fault(id, rpcNoMethod, &wire.Error{
		Code:    wire.CodeUnknownType,
		Message: fmt.Sprintf("unknown method %.80q: the methods are initialize, ping, tools/list and tools/call", method),
	})
}

// callTool makes the call of a tool a request.
func (r *Reader) callTool(id []byte) wire.Message {
	var params object.Reader
	err := r.params(&params)
	if err != nil {
		return r.fault(id, rpcInvalidParams, err)
	}
	name, arguments := params.NeedText("name"), params.Find("arguments")
	i := slices.IndexFunc(tools, func(t tool) bool { return t.name == name })
	switch {
	case i < 0:
		params.Refuse("name", fmt.Sprintf("must be one of %s, not %.80q", object.Choices(toolNames()), name))
	case arguments == nil:
		arguments = []byte("{}")
	case !object.IsObject(arguments):
		params.Refuse("arguments", "must be an object")
	}
	if err := params.Err(); err != nil {
		return r.fault(id, rpcInvalidParams, err)
	}
	return &wire.Request{ID: string(id), Operation: tools[i].operation, Payload: arguments, Form: dialect.ToolCall}
}

// params takes the parameters of a call apart.
func (r *Reader) params(into *object.Reader) *wire.Error {
	line := object.Reader{Members: r.room}
	value := line.Find("params")
	if err := line.Err(); err != nil {
		return err
	}
	return into.Read(value, object.AnyDepth, "/params")
}

func toolNames() []string {
	names := make([]string, 0, len(tools))
	for _, t := range tools {
		names = append(names, t.name)
	}
	return names
}

// reply answers a call with a result.
func (r *Reader) reply(id, result []byte) *wire.Answered {
	method, _ := object.Text(r.known.Method)
	line := append(appendRPC(nil, id), `"result":`...)
	return &wire.Answered{ID: id, Method: method, Text: append(append(line, result...), '}', '\n')}
}

// fault answers a call that cannot be one.
func (r *Reader) fault(id []byte, code int64, err *wire.Error) *wire.Answered {
	method, _ := object.Text(r.known.Method)
	line := append(appendRPC(nil, id), `"error":{"code":`...)
	line = object.AppendMember(strconv.AppendInt(line, code, 10), "message", err.Message)
	if data, failed := object.Encode(err.Details); failed == nil && len(err.Details) > 0 {
		line = object.AppendRaw(line, "data", data)
	}
	return &wire.Answered{ID: id, Method: method, Text: append(line, '}', '}', '\n'), Err: err}
}

// appendWelcome answers initialize with the requested version if it is supported, or with the
// latest one.
func (r *Reader) appendWelcome(b []byte) []byte {
	version := toolVersions[len(toolVersions)-1]
	var params object.Reader
	if r.params(&params) == nil {
		if asked := params.Text("protocolVersion"); slices.Contains(toolVersions, asked) {
			version = asked
		}
	}
	b = append(b, `{"protocolVersion":"`+version+`","capabilities":{"tools":{}},"serverInfo":{"name":"orchestrator"`...)
	return append(object.AppendMember(b, "version", wire.FormatVersion), '}', '}')
}

// appendTools answers tools/list.
func appendTools(b []byte) []byte {
	b = append(b, `{"tools":[`...)
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		schema, _ := schema.Text("request:" + t.operation) // tests check that it exists and has a payload
		b = object.AppendText(append(b, `{"name":`...), t.name)
		b = object.AppendMember(b, "description", t.summary)
		b = append(object.AppendRaw(b, "inputSchema", object.MemberOf(object.MemberOf(schema, "properties"), "payload")), '}')
	}
	return append(b, ']', '}')
}
