package console

import (
	"slices"
	"time"

	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// work prints an event of a task or a question. The marks are "+" for new, ">" for
// progress, "ok" and "x" for the end, "?" for a question and "." for information. It
// returns false for other events, and for failures, which the caller prints.
func (c *Console) work(l output.Line, text string) bool {
	e, p := l.Event, c.paint
	switch e.Kind {
	case events.AgentKnown, events.AgentForgotten, // known from the file
		events.TaskAnnounced, events.DependencyResolved: // other lines say the same
	case events.TaskCreated:
		c.put(l.At, e.Agent, p.Good("+"), "task "+text)
	case events.TaskAssigned, events.TaskStarted, events.TaskUnblocked, events.TaskPlanReturned:
		c.put(l.At, e.Agent, p.Good(">"), text)
	case events.TaskProgress:
		c.put(l.At, e.Agent, p.Dim(">"), p.Dim(text))
	case events.TaskDone:
		c.put(l.At, e.Agent, p.Good("ok"), text+took(c.tally.took(e.Task)))
	case events.QuestionAnswered, events.ContractFulfilled:
		c.put(l.At, e.Agent, p.Good("ok"), text)
	case events.TaskFailed:
		c.put(l.At, e.Agent, p.Bad("x"), text)
	case events.TaskCancelled:
		c.put(l.At, e.Agent, p.Warn("x"), text)
	case events.QuestionAsked, events.TaskHelpWanted:
		c.put(l.At, e.Agent, p.Warn("?"), p.Strong(text))
		how := howToAnswer(e)
		if c.tty {
			how += "     or type it here: VALUE"
		}
		c.put(l.At, e.Agent, p.Warn("?"), p.Dim(how))
	case events.TaskPlanned:
		c.put(l.At, e.Agent, p.Warn("?"), p.Strong(text))
		c.put(l.At, e.Agent, p.Warn("?"), p.Dim("orchestrator task approve-plan "+term.ID(e.Task)+"     or: revise-plan "+term.ID(e.Task)+" -m TEXT"))
	case events.QuestionRejoined:
		c.put(l.At, e.Agent, p.Warn("?"), text)
	default:
		return c.aside(l, text)
	}
	return true
}

// asides are the kinds of events that are only informative.
var asides = []string{
	events.TaskUpdated, events.TaskNoted, events.DependencyAdded, events.DependencyRemoved, events.QuestionWithdrawn,
	events.AgentCapable, events.ServerRegistered, events.ServerSeen, events.KeyRotated, events.KeyRevoked,
	events.RegistrationIssued, events.TokenRevoked, events.KeyIssued, events.TokenIssued, events.ActorTokenIssued,
}

// aside prints an informative event. It returns false for other events.
func (c *Console) aside(l output.Line, text string) bool {
	if !slices.Contains(asides, l.Event.Kind) {
		return false
	}
	c.put(l.At, l.Event.Agent, c.paint.Dim("."), c.paint.Dim(text))
	return true
}

// howToAnswer returns the command that answers a question.
func howToAnswer(e *wire.Event) string {
	asked, err := client.Decode[struct {
		ID string `json:"question_id"`
	}](e.Payload)
	if err != nil || asked.ID == "" {
		return "orchestrator inbox"
	}
	return "orchestrator inbox answer " + wire.Visible(asked.ID) + " VALUE"
}

// calmWork reports whether a kind of task or question event is routine.
func calmWork(kind string) bool {
	switch kind {
	case events.AgentKnown, events.AgentForgotten, events.TaskCreated, events.TaskAssigned, events.TaskStarted,
		events.TaskProgress, events.TaskDone, events.TaskAnnounced, events.TaskUnblocked, events.TaskPlanReturned,
		events.DependencyResolved, events.ContractFulfilled, events.QuestionRejoined, events.QuestionAnswered:
		return true
	}
	return slices.Contains(asides, kind)
}

// took returns a duration for the end of a line, or "" if it is unknown.
func took(d time.Duration) string {
	if d < 0 {
		return ""
	}
	return " in " + term.Duration(d)
}
