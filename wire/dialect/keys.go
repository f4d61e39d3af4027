package dialect

import (
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// Keys are the top-level members that decide which message an object is. Of a duplicate key the last
// value counts, as for most JSON decoders.
type Keys struct {
	// type, id, timestamp, agentId, payload, method and routing; nil if missing.
	Type, ID, Timestamp, AgentID, Payload, Method, Routing []byte

	Twice string // a duplicate key, or ""

	seen  keySet
	facts keySet // keys with values that decide
	vague bool   // the kind or the sender is uncertain: its key is duplicate, or its value is cut
	cut   bool   // the object was read only in part
}

// A keySet is a set of keys.
type keySet uint32

const (
	typeKey keySet = 1 << iota
	id
	timestamp
	agentID
	payload
	method
	routing
	context
	observability
	status
	jsonrpc
	messageType
	messageID
	fromAgent
	toAgent
	seq
	createdAt
	fromActor
	toActor
	topic
	otherKey    // any other
	sessionType // the message_type is of a session
	textType    // the message_type is a text

	described = id | payload | context | observability | timestamp | agentID // decide neither the kind nor the sender
)

func (s keySet) all(of keySet) bool { return s&of == of }
func (s keySet) any(of keySet) bool { return s&of != 0 }

// Gather stores members under their keys, and forgets the previous ones.
func (k *Keys) Gather(members []object.Member) {
	*k = Keys{}
	for i := range members {
		k.note(&members[i])
	}
}

// Cut stores that the object was read only up to the value of a key.
func (k *Keys) Cut(key string) {
	k.cut = true
	switch key {
	case "routing": // names the source of a request
		k.vague = true
	case "payload":
		k.seen |= payload
	}
}

// note stores a member under its key.
func (k *Keys) note(m *object.Member) {
	var key keySet
	switch string(m.Key) {
	case "type":
		key, k.Type = typeKey, m.Value
	case "id":
		key, k.ID = id, m.Value
	case "timestamp":
		key, k.Timestamp = timestamp, m.Value
	case "agentId":
		key, k.AgentID = agentID, m.Value
	case "payload":
		key, k.Payload = payload, m.Value
	case "method":
		key, k.Method = method, m.Value
	case "routing":
		key, k.Routing = routing, m.Value
		k.decide(routing, object.IsObject(m.Value))
	case "context":
		key = context
		k.decide(context, object.IsObject(m.Value))
	case "observability":
		key = observability
		k.decide(observability, object.IsObject(m.Value))
	case "status":
		key = status
		k.decide(status, isOneOf(m.Value, delegation.Statuses...))
	case "jsonrpc":
		key = jsonrpc
		k.decide(jsonrpc, isOneOf(m.Value, "2.0"))
	case "message_type":
		key = messageType
		k.decide(textType, m.Value[0] == '"')
		k.decide(sessionType, isOneOf(m.Value, session.Types...))
	case "message_id":
		key = messageID
	case "from_agent":
		key = fromAgent
	case "to_agent":
		key = toAgent
	case "seq":
		key = seq
	case "created_at":
		key = createdAt
	case "from_actor":
		key = fromActor
	case "to_actor":
		key = toActor
	case "topic":
		key = topic
	case "result", "error", "metadata", "artifacts", "message", "input": // of a response
	default:
		k.seen |= otherKey
	}
	if k.seen.any(key) {
		k.Twice = string(m.Key)
		k.vague = k.vague || !described.any(key)
	}
	k.seen |= key
}

// decide stores whether the value of a key decides the dialect.
func (k *Keys) decide(key keySet, does bool) {
	k.facts &^= key
	if does {
		k.facts |= key
	}
}

// isOneOf reports whether a value is one of some texts.
func isOneOf(value []byte, texts ...string) bool {
	if value[0] != '"' {
		return false
	}
	inner := object.Unquote(value)
	for _, text := range texts {
		if string(inner) == text {
			return true
		}
	}
	return false
}

// Correlatable returns id if it can be repeated in an answer: a string or a number, digit for
// digit. Otherwise it returns nil.
func Correlatable(id []byte) []byte {
	if len(id) > 0 && (id[0] == '"' || id[0] == '-' || '0' <= id[0] && id[0] <= '9') {
		return id
	}
	return nil
}
