package stdio

import (
	"bytes"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
)

// A Reader parses the lines of one agent into messages. A line may be in any dialect; the first
// rule that fits decides:
//
//	0  not one JSON object                                    log
//	1  type begins request: or event:                         Request, Report
//	2  type begins response: or notify:                       log: an echo of ours
//	3  jsonrpc is "2.0", with a method                        Request or Answered: a call
//	4  message_type is one of ten, or stands beside
//	   message_id, from_agent or to_agent                     Session: a session message
//	5  seq, created_at and from_actor                         log: an echo of mail
//	6  from_actor with topic or to_actor                      Request: mail
//	7  type and id, and it is the type of an act; or a
//	   payload too, and a capability of that name, a context,
//	   routing or observability object, or no timestamp       Request: delegated work, or an act about it
//	8  id and status, no type, of a task that the agent has:
//	   one of six, or only members of a response               AgentEvent: a task response
//	9  type and id otherwise, or with a payload
//	   a type that is not a string                            refused: unknown type
//	10 anything else                                          log
//
// An agent may print the lines that it receives, so rules 7 and 8 check whether the agent has
// the task. If it has, a response is an AgentEvent, and a request or an act is an echo. If it
// has not, a request or an act is a Request, and a response is log.
//
// Keys are exact, and a key that the rules use must not be duplicated: readers that take the
// first and readers that take the last would see different messages. A Reader must be used by
// one goroutine at a time. A Message is valid as long as its line. Bodies that are already
// decoded, of sessions and of delegated work, live longer.
type Reader struct {
	Agent string // the sender of the lines: they must not name another
	Depth int    // levels of nesting
	// Capability reports whether an agent offers a task type; nil means that none does.
	Capability func(name string) bool
	// Given reports whether this agent has, or had, the task with an id; nil means that it has
	// none.
	Given func(id string) bool

	room, inside []object.Member // of the line and of its payload
	known        dialect.Keys
	reads        reads
}

