package adapter

import (
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/tools"
)

// An RPC is a JSON-RPC message: a call, a notification or an answer.
type RPC struct {
	ID     wire.Raw `json:"id,omitzero"`
	Method string   `json:"method,omitzero"`
	Params wire.Raw `json:"params,omitzero"`
	Result wire.Raw `json:"result,omitzero"`
	Error  *struct {
		Code    int64    `json:"code"`
		Message string   `json:"message"`
		Data    wire.Raw `json:"data,omitzero"`
	} `json:"error,omitzero"`
}

// mcpVersion is the latest supported version of the Model Context Protocol.
const mcpVersion = "2025-11-25"

// AnswerRPC answers a message of an MCP client to the server of our tools. For a call of a tool, it returns the call,
// with the id of the message as its ID, and no answer.
func AnswerRPC(message wire.Raw) (answer wire.Raw, call *Call) {
	var m RPC
	if object.Decode(message, &m) != nil {
		return rpcError(nil, -32700, "this is not a JSON-RPC message"), nil
	}
	switch m.Method {
	case "initialize":
		version, ok := object.TextOf(m.Params, "protocolVersion")
		if !ok || version > mcpVersion {
			version = mcpVersion
		}
		return rpcResult(m.ID, object.Spell(map[string]any{
			"protocolVersion": version, "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo": map[string]any{"name": tools.Server, "version": wire.FormatVersion},
		})), nil
	case "tools/list":
		return rpcResult(m.ID, toolList()), nil
	case "tools/call":
		if len(m.ID) == 0 || string(m.ID) == "null" {
			return rpcError(nil, -32600, "the call of a tool has no id"), nil
		}
		name, _ := object.TextOf(m.Params, "name")
		return nil, &Call{ID: string(m.ID), Tool: name, Arguments: object.MemberOf(m.Params, "arguments")}
	case "ping", "notifications/initialized", "notifications/cancelled":
		return rpcResult(m.ID, wire.Raw("{}")), nil
	}
	return rpcError(m.ID, -32601, "unknown method "+m.Method), nil
}

// CallID returns the id of a Call: the ids of the client's request and of the message in it, which is JSON.
func CallID(request, message string) string { return request + "\x00" + message }

// SplitCallID returns both parts of the id of a Call. One without a message has only the first.
func SplitCallID(call string) (request, message string) {
	if i := strings.LastIndexByte(call, 0); i >= 0 { // JSON has no such byte
		return call[:i], call[i+1:]
	}
	return call, ""
}

func rpcResult(id, result wire.Raw) wire.Raw {
	return object.Spell(struct {
		Version string   `json:"jsonrpc"`
		ID      wire.Raw `json:"id,omitzero"`
		Result  wire.Raw `json:"result"`
	}{"2.0", id, result})
}

func rpcError(id wire.Raw, code int64, text string) wire.Raw {
	return object.Spell(map[string]any{"jsonrpc": "2.0", "id": orNull(id), "error": map[string]any{"code": code, "message": text}})
}

func orNull(id wire.Raw) wire.Raw {
	if len(id) == 0 {
		return wire.Raw("null")
	}
	return id
}

// ToolResult returns the answer to a message with this id that calls a tool.
func ToolResult(id wire.Raw, text string, failed bool) wire.Raw {
	return rpcResult(id, object.Spell(map[string]any{
		"content": []map[string]any{{"type": "text", "text": text}}, "isError": failed,
	}))
}

// toolList answers tools/list.
func toolList() wire.Raw {
	type described struct {
		Name        string         `json:"name"`
		Description string         `json:"description"`
		InputSchema wire.Raw       `json:"inputSchema"`
		Annotations map[string]any `json:"annotations,omitzero"`
		Meta        map[string]any `json:"_meta"`
	}
	list := make([]described, 0, len(tools.All))
	for _, t := range tools.All {
		d := described{Name: t.Name, Description: t.Description, InputSchema: t.Schema, Meta: map[string]any{"anthropic/alwaysLoad": true}}
		if t.ReadOnly {
			d.Annotations = map[string]any{"readOnlyHint": true}
		}
		list = append(list, d)
	}
	return object.Spell(map[string]any{"tools": list})
}

// TooLong is the error of a request that was longer than protocol.max_line.
const TooLong = "the line is longer than protocol.max_line of the orchestrator"

// CutRPC handles the beginning of a JSON-RPC message without an end. A call is answered with an
// error, and an answer is passed to heard as an error. If it is neither, the client may wait for an
// answer for ever, so it is ended.
func CutRPC(h object.Head, heard func(line []byte) []Effect) []Effect {
	id := h["id"]
	has := func(key string) bool { return h[key] != nil }
	switch known := id.IsValid() && !object.IsNull(id); {
	case h == nil:
		return nil
	case known && (has("method") || has("params")):
		return []Effect{Write{Line: rpcError(id, -32600, TooLong)}}
	case known && (has("result") || has("error")):
		return heard(rpcError(id, -32600, TooLong))
	}
	return []Effect{Unanswerable}
}

// Unanswerable ends a client that may wait for an answer to a line that was cut.
var Unanswerable = Stuck{Why: "the client may wait for an answer to that line, which cannot be read"}
