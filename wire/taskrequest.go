package wire

import "fmt"

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
func readTaskRequest(document Raw, members []member, pointer string) (*TaskRequest, *Error) {
	p := delegated(members, pointer)
	r := &TaskRequest{Document: document, ID: p.label("id", needed), Type: p.label("type", needed), Payload: p.object("payload", needed)}
	if IsTaskAct(r.Type) {
		p.wrong("type", "is of a message about a task that there is: "+r.Type+" asks for none")
	}
	p.inside("context", optional, func(in *decoder) { r.Context = in.taskContext() })
	p.inside("routing", optional, func(in *decoder) { r.Routing = in.taskRouting() })
	p.inside("observability", optional, func(in *decoder) { r.Observability = in.taskTrace() })
	p.lookalikes("id", "type", "payload", "context", "routing", "observability")
	p.unmistakable()
	if err := refusing(p.all.problems); err != nil {
		return nil, err
	}
	r.Notes = p.all.notes
	r.Sum = sumOf([]byte(r.Type), []byte(r.Routing.Target), r.Payload)
	return r, nil
}

func (p *decoder) taskContext() TaskContext {
	p.lookalikes("conversationId", "parentTaskId", "user", "timestamp", "priority")
	return TaskContext{
		ConversationID: p.label("conversationId", optional),
		ParentTaskID:   p.label("parentTaskId", optional),
		User:           p.label("user", optional),
		Timestamp:      p.moment("timestamp", optional),
		Priority:       p.word("priority", optional, taskPriorities),
	}
}

func (p *decoder) taskRouting() TaskRouting {
	p.lookalikes("source", "target", "delegationChain")
	return TaskRouting{
		Source: p.label("source", optional), Target: p.label("target", optional), Chain: p.chain("delegationChain"),
	}
}

func (p *decoder) taskTrace() TaskTrace {
	p.lookalikes("traceId", "spanId", "baggage")
	t := TaskTrace{
		TraceID: p.label("traceId", optional), SpanID: p.label("spanId", optional), Baggage: p.object("baggage", optional),
	}
	if len(t.Baggage) > mostBaggage {
		p.wrong("baggage", fmt.Sprintf("must not be longer than %d bytes", mostBaggage))
	}
	return t
}