// Parse reads a line. A line that begins with another byte than a bracket is log.
func (r *Reader) Parse(line []byte) wire.Message {
	s := object.Scanner{Text: line}
	if s.Space(); s.At == len(line) || line[s.At] != '{' && line[s.At] != '[' {
		return wire.Log{}
	}
	members, inner, why, ok := object.ScanBoth(line, r.Depth, r.room, "payload", r.inside)
	if inner != nil {
		r.inside = inner
	}
	if !ok && why != object.TooDeep && why != object.HalfOf { // these are JSON, and may be requests
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
	if k.Twice != "" {
		return r.ambiguous(line)
	}
	kind, op, typed := readType(k.Type)
	switch {
	case typed && strings.HasPrefix(kind, "request:"):
		return r.request(kind, op, inner)
	case typed && strings.HasPrefix(kind, "event:"):
		return r.event(kind, inner)
	case typed && dialect.IsOwn(kind):
		return wire.Log{Why: kind + " is for the orchestrator to say"}
	case k.Calls():
		return r.call()
	case k.Session():
		return r.session(line)
	case k.Seq != nil && k.CreatedAt != nil && k.FromActor != nil:
		return wire.Log{Why: "an echo of mail"}
	case k.Mails():
		return &wire.Request{ID: r.mailKey(), Operation: operationMail, Payload: line, Form: dialect.Mail}
	case typed && k.ID != nil && delegation.IsAct(kind):
		return r.taskAct(line, kind)
	case typed && k.ID != nil && k.Payload != nil && k.Delegates(kind, r.Capability):
		return r.taskRequest(line)
	case k.Type == nil && k.ID != nil && (k.Responds() || k.Means(members)):
		return r.taskResponse(line)
	case typed && k.ID != nil:
		return &wire.Refused{ID: dialect.Correlatable(k.ID), Type: kind, Request: true, Err: wire.UnknownType(kind)}
	case k.Type != nil && k.ID != nil && k.Payload != nil:
		return &wire.Refused{ID: dialect.Correlatable(k.ID), Request: true, Err: notType(k.Type)}
	}
	return asLog("", nearlyTyped(k, kind, typed))
}

// asLog returns a Log. It does not allocate for lines that do not resemble a message.
func asLog(why, nearly string) wire.Message {
	if why == "" && nearly == "" {
		return wire.Log{}
	}
	return wire.Log{Why: why, Nearly: nearly}
}

// nearly returns why a line that is not a JSON object was probably meant as a message, or "".
func nearly(line []byte) string {
	text := bytes.TrimLeft(line, " \t")
	if !bytes.HasPrefix(text, []byte("{")) {
		return ""
	}
	for _, begun := range []string{`"request:`, `"event:`, `'request:`, `'event:`} {
		if bytes.Contains(text[:min(len(text), 512)], []byte(begun)) {
			return "it is no JSON object in one line: let a library spell it"
		}
	}
	return ""
}

// nearlyTyped returns why an object that is log was probably meant as a message.
func nearlyTyped(k *dialect.Keys, kind string, typed bool) string {
	switch {
	case k.Type == nil || !object.IsObject(k.Payload):
		return ""
	case !typed:
		return "its type is not a string, and it has no id"
	}
	if name := wire.MeantType(kind); name != "" {
		return "there is no message type " + string(object.Quote(kind)) + ": did you mean " + string(object.Quote(name)) + "?"
	}
	return ""
}

// ambiguous returns the message on a line with a duplicate key. It refuses requests, session
// messages and messages of delegated work, so that the sender gets an answer. Any other line is
// log.
func (r *Reader) ambiguous(line []byte) wire.Message {
	k := &r.known
	why := "the key " + k.Twice + " stands twice"
	id := dialect.Correlatable(k.ID) // the last, as most JSON decoders take it
	switch kind, _ := object.Text(k.Type); {
	case strings.HasPrefix(kind, "request:") && id != nil:
		return &wire.Refused{ID: id, Type: kind, Request: true, Err: object.Invalid("/"+k.Twice, why)}
	case dialect.IsOwn(kind) || k.Calls():
	case k.Session():
		return r.spoiled(line, why)
	case !k.Vague:
		return r.spoiledTask(k.Payload != nil, why)
	}
	return wire.Log{Why: why}
}

// isBatch reports whether a line is a list of calls. Many lines begin with a bracket, so only
// those with an object behind it are searched.
func isBatch(line []byte) bool {
	inner, found := bytes.CutPrefix(bytes.TrimLeft(line, " \t"), []byte("["))
	return found && bytes.HasPrefix(bytes.TrimLeft(inner, " \t"), []byte("{")) && bytes.Contains(inner, []byte(`"jsonrpc"`))
}

// note stores members under their keys.
func (r *Reader) note(members []object.Member) *dialect.Keys {
	r.known = dialect.Keys{}
	for i := range members {
		r.known.Note(&members[i])
	}
	return &r.known
}

// ParseHead returns the message for the head of an oversized line. It refuses a request whose
// type and id are in the head, so that its sender gets an answer. Any other line is log.
func (r *Reader) ParseHead(head []byte, why string) wire.Message {
	r.room, _, _ = object.Scan(head, r.Depth, r.room)
	r.note(r.room)
	return r.unfinished(head, why)
}

// unfinished refuses a request that was read only in part. Mail is refused only if it is
// certainly not an echo, since the members that tell may be in the missing part.
func (r *Reader) unfinished(line []byte, why string) wire.Message {
	k := &r.known
	kind, _ := object.Text(k.Type)
	id, err := dialect.Correlatable(k.ID), object.Invalid("", "the request cannot be taken: "+why)
	switch {
	case k.Twice != "":
	case dialect.IsOwn(kind):
		if id != nil && strings.HasPrefix(kind, "request:") {
			return &wire.Refused{ID: id, Type: kind, Request: true, Err: err}
		}
	case k.Calls():
		if id != nil {
			return r.fault(id, rpcInvalidRequest, err)
		}
	case k.Session():
		return r.spoiled(nil, why)
	case k.Mails() && k.Seq == nil && k.CreatedAt == nil:
		key := r.mailKey()
		return &wire.Refused{ID: dialect.Mail.RawID(key), Type: "request:" + operationMail, Request: true, Form: dialect.Mail, Err: err}
	default:
		if key := behind(line, r.room); key != "routing" { // which names the source of a request
			return r.spoiledTask(k.Payload != nil || key == "payload", why)
		}
	}
	return wire.Log{Why: why}
}

// operationMail is the operation that bare mail requests.
const operationMail = "send-message"

// mailKey returns the idempotency key of mail, or "" if it has none. The answer repeats it. A
// duplicate key is refused with the payload.
func (r *Reader) mailKey() string {
	line := object.Reader{Members: r.room}
	return line.Text("idempotency_key")
}

// A messageKind is a message type that agents may send, and its operation if it is a request.
type messageKind struct {
	name string
	of   *wire.Operation
}

// kinds holds one string for each type of requests, and of the most frequent events.
var kinds = func() map[string]messageKind {
	found := make(map[string]messageKind)
	for _, o := range wire.Operations {
		found["request:"+o.Name] = messageKind{name: "request:" + o.Name, of: o}
	}
	for _, name := range []string{"progress", "log", "error", "question"} {
		found["event:"+name] = messageKind{name: "event:" + name}
	}
	return found
}()

// readType returns a message type and its operation, if it has one. It does not allocate for the
// types in kinds.
func readType(value []byte) (name string, of *wire.Operation, typed bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", nil, false
	}
	inner := object.Unquote(value)
	if known, ok := kinds[string(inner)]; ok {
		return known.name, known.of, true
	}
	return string(inner), nil, true
}

