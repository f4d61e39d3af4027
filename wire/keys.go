package wire

import (
	"slices"
	"strings"

	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// keys holds the top-level members that decide which message a line is.
type keys struct {
	kind, id, timestamp, agent, payload               []byte // type, id, timestamp, agentId, payload
	messageType, messageID, fromAgent, toAgent        []byte
	jsonrpc, method                                   []byte
	seq, createdAt, fromActor, toActor, topic, status []byte
	context, routing, observability                   []byte
	twice                                             string // a duplicate key
	vague                                             bool   // a duplicate key is one that decides the kind or the sender
}

// note stores a member under its key.
func (k *keys) note(m *object.Member) {
	var into *[]byte
	switch string(m.Key) {
	case "type":
		into = &k.kind
	case "id":
		into = &k.id
	case "timestamp":
		into = &k.timestamp
	case "agentId":
		into = &k.agent
	case "payload":
		into = &k.payload
	case "message_type":
		into = &k.messageType
	case "message_id":
		into = &k.messageID
	case "from_agent":
		into = &k.fromAgent
	case "to_agent":
		into = &k.toAgent
	case "jsonrpc":
		into = &k.jsonrpc
	case "method":
		into = &k.method
	case "seq":
		into = &k.seq
	case "created_at":
		into = &k.createdAt
	case "from_actor":
		into = &k.fromActor
	case "to_actor":
		into = &k.toActor
	case "topic":
		into = &k.topic
	case "status":
		into = &k.status
	case "context":
		into = &k.context
	case "routing":
		into = &k.routing
	case "observability":
		into = &k.observability
	default:
		return
	}
	if *into != nil {
		k.twice = string(m.Key)
		k.vague = k.vague || !describes(k.twice)
	}
	*into = m.Value
}

// describes reports whether a member of delegated work does not affect the kind or the sender of
// the line.
func describes(key string) bool {
	return key == "id" || key == "payload" || key == "context" || key == "observability" || key == "timestamp" || key == "agentId"
}

// calls reports whether rule 3 fits.
func (k *keys) calls() bool {
	version, _ := object.Text(k.jsonrpc)
	return version == "2.0" && k.method != nil
}

// mails reports whether rule 6 fits.
func (k *keys) mails() bool { return k.fromActor != nil && (k.topic != nil || k.toActor != nil) }

// delegates reports whether rule 7 fits what has a type, an id and a payload.
func (k *keys) delegates(kind string, capability func(string) bool) bool {
	return object.IsObject(k.context) || object.IsObject(k.routing) || object.IsObject(k.observability) || k.timestamp == nil ||
		capability != nil && capability(kind)
}

// means reports whether a line looks like a task response with an unknown status: it has only
// members of a response.
func (k *keys) means(members []object.Member) bool {
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

// responds reports whether the status is one of ResponseStatuses.
func (k *keys) responds() bool {
	status, _ := object.Text(k.status)
	return slices.Contains(delegation.Statuses, status)
}

// isOwn reports whether a type has a prefix of the native dialect, in either direction.
func isOwn(kind string) bool {
	family, _, found := strings.Cut(kind, ":")
	return found && (family == "request" || family == "event" || family == "response" || family == "notify")
}

// correlatable returns id if it can be repeated in an answer: a string or a number, digit for
// digit. Otherwise it returns nil.
func correlatable(id []byte) []byte {
	if len(id) > 0 && (id[0] == '"' || id[0] == '-' || '0' <= id[0] && id[0] <= '9') {
		return id
	}
	return nil
}

// session reports whether rule 4 fits.
func (k *keys) session() bool {
	kind, ok := object.Text(k.messageType)
	return ok && (slices.Contains(session.Types, kind) || k.messageID != nil || k.fromAgent != nil || k.toAgent != nil)
}

// ambiguous implements Ambiguity.
func ambiguous(members []object.Member) (key, why string) {
	var k keys
	for i := range members {
		k.note(&members[i])
	}
	return k.mistakable()
}

// mistakable returns the member that makes a message of delegated work ambiguous, and why. It
// returns "" if there is none.
func (k *keys) mistakable() (key, why string) {
	kind, _ := object.Text(k.kind)
	switch {
	case k.twice != "":
		return k.twice, "stands twice"
	case isOwn(kind):
		return "type", "must not begin with request:, event:, response: or notify:"
	case k.calls():
		return "jsonrpc", "makes it the call of a tool"
	case k.session():
		return "message_type", "makes it a message of a session"
	case k.mails(), k.seq != nil && k.createdAt != nil && k.fromActor != nil:
		return "from_actor", "makes it mail"
	}
	return "", ""
}
