package wire

import (
	"bytes"
	"slices"
	"strings"

	"orchestrator/wire/object"
)

// Reader turns the lines of one agent into messages. Many dialects meet on a
// line; the first rule that fits decides:
//
//	0  not one JSON object                                    log
//	1  type begins request: or event:                         Request, Report
//	2  type begins response: or notify:                       log: an echo of ours
//	3  jsonrpc is "2.0", with a method                        Request or Replied: a call
//	4  message_type is one of ten, or stands beside
//	   message_id, from_agent or to_agent                     Session: a session message
//	5  seq, created_at and from_actor                         log: an echo of mail
//	6  from_actor with topic or to_actor                      Request: mail
//	7  type and id, and it is the type of an act; or a
//	   payload too, and a capability of that name, a context,
//	   routing or observability object, or no timestamp       Request: delegated work, or an act about it
//	8  id and status, no type, of a task that the agent has:
//	   one of six, or nothing beside that is not of a response Report: a task response
//	9  type and id otherwise                                  refused: unknown type
//	10 anything else                                          log
//
// An agent may print what it is told, so rules 7 and 8 look whose the task is. Who has
// it says how it goes: that is a Report, and a request for it or an act about it an
// echo. Of a task that the agent has not, it is the other way round.
//
// Keys are exact, and none that the rules look at may stand twice: a reader that
// takes the last and one that takes the first would see two messages. A Reader
// is used by one goroutine; what it returns lives as long as the line, but for what
// is read already: messages of sessions and of delegated work live longer.
type Reader struct {
	Agent string // whose lines these are: no other name may stand in them
	Depth int    // levels of nesting
	// Capability reports whether an agent offers a task type; nil: none does.
	Capability func(name string) bool
	// Given reports whether a task of that id is, or was, in the hands of this agent;
	// nil: none is.
	Given func(id string) bool

	room  []object.Member
	known keys
}

// keys are the top-level members that decide what a line is.
type keys struct {
	kind, id, timestamp, agent, payload               []byte // type, id, timestamp, agentId, payload
	messageType, messageID, fromAgent, toAgent        []byte
	jsonrpc, method                                   []byte
	seq, createdAt, fromActor, toActor, topic, status []byte
	context, routing, observability                   []byte
	twice                                             string // one that stands twice
	vague                                             bool   // such a one says what the line is, or whose
}

// Parse reads a line.
func (r *Reader) Parse(line []byte) Message {
	members, why, ok := object.Scan(line, r.Depth, r.room)
	if !ok && why != object.TooDeep && why != object.HalfOf { // these are JSON, and may ask for something
		if why == "" && isBatch(line) {
			why = "several calls stand in it: say one a line"
		}
		return asLog(why, nearly(line))
	}
	r.room = members
	k := r.note(members)
	if !ok {
		return r.unfinished(line, why)
	}
	if k.twice != "" {
		return r.ambiguous(line)
	}
	kind, typed := common(k.kind)
	switch {
	case typed && strings.HasPrefix(kind, "request:"):
		return r.request(kind)
	case typed && strings.HasPrefix(kind, "event:"):
		return r.event(kind)
	case typed && isOwn(kind):
		return Log{Why: kind + " is for the orchestrator to say"}
	case k.calls():
		return r.call()
	case k.session():
		return r.session(line)
	case k.seq != nil && k.createdAt != nil && k.fromActor != nil:
		return Log{Why: "an echo of mail"}
	case k.mails():
		return &Request{ID: r.mailKey(), Operation: operationMail, Payload: line, Form: DialectMail}
	case typed && k.id != nil && IsTaskAct(kind):
		return r.taskAct(line, kind)
	case typed && k.id != nil && k.payload != nil && k.delegates(kind, r.Capability):
		return r.taskRequest(line)
	case k.kind == nil && k.id != nil && (k.responds() || k.means(members)):
		return r.taskResponse(line)
	case typed && k.id != nil:
		return &Refused{ID: correlatable(k.id), Type: kind, Request: true, Err: unknownType(kind)}
	}
	return asLog("", k.nearly(kind, typed))
}

// asLog costs nothing for lines that have nothing of a message.
func asLog(why, nearly string) Message {
	if why == "" && nearly == "" {
		return Log{}
	}
	return Log{Why: why, Nearly: nearly}
}

