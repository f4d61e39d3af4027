package serve

import (
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
)

// delegation shows what becomes of tasks that were handed on: ">" for one that moves.
// What a response says that is told of its task, or of its question, as well is not
// shown twice. It says false for what is no matter of delegation, and for trouble,
// which looks as all trouble does.
func (c *console) delegation(l output.Line, text string) bool {
	e, p := l.Event, c.paint
	switch e.Kind {
	case wire.EventTaskForwarded, wire.EventTaskActed:
		c.put(l.At, e.Agent, p.Good(">"), text)
	case wire.EventTaskResponded:
		if !saidElsewhere(e) {
			c.put(l.At, e.Agent, p.Dim(">"), p.Dim(text))
		}
	case wire.EventTaskAnswered:
	default:
		return false
	}
	return true
}

// saidElsewhere reports whether a response is told by the end of its task, or by the
// question that it asks.
func saidElsewhere(e *wire.Event) bool {
	said, err := cli.Decode[struct {
		Status string `json:"status"`
	}](e.Payload)
	if err != nil {
		return false
	}
	switch said.Status {
	case wire.ResponseInputRequired, wire.ResponseCompleted, wire.ResponseFailed, wire.ResponseCancelled:
		return true
	}
	return false
}

// calmDelegation reports whether what happened to a task that was handed on is as it
// should be, and needs no person.
func calmDelegation(kind string) bool {
	switch kind {
	case wire.EventTaskForwarded, wire.EventTaskResponded, wire.EventTaskAnswered, wire.EventTaskActed:
		return true
	}
	return false
}
