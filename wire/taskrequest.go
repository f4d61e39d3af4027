package wire

import (
	"fmt"

	"orchestrator/wire/object"
)

// TaskRequest is work that is handed to an agent. It is forwarded as it came; what
// is read out of it is what decisions need.
type TaskRequest struct {
	ID            string // of the task: whatever is said about the task has the same
	Type          string // what is to be done: the name of a capability
	Payload       Raw    // an object, digit for digit
	Context       TaskContext
	Routing       TaskRouting
	Observability TaskTrace

	Document Raw      // all of it, on one line, digit for digit
	Notes    []string // what is odd, each with its place
	Sum      uint64   // of what is asked and of which agent: asking once more changes none of it
}

// TaskContext is what a task belongs to. What is not said is "".
type TaskContext struct {
	ConversationID string `json:"conversationId,omitzero"`
	ParentTaskID   string `json:"parentTaskId,omitzero"`
	User           string `json:"user,omitzero"`
	Timestamp      string `json:"timestamp,omitzero"`
	Priority       string `json:"priority,omitzero"` // Priority…
}

// TaskRouting is the way of a task. What is not said is "".
type TaskRouting struct {
	Source string   `json:"source,omitzero"` // who asks, and is answered
	Target string   `json:"target,omitzero"` // who is asked
	Chain  []string `json:"delegationChain,omitzero"`
}

// TaskTrace says to which trace a task belongs. The ids need not be those of the
// W3C: see IsTraceID.
type TaskTrace struct {
	TraceID string `json:"traceId,omitzero"`
	SpanID  string `json:"spanId,omitzero"`
	Baggage Raw    `json:"baggage,omitzero"` // an object, digit for digit
}

// mostBaggage is how long baggage may be, in bytes: it goes with everything that is
// done for a task.
const mostBaggage = 16 << 10

// How urgent a task is has two words that sessions do not have. What is not said is
// PriorityNormal.
const (
	PriorityNormal = "normal"
	PriorityUrgent = "urgent"
)

var taskPriorities = []string{PriorityLow, PriorityNormal, PriorityHigh, PriorityUrgent}

// ReadTaskRequest reads a request for work, as far as it alone tells whether it is
// one. Everything that is wrong is in the error, as ReadSessionMessage tells it.
//
// Members that are not known here are kept and forwarded. One that is null counts as
// missing, where it may be. A type of which IsTaskAct says that it is about a task
// that there is already is none of a request.
func ReadTaskRequest(line []byte, depth int) (*TaskRequest, *Error) {
	document, members, err := openLine(line, depth)
	if err != nil {
		return nil, err
	}
	return readTaskRequest(document, members, "")
}

// readTaskRequest is ReadTaskRequest for a document that has been taken apart. The
// pointer is to where it stands.
func readTaskRequest(document Raw, members []object.Member, pointer string) (*TaskRequest, *Error) {
	p := delegated(members, pointer)
	r := &TaskRequest{Document: document, ID: readLabel(p, "id", object.Required), Type: readLabel(p, "type", object.Required), Payload: readObject(p, "payload", object.Required)}
	if IsTaskAct(r.Type) {
		p.Refuse("type", "is of a message about a task that there is: "+r.Type+" asks for none")
	}
	p.Inside("context", object.Optional, func(in *object.Decoder) { r.Context = readTaskContext(in) })
	p.Inside("routing", object.Optional, func(in *object.Decoder) { r.Routing = readTaskRouting(in) })
	p.Inside("observability", object.Optional, func(in *object.Decoder) { r.Observability = readTaskTrace(in) })
	checkLookalikes(p, "id", "type", "payload", "context", "routing", "observability")
	checkKeys(p)
	if err := object.ErrorOf(p.Issues.Problems); err != nil {
		return nil, err
	}
	r.Notes = p.Issues.Notes
	r.Sum = sumOf([]byte(r.Type), []byte(r.Routing.Target), r.Payload)
	return r, nil
}

func readTaskContext(p *object.Decoder) TaskContext {
	checkLookalikes(p, "conversationId", "parentTaskId", "user", "timestamp", "priority")
	return TaskContext{
		ConversationID: readLabel(p, "conversationId", object.Optional),
		ParentTaskID:   readLabel(p, "parentTaskId", object.Optional),
		User:           readLabel(p, "user", object.Optional),
		Timestamp:      p.Time("timestamp", object.Optional),
		Priority:       p.OneOf("priority", object.Optional, taskPriorities),
	}
}

func readTaskRouting(p *object.Decoder) TaskRouting {
	checkLookalikes(p, "source", "target", "delegationChain")
	return TaskRouting{
		Source: readLabel(p, "source", object.Optional), Target: readLabel(p, "target", object.Optional), Chain: readChain(p, "delegationChain"),
	}
}

func readTaskTrace(p *object.Decoder) TaskTrace {
	checkLookalikes(p, "traceId", "spanId", "baggage")
	t := TaskTrace{
		TraceID: readLabel(p, "traceId", object.Optional), SpanID: readLabel(p, "spanId", object.Optional), Baggage: readObject(p, "baggage", object.Optional),
	}
	if len(t.Baggage) > mostBaggage {
		p.Refuse("baggage", fmt.Sprintf("must not be longer than %d bytes", mostBaggage))
	}
	return t
}
