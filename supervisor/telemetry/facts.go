package telemetry

import (
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// matters reports whether facts of a kind say something here. The others are counted.
func matters(kind string) bool {
	switch kind {
	case wire.EventTaskCreated, wire.EventTaskAssigned, wire.EventTaskRequeued, wire.EventTaskBlocked, wire.EventTaskUnblocked,
		wire.EventTaskForwarded, wire.EventTaskRetried,
		wire.EventTaskDone, wire.EventTaskFailed, wire.EventTaskCancelled, wire.EventDependencyAdded,
		wire.EventSessionOpened, wire.EventSessionClosed, wire.EventEnded:
		return true
	}
	return false
}

// fact is what matters of the payload of any of them. A record says of each what
// handlers has written.
type fact struct {
	Task         string            `json:"task"`
	Name         string            `json:"name"`
	Type         string            `json:"type"`
	Parent       string            `json:"parent"`
	InSession    string            `json:"session"`
	Dependencies []wire.Dependency `json:"dependencies"`
	Dependency   wire.Dependency   `json:"dependency"`

	// Where a task stands in a trace that another program has begun.
	TraceID string `json:"trace_id"`
	SpanID  string `json:"span_id"`

	Agent   string `json:"agent"`
	Run     string `json:"run"`
	Attempt int    `json:"attempt"`

	Error  failure `json:"error"`
	Reason string  `json:"reason"`
	Why    string  `json:"why"`

	Session string `json:"session_id"`
}

// failure is why something failed: in words, or as an agent says it of what was
// handed on to it.
type failure string

// UnmarshalJSON implements the decoder's interface.
func (f *failure) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '{' {
		var fault wire.TaskFault
		err := object.DecodeOwn(text, &fault)
		*f = failure(fault.Message)
		return err
	}
	return object.DecodeOwn(text, (*string)(f))
}

// read reads what a fact says; false when it cannot be read.
func read(r *wire.Record) (*fact, bool) {
	f := new(fact)
	if object.DecodeOwn(r.Payload, f) != nil || f.Task == "" && f.Session == "" && r.Kind != wire.EventEnded {
		return nil, false
	}
	return f, true
}
