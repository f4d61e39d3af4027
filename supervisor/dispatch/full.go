package dispatch

import (
	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
)

// SetFull makes the Dispatcher refuse, with err, what agents and other programs add while the disk is
// nearly full. If err is nil, it refuses nothing any more. Operators are never refused.
func (d *Dispatcher) SetFull(err *wire.Error) { d.full.Store(err) }

// tooMuch returns why an input cannot be taken now because it adds something, or nil. Operators are never
// refused. d.mu must be held.
func (d *Dispatcher) tooMuch(in *handlers.Input) *wire.Error {
	if in.From.Kind == handlers.Orchestrator || in.From.Kind == handlers.Operator {
		return nil
	}
	if full := d.full.Load(); full != nil && adds(in.Message) {
		return full
	}
	return d.quotas.exceeded(in)
}

// adds reports whether a message adds something to the record that is more than a change of what is
// there. Agents can always read, and end what they have begun.
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
