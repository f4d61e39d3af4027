package wire

import (
	"strings"
)

// Reader turns the lines of one agent into messages. Many dialects meet on a
// line; the first rule that fits decides:
//
//	0  not one JSON object                                    log
//	1  type begins request: or event:                         Request, Report
//	2  type begins response: or notify:                       log: an echo of ours
//	3  jsonrpc is "2.0", with a method                        tool call
//	4  message_type is one of ten, or stands beside
//	   message_id, from_agent or to_agent                     session message
//	5  seq, created_at and from_actor                         log: an echo of mail
//	6  from_actor with topic or to_actor                      mail
//	7  type, id and payload, and a capability of that name,
//	   a context, routing or observability object, or no
//	   timestamp beside them                                  task request
//	8  id and one of six statuses, no type                    task response
//	9  type and id otherwise                                  refused: unknown type
//	10 anything else                                          log
//
// Keys are exact, and none that the rules look at may stand twice: a reader that
// takes the last and one that takes the first would see two messages. A Reader
// is used by one goroutine; what it returns lives as long as the line.
type Reader struct {
	Agent string // whose lines these are: no other name may stand in them
	Depth int    // levels of nesting
	// Capability says whether somebody offers a task type; nil: nobody does.
	Capability func(name string) bool

	room  []member
	known keys
}

// keys are the top-level members that decide what a line is.
type keys struct {
	kind, id, timestamp, agent, payload               []byte // type, id, timestamp, agentId, payload
	messageType, messageID, fromAgent, toAgent        []byte
	jsonrpc, method                                   []byte
	seq, createdAt, fromActor, toActor, topic, status []byte
	context, routing, observability                   []byte
	twice                                             string
}

// Parse reads a line.
func (r *Reader) Parse(line []byte) Message {
	members, why, ok := scan(line, r.Depth, r.room)
	if !ok && why != tooDeep && why != halfOf { // these are JSON, and may ask for something
		return Log{Why: why}
	}
	r.room = members
	k := r.note(members)
	if !ok {
		return k.unfinished(why)
	}
	if k.twice != "" {
		return Log{Why: "the key " + k.twice + " stands twice"}
	}
	kind, typed := common(k.kind)
	switch {
	case typed && strings.HasPrefix(kind, "request:"):
		return r.request(kind)
	case typed && strings.HasPrefix(kind, "event:"):
		return r.event(kind)
	case typed && (strings.HasPrefix(kind, "response:") || strings.HasPrefix(kind, "notify:")):
		return Log{Why: kind + " is for the orchestrator to say"}
	}
	if dialect, echo := k.dialect(kind, typed, r.Capability); dialect != "" {
		return &Foreign{Dialect: dialect, Line: line}
	} else if echo {
		return Log{Why: "an echo of mail"}
	}
	if typed && k.id != nil {
		return &Refused{ID: correlatable(k.id), Type: kind, Request: true, Err: unknownType(kind)}
	}
	return Log{}
}

// note files members under their keys.
func (r *Reader) note(members []member) *keys {
	r.known = keys{}
	for i := range members {
		r.known.note(&members[i])
	}
	return &r.known
}

// ParseHead reads the beginning of a line that is longer than lines may be. A
// request whose type and id stand in it is refused, so that whoever asked is
// answered; everything else is log.
func (r *Reader) ParseHead(head []byte, why string) Message {
	members, _, _ := scan(head, r.Depth, r.room)
	return r.note(members).unfinished(why)
}

// unfinished refuses a request of which only the beginning could be read.
func (k *keys) unfinished(why string) Message {
	kind, _ := text(k.kind)
	id := correlatable(k.id)
	if !strings.HasPrefix(kind, "request:") || id == nil || k.twice != "" {
		return Log{Why: why}
	}
	return &Refused{ID: id, Type: kind, Request: true, Err: invalid("", "the request cannot be taken: "+why)}
}

// note files a member under its key.
func (k *keys) note(m *member) {
	var into *[]byte
	switch string(m.key) {
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
		k.twice = string(m.key)
	}
	*into = m.value
}

// dialect applies rules 3 to 8. echo says that rule 5 fits.
func (k *keys) dialect(kind string, typed bool, capability func(string) bool) (d Dialect, echo bool) {
	switch version, _ := text(k.jsonrpc); {
	case version == "2.0" && k.method != nil:
		return DialectTool, false
	case k.session():
		return DialectSession, false
	case k.seq != nil && k.createdAt != nil && k.fromActor != nil:
		return "", true
	case k.fromActor != nil && (k.topic != nil || k.toActor != nil):
		return DialectMail, false
	case typed && k.id != nil && k.payload != nil &&
		(isObject(k.context) || isObject(k.routing) || isObject(k.observability) || k.timestamp == nil ||
			capability != nil && capability(kind)):
		return DialectTaskRequest, false
	case k.kind == nil && k.id != nil && k.responds():
		return DialectTaskResponse, false
	}
	return "", false
}

// session says whether rule 4 fits.
func (k *keys) session() bool {
	kind, ok := text(k.messageType)
	if !ok {
		return false
	}
	switch kind {
	case "task_assignment", "task_progress", "task_completion", "review_request", "review_result",
		"feedback", "status_query", "status_response", "abort", "acknowledgment":
		return true
	}
	return k.messageID != nil || k.fromAgent != nil || k.toAgent != nil
}

// responds says whether status is one of a task response's.
func (k *keys) responds() bool {
	status, _ := text(k.status)
	switch status {
	case "pending", "in_progress", "input_required", "completed", "failed", "cancelled":
		return true
	}
	return false
}

// text is a member that is a string; false for anything else.
func text(value []byte) (string, bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	return string(unquoted(value)), true
}

// kinds are the types of messages that come all the time; each has one string.
var kinds = func() map[string]string {
	found := make(map[string]string)
	for _, kind := range []string{
		"request:query-agents", "request:query-tasks", "request:submit-task", "request:get-task", "request:ask-user",
		"request:start-task", "request:complete-task", "request:fail-task", "request:cancel-task",
		"event:progress", "event:log", "event:error", "event:question",
	} {
		found[kind] = kind
	}
	return found
}()

// common is text that costs nothing when it is a known type.
func common(value []byte) (string, bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	inner := unquoted(value)
	if kind, ok := kinds[string(inner)]; ok {
		return kind, true
	}
	return string(inner), true
}

func isObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

// correlatable is an id that can be given back: a string or a number, digit
// for digit.
func correlatable(id []byte) []byte {
	if len(id) > 0 && (id[0] == '"' || id[0] == '-' || '0' <= id[0] && id[0] <= '9') {
		return id
	}
	return nil
}