// Check parses a line and its payload without effect. It is for authors of agents who want to
// validate a message before they send it. It returns a Request or an AgentEvent with its Body, a
// Session with its Message, an Answered, or a Refused. The errors point into the line. Without
// Given, a line that looks like a task response counts as one.
func (r *Reader) Check(line []byte) wire.Message {
	m := r.claimed(line, r.Parse(line))
	kind, err := "", (*wire.Error)(nil)
	switch m := m.(type) {
	case *wire.Request:
		if m.Body != nil {
			return m
		}
		kind = "request:" + m.Operation
		m.Body, err = (&wire.Payloads{Depth: r.Depth}).Request(m)
		if err != nil {
			return &wire.Refused{ID: m.RawID(), Type: kind, Request: true, Form: m.Form, Err: m.Form.Place(err)}
		}
	case *wire.Session:
		if m.Err != nil {
			return &wire.Refused{ID: m.RawID, Type: m.Type, Request: true, Form: dialect.Session, Err: m.Err}
		}
	case *wire.Answered:
		if m.Err != nil {
			return &wire.Refused{ID: m.ID, Type: m.Method, Request: true, Form: dialect.ToolCall, Err: m.Err}
		}
	case *wire.AgentEvent:
		if m.Body != nil {
			return m
		}
		kind = "event:" + m.Name
		m.Body, err = (&wire.Payloads{Depth: r.Depth}).Report(m)
		if err != nil {
			return &wire.Refused{ID: object.Quote(m.ID), Type: kind, Err: err}
		}
	}
	return m
}

// claimed parses a line as if the sender that it names had sent it.
func (r *Reader) claimed(line []byte, m wire.Message) wire.Message {
	claimed := Reader{Depth: r.Depth, Capability: r.Capability}
	switch refused := m.(type) {
	case wire.Log:
		if r.Given != nil || r.known.Type != nil {
			return m
		}
		claimed.Agent, claimed.Given = r.Agent, func(string) bool { return true }
	case *wire.Refused:
		if refused.Err.Code != wire.CodeDenied {
			return m
		}
		if claimed.Agent, _ = object.Text(r.known.AgentID); refused.Form == dialect.TaskRequest {
			claimed.Agent, _ = r.source()
		}
	case *wire.Session:
		if refused.Err == nil || refused.Err.Code != wire.CodeDenied {
			return m
		}
		claimed.Agent = r.sender()
	default:
		return m
	}
	return claimed.Parse(line)
}
