package telemetry

import (
	"cmp"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// matters reports whether facts of a kind change open work. Other facts are only counted.
func matters(kind string) bool {
	switch kind {
	case events.TaskCreated, events.TaskReopened, events.TaskAssigned, events.TaskRequeued, events.TaskBlocked, events.TaskUnblocked,
		events.TaskForwarded, events.TaskRetried,
		events.TaskDone, events.TaskFailed, events.TaskCancelled, events.DependencyAdded,
		events.SessionOpened, events.SessionClosed, events.AgentEnded, events.AgentUsage:
		return true
	}
	return false
}

// A fact holds the fields of all payloads that are used here. Package handlers writes them.
type fact struct {
	Task         string           `json:"task"`
	Name         string           `json:"name"`
	Type         string           `json:"type"`
	Parent       string           `json:"parent"`
	InSession    string           `json:"session"`
	Dependencies []hub.Dependency `json:"dependencies"`
	Dependency   hub.Dependency   `json:"dependency"`

	// The place of a task in a trace of another program.
	TraceID string `json:"trace_id"`
	SpanID  string `json:"span_id"`

	Agent   string `json:"agent"`
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`

	Error  failure `json:"error"`
	Reason string  `json:"reason"`
	Why    string  `json:"why"`

	Session string `json:"session_id"`

	activity.Usage // of an agent.usage, which has the id of its task
}

// A failure is the text of an error: a string, or the message of a delegation error.
type failure string

// UnmarshalJSON implements json.Unmarshaler.
func (f *failure) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '{' {
		var fault delegation.Fault
		err := object.DecodeOwn(text, &fault)
		*f = failure(fault.Message)
		return err
	}
	return object.DecodeOwn(text, (*string)(f))
}

// read decodes the payload of a fact, and reports whether that was possible.
func read(r *wire.Record) (*fact, bool) {
	f := new(fact)
	if object.DecodeOwn(r.Payload, f) != nil {
		return nil, false
	}
	if f.Task = cmp.Or(f.Task, f.TaskID); f.Task == "" && f.Session == "" && r.Kind != events.AgentEnded {
		return nil, false
	}
	return f, true
}

// An item is a batch, the beginning of a request, the end of a request, or a mark. An empty item
// means that the record is ahead of the queue.
type item struct {
	batch    *batch
	asked    *Asked
	answered *Answered
	mark     chan<- struct{} // closed when all earlier items were handled
}

// A batch describes facts that were committed together.
type batch struct {
	first, last int64
	facts       int
	bytes       int
	telling     []wire.Record // the facts that matters chooses
	began       time.Time
	took        time.Duration
}
