package serve

import (
	"slices"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
)

// work prints an event of a task or a question. The marks are "+" for new, ">" for
// progress, "ok" and "x" for the end, "?" for a question and "." for information. It
// returns false for other events, and for failures, which the caller prints.
func (c *console) work(l output.Line, text string) bool {
	e, p := l.Event, c.paint
	switch e.Kind {
	case wire.EventAgentKnown, wire.EventAgentForgotten, // known from the file
		wire.EventTaskAnnounced, wire.EventDependencyDone: // other lines say the same
	case wire.EventTaskCreated:
		c.put(l.At, e.Agent, p.Good("+"), "task "+text)
	case wire.EventTaskAssigned, wire.EventTaskStarted, wire.EventTaskUnblocked, wire.EventTaskRevise:
		c.put(l.At, e.Agent, p.Good(">"), text)
	case wire.EventTaskProgress:
		c.put(l.At, e.Agent, p.Dim(">"), p.Dim(text))
	case wire.EventTaskDone:
		c.put(l.At, e.Agent, p.Good("ok"), text+took(c.account.took(e.Task)))
	case wire.EventQuestionAnswered, wire.EventContractKept:
		c.put(l.At, e.Agent, p.Good("ok"), text)
	case wire.EventTaskFailed:
		c.put(l.At, e.Agent, p.Bad("x"), text)
	case wire.EventTaskCancelled:
		c.put(l.At, e.Agent, p.Warn("x"), text)
	case wire.EventQuestionAsked, wire.EventTaskHelp:
		c.put(l.At, e.Agent, p.Warn("?"), p.Strong(text))
		how := howToAnswer(e)
		if c.tty {
			how += "     or type it here: VALUE"
		}
		c.put(l.At, e.Agent, p.Warn("?"), p.Dim(how))
	case wire.EventTaskPlanned:
		c.put(l.At, e.Agent, p.Warn("?"), p.Strong(text))
		c.put(l.At, e.Agent, p.Warn("?"), p.Dim("orchestrator task approve-plan "+term.ID(e.Task)+"     or: revise-plan "+term.ID(e.Task)+" -m TEXT"))
	case wire.EventQuestionRejoined:
		c.put(l.At, e.Agent, p.Warn("?"), text)
	default:
		return c.aside(l, text)
	}
	return true
}

// asides are the kinds of events that are only informative.
var asides = []string{
	wire.EventTaskUpdated, wire.EventTaskNoted, wire.EventDependencyAdded, wire.EventDependencyGone, wire.EventQuestionWithdrawn,
	wire.EventAgentCapable, wire.EventServerRegistered, wire.EventServerSeen, wire.EventKeysRotated, wire.EventKeyRevoked,
	wire.EventRegistrationIssued, wire.EventTokenRevoked, wire.EventKeyIssued, wire.EventTokenIssued, wire.EventActorTokenIssued,
}

// aside prints an informative event. It returns false for other events.
func (c *console) aside(l output.Line, text string) bool {
	if !slices.Contains(asides, l.Event.Kind) {
		return false
	}
	c.put(l.At, l.Event.Agent, c.paint.Dim("."), c.paint.Dim(text))
	return true
}

// howToAnswer returns the command that answers a question.
func howToAnswer(e *wire.Event) string {
	asked, err := cli.Decode[struct {
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
	case wire.EventAgentKnown, wire.EventAgentForgotten, wire.EventTaskCreated, wire.EventTaskAssigned, wire.EventTaskStarted,
		wire.EventTaskProgress, wire.EventTaskDone, wire.EventTaskAnnounced, wire.EventTaskUnblocked, wire.EventTaskRevise,
		wire.EventDependencyDone, wire.EventContractKept, wire.EventQuestionRejoined, wire.EventQuestionAnswered:
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
