package dialect

import (
	"slices"
	"strings"

	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// Keys holds the top-level members that decide which message a line is.
type Keys struct {
	Type, ID, Timestamp, AgentID, Payload             []byte // type, id, timestamp, agentId, payload
	MessageType, messageID, fromAgent, ToAgent        []byte
	JSONRPC, Method                                   []byte
	Seq, CreatedAt, FromActor, toActor, topic, status []byte
	context, Routing, observability                   []byte
	Twice                                             string // a duplicate key
	Vague                                             bool   // a duplicate key is one that decides the kind or the sender
}

// Note stores a member under its key.
func (k *Keys) Note(m *object.Member) {
	var into *[]byte
	switch string(m.Key) {
	case "type":
		into = &k.Type
	case "id":
		into = &k.ID
	case "timestamp":
		into = &k.Timestamp
	case "agentId":
		into = &k.AgentID
	case "payload":
		into = &k.Payload
	case "message_type":
		into = &k.MessageType
	case "message_id":
		into = &k.messageID
	case "from_agent":
		into = &k.fromAgent
	case "to_agent":
		into = &k.ToAgent
	case "jsonrpc":
		into = &k.JSONRPC
	case "method":
		into = &k.Method
	case "seq":
		into = &k.Seq
	case "created_at":
		into = &k.CreatedAt
	case "from_actor":
		into = &k.FromActor
	case "to_actor":
		into = &k.toActor
	case "topic":
		into = &k.topic
	case "status":
		into = &k.status
	case "context":
		into = &k.context
	case "routing":
		into = &k.Routing
	case "observability":
		into = &k.observability
	default:
		return
	}
	if *into != nil {
		k.Twice = string(m.Key)
		k.Vague = k.Vague || !describes(k.Twice)
	}
	*into = m.Value
}

// describes reports whether a member of delegated work does not affect the kind or the sender of
// the line.
func describes(key string) bool {
	return key == "id" || key == "payload" || key == "context" || key == "observability" || key == "timestamp" || key == "agentId"
}

// Calls reports whether rule 3 fits.
func (k *Keys) Calls() bool {
	version, _ := object.Text(k.JSONRPC)
	return version == "2.0" && k.Method != nil
}

// Mails reports whether rule 6 fits.
func (k *Keys) Mails() bool { return k.FromActor != nil && (k.topic != nil || k.toActor != nil) }

// Delegates reports whether rule 7 fits what has a type, an id and a payload.
func (k *Keys) Delegates(kind string, capability func(string) bool) bool {
	return object.IsObject(k.context) || object.IsObject(k.Routing) || object.IsObject(k.observability) || k.Timestamp == nil ||
		capability != nil && capability(kind)
}

// Means reports whether a line looks like a task response with an unknown status: it has only
// members of a response.
func (k *Keys) Means(members []object.Member) bool {
	if k.status == nil {
		return false
	}
	for i := range members {
		switch string(members[i].Key) {
		case "id", "status", "result", "error", "metadata", "artifacts", "message", "input":
		default:
			return false
		}
	}
	return true
}

// Responds reports whether the status is one of ResponseStatuses.
func (k *Keys) Responds() bool {
	status, _ := object.Text(k.status)
	return slices.Contains(delegation.Statuses, status)
}

// IsOwn reports whether a type has a prefix of the native dialect, in either direction.
func IsOwn(kind string) bool {
	family, _, found := strings.Cut(kind, ":")
	return found && (family == "request" || family == "event" || family == "response" || family == "notify")
}

// Correlatable returns id if it can be repeated in an answer: a string or a number, digit for
// digit. Otherwise it returns nil.
func Correlatable(id []byte) []byte {
	if len(id) > 0 && (id[0] == '"' || id[0] == '-' || '0' <= id[0] && id[0] <= '9') {
		return id
	}
	return nil
}

// Session reports whether rule 4 fits.
func (k *Keys) Session() bool {
	kind, ok := object.Text(k.MessageType)
	return ok && (slices.Contains(session.Types, kind) || k.messageID != nil || k.fromAgent != nil || k.ToAgent != nil)
}

// Ambiguous implements Ambiguity.
func Ambiguous(members []object.Member) (key, why string) {
	var k Keys
	for i := range members {
		k.Note(&members[i])
	}
	return k.mistakable()
}

// mistakable returns the member that makes a message of delegated work ambiguous, and why. It
// returns "" if there is none.
func (k *Keys) mistakable() (key, why string) {
	kind, _ := object.Text(k.Type)
	switch {
	case k.Twice != "":
		return k.Twice, "stands twice"
	case IsOwn(kind):
		return "type", "must not begin with request:, event:, response: or notify:"
	case k.Calls():
		return "jsonrpc", "makes it the call of a tool"
	case k.Session():
		return "message_type", "makes it a message of a session"
	case k.Mails(), k.Seq != nil && k.CreatedAt != nil && k.FromActor != nil:
		return "from_actor", "makes it mail"
	}
	return "", ""
}