// ambiguous judges a line in which a key stands twice. It refuses a request, and
// what is certainly a message of a session or of delegated work, so that the sender gets an
// answer. Any other line is log.
func (r *Reader) ambiguous(line []byte) Message {
	k := &r.known
	why := "the key " + k.twice + " stands twice"
	id := correlatable(k.id) // the last, as most readers of JSON take it
	switch kind, _ := object.Text(k.kind); {
	case strings.HasPrefix(kind, "request:") && id != nil:
		return &Refused{ID: id, Type: kind, Request: true, Err: object.Invalid("/"+k.twice, why)}
	case isOwn(kind) || k.calls():
	case k.session():
		return r.spoiled(line, why)
	case !k.vague:
		return r.spoiledTask(k.payload != nil, why)
	}
	return Log{Why: why}
}

// isOwn reports whether a type is in the orchestrator's own words, of either
// direction.
func isOwn(kind string) bool {
	family, _, found := strings.Cut(kind, ":")
	return found && (family == "request" || family == "event" || family == "response" || family == "notify")
}

// isBatch reports whether a line is a list of calls. Many a line begins with a
// bracket: only what looks like one is searched.
func isBatch(line []byte) bool {
	inner, found := bytes.CutPrefix(bytes.TrimLeft(line, " \t"), []byte("["))
	return found && bytes.HasPrefix(bytes.TrimLeft(inner, " \t"), []byte("{")) && bytes.Contains(inner, []byte(`"jsonrpc"`))
}

// note files members under their keys.
func (r *Reader) note(members []object.Member) *keys {
	r.known = keys{}
	for i := range members {
		r.known.note(&members[i])
	}
	return &r.known
}

// ParseHead reads the beginning of a line that is longer than lines may be. A
// request that has said in it what it is, and its own id, is refused, so that
// its sender is answered; everything else is log.
func (r *Reader) ParseHead(head []byte, why string) Message {
	r.room, _, _ = object.Scan(head, r.Depth, r.room)
	r.note(r.room)
	return r.unfinished(head, why)
}

// unfinished refuses a request of which only the beginning could be read. Of mail
// it must be sure that it is none that was delivered: what would tell may be
// among the rest.
func (r *Reader) unfinished(line []byte, why string) Message {
	k := &r.known
	kind, _ := object.Text(k.kind)
	id, err := correlatable(k.id), object.Invalid("", "the request cannot be taken: "+why)
	switch {
	case k.twice != "":
	case isOwn(kind):
		if id != nil && strings.HasPrefix(kind, "request:") {
			return &Refused{ID: id, Type: kind, Request: true, Err: err}
		}
	case k.calls():
		if id != nil {
			return k.fault(id, rpcInvalidRequest, err)
		}
	case k.session():
		return r.spoiled(nil, why)
	case k.mails() && k.seq == nil && k.createdAt == nil:
		key := r.mailKey()
		return &Refused{ID: rawID(DialectMail, key), Type: "request:" + operationMail, Request: true, Form: DialectMail, Err: err}
	default:
		if key := behind(line, r.room); key != "routing" { // which says whose a request is
			return r.spoiledTask(k.payload != nil || key == "payload", why)
		}
	}
	return Log{Why: why}
}

// note files a member under its key.
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

// describes reports whether a member of work that is handed on leaves it clear what the
// line is, and who says it.
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

// operationMail is what mail asks for that is said as it is.
const operationMail = "send-message"

// mailKey is the key of mail, by which its answer is known: the sender's, or ""
// when there is none. One that stands twice is refused with the payload.
func (r *Reader) mailKey() string {
	line := object.Reader{Members: r.room}
	return line.Text("idempotency_key")
}

// delegates reports whether rule 7 fits what has a type, an id and a payload.
func (k *keys) delegates(kind string, capability func(string) bool) bool {
	return object.IsObject(k.context) || object.IsObject(k.routing) || object.IsObject(k.observability) || k.timestamp == nil ||
		capability != nil && capability(kind)
}

// means reports whether a line means to be a task response, and has none of the six
// words: there is nothing in it but what a response has.
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

// responds reports whether status is one of a task response's.
func (k *keys) responds() bool {
	status, _ := object.Text(k.status)
	return slices.Contains(ResponseStatuses, status)
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
	inner := object.Unquote(value)
	if kind, ok := kinds[string(inner)]; ok {
		return kind, true
	}
	return string(inner), true
}

// correlatable is an id that can be given back: a string or a number, digit
// for digit.
func correlatable(id []byte) []byte {
	if len(id) > 0 && (id[0] == '"' || id[0] == '-' || '0' <= id[0] && id[0] <= '9') {
		return id
	}
	return nil
}
