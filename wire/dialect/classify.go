package dialect

import (
	"bytes"

	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// Classify returns the dialect of an object with these keys, and whether it is an echo: a line that
// only the orchestrator sends. The first rule that fits decides:
//
//	1  type begins request: or event:                           Native
//	2  type begins response: or notify:                         Native, an echo
//	3  jsonrpc is "2.0", with a method                          ToolCall
//	4  message_type is one of ten, or stands beside
//	   message_id, from_agent or to_agent                       Session
//	5  seq, created_at and from_actor                           Mail, an echo
//	6  from_actor with topic or to_actor                        Mail
//	7  id and status, no type: a status of responses, or only
//	   members of a response                                    TaskResponse
//	8  type and id, and it is the type of an act                TaskAct
//	9  type, id and payload; and a capability of that name,
//	   a context, routing or observability object, or no
//	   timestamp                                                TaskRequest
//	10 anything else                                            None
//
// An object with a duplicate key, or one that was read only in part, must not be mistaken. It is an
// echo if it may be one. It is delegated work only if no key of another dialect stands in it, and its
// kind and sender are certain.
//
// Capability reports whether the sender offers a task type; nil means that it offers none.
func (k *Keys) Classify(capability func(name string) bool) (class Dialect, echo bool) {
	whole := k.Twice == "" && !k.cut
	switch string(k.family()) {
	case "request", "event":
		return Native, false
	case "response", "notify":
		return Native, true
	}
	switch {
	case k.facts.any(jsonrpc) && k.seen.any(method):
		return ToolCall, false
	case k.facts.any(sessionType), k.facts.any(textType) && k.seen.any(messageID|fromAgent|toAgent):
		return Session, false
	case k.seen.all(seq | createdAt | fromActor):
		return Mail, true
	case k.seen.any(fromActor) && k.seen.any(topic|toActor):
		return Mail, !whole && k.seen.any(seq|createdAt)
	case !k.seen.any(id), !whole && (k.vague || k.seen.any(jsonrpc|messageType|fromActor)):
		return None, false
	case !k.seen.any(typeKey):
		if k.facts.any(status) || whole && k.seen == id|status {
			return TaskResponse, false
		}
		return None, false
	case k.Type[0] != '"':
		return None, false
	case isOneOf(k.Type, delegation.Acts...):
		return TaskAct, false
	case k.seen.any(payload) && (k.facts.any(context|routing|observability) || !k.seen.any(timestamp) || capability != nil && capability(string(object.Unquote(k.Type)))):
		return TaskRequest, false
	}
	return None, false
}

// family returns the type up to its colon, or nil if it has none.
func (k *Keys) family() []byte {
	if k.Type == nil || k.Type[0] != '"' {
		return nil
	}
	kind := object.Unquote(k.Type)
	return kind[:max(0, bytes.IndexByte(kind, ':'))]
}

// Ambiguous implements delegation.Ambiguity: a message of delegated work has no duplicate key, and
// no keys of another dialect.
func Ambiguous(members []object.Member) (key, why string) {
	var k Keys
	k.Gather(members)
	if k.Twice != "" {
		return k.Twice, "stands twice"
	}
	switch class, _ := k.Classify(nil); class {
	case Native:
		return "type", "must not begin with request:, event:, response: or notify:"
	case ToolCall:
		return "jsonrpc", "makes it the call of a tool"
	case Session:
		return "message_type", "makes it a message of a session"
	case Mail:
		return "from_actor", "makes it mail"
	}
	return "", ""
}
