package serve

import (
	"slices"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
)

// work shows what happened to a task or to a question: "+" for a new one, ">"
// for one that moves, "ok" and "x" for how it ended, "?" for what waits for a person,
// "." for what is only good to know. It says false for what is neither. What is
// trouble looks as all trouble does.
func (c *console) work(l output.Line, text string) bool {
	e, p := l.Event, c.paint
	switch e.Kind {
	case wire.EventAgentKnown, wire.EventAgentForgotten, // the file says as much
		wire.EventTaskAnnounced, wire.EventDependencyDone: // the lines around it do
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

// asides are kinds of event that are good to know, and ask for nothing.
var asides = []string{
	wire.EventTaskUpdated, wire.EventTaskNoted, wire.EventDependencyAdded, wire.EventDependencyGone, wire.EventQuestionWithdrawn,
	wire.EventAgentCapable, wire.EventServerRegistered, wire.EventServerSeen, wire.EventKeysRotated, wire.EventKeyRevoked,
	wire.EventRegistrationIssued, wire.EventTokenRevoked, wire.EventKeyIssued, wire.EventTokenIssued, wire.EventActorTokenIssued,
}

// aside shows what is only good to know. It says false for everything else.
func (c *console) aside(l output.Line, text string) bool {
	if !slices.Contains(asides, l.Event.Kind) {
		return false
	}
	c.put(l.At, l.Event.Agent, c.paint.Dim("."), c.paint.Dim(text))
	return true
}

// howToAnswer is the command that answers a question.
func howToAnswer(e *wire.Event) string {
	asked, err := cli.Decode[struct {
		ID string `json:"question_id"`
	}](e.Payload)
	if err != nil || asked.ID == "" {
		return "orchestrator inbox"
	}
	return "orchestrator inbox answer " + wire.Visible(asked.ID) + " VALUE"
}

// calmWork reports whether what happened to a task or a question is as it should
// be, and needs no person.
func calmWork(kind string) bool {
	switch kind {
	case wire.EventAgentKnown, wire.EventAgentForgotten, wire.EventTaskCreated, wire.EventTaskAssigned, wire.EventTaskStarted,
		wire.EventTaskProgress, wire.EventTaskDone, wire.EventTaskAnnounced, wire.EventTaskUnblocked, wire.EventTaskRevise,
		wire.EventDependencyDone, wire.EventContractKept, wire.EventQuestionRejoined, wire.EventQuestionAnswered:
		return true
	}
	return slices.Contains(asides, kind)
}

// took says how long something took, if that is known.
func took(d time.Duration) string {
	if d < 0 {
		return ""
	}
	return " in " + term.Duration(d)
}
