package console

import (
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
)

// delegation prints an event of a delegated task, with ">" for progress. It omits responses
// that repeat an event of the task or its question. It returns false for other events, and
// for failures, which the caller prints.
func (c *Console) delegation(l output.Line, text string) bool {
	e, p := l.Event, c.paint
	switch e.Kind {
	case events.TaskForwarded, events.TaskActed:
		c.put(l.At, e.Agent, p.Good(">"), text)
	case events.TaskResponded:
		if !saidElsewhere(e) {
			c.put(l.At, e.Agent, p.Dim(">"), p.Dim(text))
		}
	case events.TaskAnswered:
	default:
		return false
	}
	return true
}

// saidElsewhere reports whether another event tells the same as a response: the end of the
// task, or its question.
func saidElsewhere(e *wire.Event) bool {
	said, err := client.Decode[struct {
		Status string `json:"status"`
	}](e.Payload)
	if err != nil {
		return false
	}
	switch said.Status {
	case delegation.InputRequired, delegation.Completed, delegation.Failed, delegation.Cancelled:
		return true
	}
	return false
}

// calmDelegation reports whether an event of a delegated task is routine.
func calmDelegation(kind string) bool {
	switch kind {
	case events.TaskForwarded, events.TaskResponded, events.TaskAnswered, events.TaskActed:
		return true
	}
	return false
}
