package wire

import (
	"fmt"

	"orchestrator/wire/object"
)

// A TaskRequest is work that is delegated to an agent. It is forwarded unchanged. The fields
// hold what decisions need.
type TaskRequest struct {
	ID            string // of the task; every message about the task has it
	Type          string // the capability that it needs
	Payload       Raw    // an object, digit for digit
	Context       TaskContext
	Routing       TaskRouting
	Observability TaskTrace

	Document Raw      // all of it, on one line, digit for digit
	Notes    []string // warnings, each with its place
	Sum      uint64   // of the content and the target; a repeat has the same
}

// TaskContext is the context of a task. Missing members are "".
type TaskContext struct {
	ConversationID string `json:"conversationId,omitzero"`
	ParentTaskID   string `json:"parentTaskId,omitzero"`
	User           string `json:"user,omitzero"`
	Timestamp      string `json:"timestamp,omitzero"`
	Priority       string `json:"priority,omitzero"` // Priority…
}

// TaskRouting is the route of a task. Missing members are "".
type TaskRouting struct {
	Source string   `json:"source,omitzero"` // the agent that delegates and gets the responses
	Target string   `json:"target,omitzero"` // the agent that the work is for
	Chain  []string `json:"delegationChain,omitzero"`
}

// TaskTrace is the position of a task in a trace. The ids need not have the form of the W3C: see
// IsTraceID.
type TaskTrace struct {
	TraceID string `json:"traceId,omitzero"`
	SpanID  string `json:"spanId,omitzero"`
	Baggage Raw    `json:"baggage,omitzero"` // an object, digit for digit
}

// mostBaggage is the maximum size of baggage, in bytes. All messages of a task carry it.
const mostBaggage = 16 << 10

// The priorities that sessions do not have. The default is PriorityNormal.
const (
	PriorityNormal = "normal"
	PriorityUrgent = "urgent"
)

var taskPriorities = []string{"low", PriorityNormal, "high", PriorityUrgent}

// ReadTaskRequest reads a task request and checks it without knowledge of other tasks. The error
// lists all problems, as that of ReadSessionMessage does.
//
// Unknown members are kept and forwarded. An optional member that is null counts as missing. The
// type must not be that of an act (IsTaskAct).
func ReadTaskRequest(line []byte, depth int) (*TaskRequest, *Error) {
	document, members, err := object.OpenCopy(line, depth)
	if err != nil {
		return nil, err
	}
	return readTaskRequest(document, members, "")
}

// readTaskRequest is ReadTaskRequest for a document that has been split into members. The
// pointer is that of the document.
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
	r.Sum = object.Sum([]byte(r.Type), []byte(r.Routing.Target), r.Payload)
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
