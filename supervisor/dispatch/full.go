package dispatch

import (
	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
)

// SetFull makes the Dispatcher refuse additions of agents and other programs with err, while the disk is nearly full. A
// nil err ends that. Operators are never refused.
func (d *Dispatcher) SetFull(err *wire.Error) { d.full.Store(err) }

// tooMuch returns why the addition of an input cannot be taken now, or nil. Operators are never refused. d.mu must be
// held.
func (d *Dispatcher) tooMuch(in *handlers.Input) *wire.Error {
	if in.From.Kind == handlers.Orchestrator || in.From.Kind == handlers.Operator {
		return nil
	}
	if full := d.full.Load(); full != nil && adds(in.Message) {
		return full
	}
	return d.quotas.exceeded(in)
}

// adds reports whether a message adds to the record, beyond a change of earlier objects. Agents can always read, and
// end their own work.
func adds(m wire.Message) bool {
	switch m := m.(type) {
	case *wire.Request:
		switch m.Operation {
		case "submit-task", "submit-task-request", "update-task", "update-task-request", "submit-plan", "add-note", "add-dependency",
			"report-progress", "request-help", "ask-user", "ask-permission", "send-message", "create-session", "send-session-message",
			"register-agent", "update-capabilities":
			return true
		}
	case *wire.AgentEvent:
		switch body := m.Body.(type) {
		case *delegation.Response, *activity.Usage, *activity.Conversation, *activity.Limited, *activity.Receipt:
			return false
		case *activity.Trouble: // an error that is not recoverable ends a task
			return body.Recoverable
		}
		return true
	}
	return false
}
