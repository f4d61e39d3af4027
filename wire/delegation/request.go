package delegation

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"orchestrator/wire/object"
)

// A Request is work that is delegated to an agent. It is forwarded unchanged. The fields hold the
// values that decisions need.
type Request struct {
	// The id of the task, chosen by the sender. It differs for every task; a UUID is recommended.
	ID string `json:"id" schema:"label"`
	// The type of work: the name of a capability. The types of acts on existing tasks are reserved
	// (see task-act).
	Type string `json:"type" schema:"label"`
	// The data for the work: any object.
	Payload object.Raw `json:"payload" schema:"type=object"`
	// The context of the task.
	Context Context `json:"context,omitzero"`
	// The route of the task.
	Routing Routing `json:"routing,omitzero"`
	// The trace that the task belongs to. Pass it on with the work that you delegate.
	Observability Trace `json:"observability,omitzero"`

	Document object.Raw `json:"-"` // all of it, on one line, digit for digit
	Notes    []string   `json:"-"` // warnings, each with its place
	Sum      uint64     `json:"-"` // of the content and the target; a repeat has the same
}

// Context is the context of a task. Missing members are "".
type Context struct {
	// The id of the conversation that the task belongs to.
	ConversationID string `json:"conversationId,omitzero" schema:"in:plain"`
	// The id of the task that this task is part of.
	ParentTaskID string `json:"parentTaskId,omitzero" schema:"in:plain"`
	// The user that the task is done for.
	User string `json:"user,omitzero" schema:"in:plain"`
	// When the task was requested: an ISO 8601 time, such as 2026-11-20T09:15:00Z. Without a zone it
	// is UTC.
	Timestamp string `json:"timestamp,omitzero" schema:"in:time"`
	// The urgency; normal when it is missing.
	Priority string `json:"priority,omitzero" schema:"enum=delegation.Priorities"`
}

// Routing is the route of a task. Missing members are "".
type Routing struct {
	// The sender, which gets the responses. It is optional: when you ask, it is you, and another name
	// is refused.
	Source string `json:"source,omitzero" schema:"in:plain"`
	// The agent that the task is for; any agent with the capability when it is missing.
	Target string `json:"target,omitzero" schema:"in:plain"`
	// Every agent that has had the task, the latest one last; at most 16 KiB in total. You are added
	// when you pass the task on. The task never returns to an agent in the list.
	Chain []string `json:"delegationChain,omitzero" schema:"in:maxitems=100,each:in:label"`
}

// Trace is the position of a task in a trace. The ids need not have the form of the W3C: see
// trace.IsID.
type Trace struct {
	// The id of the trace. A W3C trace has 32 lower-case hexadecimal digits; any text is accepted.
	TraceID string `json:"traceId,omitzero" schema:"in:plain"`
	// The span that the work is part of.
	SpanID string `json:"spanId,omitzero" schema:"in:plain"`
	// Values that travel with the trace, at most 16 KiB.
	Baggage object.Raw `json:"baggage,omitzero" schema:"type=object"`
}

// maxBaggage is the maximum size of baggage, in bytes. All messages of a task carry it.
const maxBaggage = 16 << 10

// The priorities that sessions do not have. The default is PriorityNormal.
const (
	PriorityNormal = "normal"
	PriorityUrgent = "urgent"
)

var Priorities = []string{"low", PriorityNormal, "high", PriorityUrgent}

// ReadRequest is ReadRequest for a document that has been split into members. The pointer is the
// place of the document.
func ReadRequest(document object.Raw, members []object.Member, pointer string, check Ambiguity) (*Request, *object.Error) {
	p := NewDecoder(members, pointer)
	r := &Request{Document: document, ID: readLabel(p, "id", object.Required), Type: readLabel(p, "type", object.Required), Payload: readObject(p, "payload", object.Required)}
	if IsAct(r.Type) {
		p.Refuse("type", "is reserved for messages about existing tasks: "+r.Type)
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
