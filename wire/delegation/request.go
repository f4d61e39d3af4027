package delegation

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"orchestrator/wire/object"
)

// A Request is work that is delegated to an agent. It is forwarded unchanged. The fields
// hold what decisions need.
type Request struct {
	ID            string     // of the task; every message about the task has it
	Type          string     // the capability that it needs
	Payload       object.Raw // an object, digit for digit
	Context       Context
	Routing       Routing
	Observability Trace

	Document object.Raw // all of it, on one line, digit for digit
	Notes    []string   // warnings, each with its place
	Sum      uint64     // of the content and the target; a repeat has the same
}

// Context is the context of a task. Missing members are "".
type Context struct {
	ConversationID string `json:"conversationId,omitzero"`
	ParentTaskID   string `json:"parentTaskId,omitzero"`
	User           string `json:"user,omitzero"`
	Timestamp      string `json:"timestamp,omitzero"`
	Priority       string `json:"priority,omitzero"` // Priority…
}

// Routing is the route of a task. Missing members are "".
type Routing struct {
	Source string   `json:"source,omitzero"` // the agent that delegates and gets the responses
	Target string   `json:"target,omitzero"` // the agent that the work is for
	Chain  []string `json:"delegationChain,omitzero"`
}

// Trace is the position of a task in a trace. The ids need not have the form of the W3C: see
// IsTraceID.
type Trace struct {
	TraceID string     `json:"traceId,omitzero"`
	SpanID  string     `json:"spanId,omitzero"`
	Baggage object.Raw `json:"baggage,omitzero"` // an object, digit for digit
}

// maxBaggage is the maximum size of baggage, in bytes. All messages of a task carry it.
const maxBaggage = 16 << 10

// The priorities that sessions do not have. The default is PriorityNormal.
const (
	PriorityNormal = "normal"
	PriorityUrgent = "urgent"
)

var Priorities = []string{"low", PriorityNormal, "high", PriorityUrgent}

// ReadRequest is ReadRequest for a document that has been split into members. The
// pointer is that of the document.
func ReadRequest(document object.Raw, members []object.Member, pointer string, check Ambiguity) (*Request, *object.Error) {
	p := NewDecoder(members, pointer)
	r := &Request{Document: document, ID: readLabel(p, "id", object.Required), Type: readLabel(p, "type", object.Required), Payload: readObject(p, "payload", object.Required)}
	if IsAct(r.Type) {
		p.Refuse("type", "is of a message about a task that there is: "+r.Type+" asks for none")
	}
	p.Inside("context", object.Optional, func(in *object.Decoder) { r.Context = readTaskContext(in) })
	p.Inside("routing", object.Optional, func(in *object.Decoder) { r.Routing = readTaskRouting(in) })
	p.Inside("observability", object.Optional, func(in *object.Decoder) { r.Observability = ReadTrace(in) })
	checkLookalikes(p, "id", "type", "payload", "context", "routing", "observability")
	checkKeys(p, check)
	if err := object.ErrorOf(p.Issues.Problems); err != nil {
		return nil, err
	}
	r.Notes = p.Issues.Notes
	r.Sum = object.Sum([]byte(r.Type), []byte(r.Routing.Target), r.Payload)
	return r, nil
}

func readTaskContext(p *object.Decoder) Context {
	checkLookalikes(p, "conversationId", "parentTaskId", "user", "timestamp", "priority")
	return Context{
		ConversationID: readLabel(p, "conversationId", object.Optional),
		ParentTaskID:   readLabel(p, "parentTaskId", object.Optional),
		User:           readLabel(p, "user", object.Optional),
		Timestamp:      p.Time("timestamp", object.Optional),
		Priority:       p.OneOf("priority", object.Optional, Priorities),
	}
}

func readTaskRouting(p *object.Decoder) Routing {
	checkLookalikes(p, "source", "target", "delegationChain")
	return Routing{
		Source: readLabel(p, "source", object.Optional), Target: readLabel(p, "target", object.Optional), Chain: readChain(p, "delegationChain"),
	}
}

func ReadTrace(p *object.Decoder) Trace {
	checkLookalikes(p, "traceId", "spanId", "baggage")
	t := Trace{
		TraceID: readLabel(p, "traceId", object.Optional), SpanID: readLabel(p, "spanId", object.Optional), Baggage: readObject(p, "baggage", object.Optional),
	}
	if len(t.Baggage) > maxBaggage {
		p.Refuse("baggage", fmt.Sprintf("must not be longer than %d bytes", maxBaggage))
	}
	return t
}

// MarshalJSONTo implements json.MarshalerTo. It writes the document of the request, or one made
// from its fields.
func (r *Request) MarshalJSONTo(e *jsontext.Encoder) error {
	return e.WriteValue(r.Forwarded(Forwarding{}))
}
