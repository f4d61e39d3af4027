package main

import (
	"orchestrator/supervisor"
	"orchestrator/wire"
)

// work shows what happened to a task or to a question: "+" for a new one, ">"
// for one that moves, "ok" and "x" for how it ended, "?" for a question. It
// says false for what is neither. What is trouble looks as all trouble does.
func (c *console) work(l supervisor.Line, text string) bool {
	e, p := l.Event, c.paint
	switch e.Kind {
	case wire.EventAgentKnown, wire.EventAgentForgotten: // the file says as much
	case wire.EventTaskCreated:
		c.put(l.At, e.Agent, p.good("+"), "task "+text)
	case wire.EventTaskAssigned, wire.EventTaskStarted:
		c.put(l.At, e.Agent, p.good(">"), text)
	case wire.EventTaskProgress:
		c.put(l.At, e.Agent, p.dim(">"), p.dim(text))
	case wire.EventTaskDone, wire.EventQuestionAnswered:
		c.put(l.At, e.Agent, p.good("ok"), text)
	case wire.EventTaskFailed:
		c.put(l.At, e.Agent, p.bad("x"), text)
	case wire.EventTaskCancelled:
		c.put(l.At, e.Agent, p.warn("x"), text)
	case wire.EventQuestionAsked, wire.EventTaskHelp:
		c.put(l.At, e.Agent, p.warn("?"), p.strong(text))
		how := howToAnswer(e)
		if c.tty {
			how += "     or type it here: VALUE"
		}
		c.put(l.At, e.Agent, p.warn("?"), p.dim(how))
	case wire.EventQuestionRejoined:
		c.put(l.At, e.Agent, p.warn("?"), text)
	case wire.EventKeyIssued, wire.EventTokenIssued, wire.EventActorTokenIssued:
		c.put(l.At, e.Agent, p.dim("."), p.dim(text))
	default:
		return false
	}
	return true
}

// howToAnswer is the command that answers a question.
func howToAnswer(e *wire.Event) string {
	asked, err := decode[struct {
		ID string `json:"question_id"`
	}](e.Payload)
	if err != nil || asked.ID == "" {
		return "orchestrator inbox"
	}
	return "orchestrator inbox answer " + wire.Visible(asked.ID) + " VALUE"
}

// calmWork says whether what happened to a task or a question is as it should
// be, and needs nobody.
func calmWork(kind string) bool {
	switch kind {
	case wire.EventAgentKnown, wire.EventAgentForgotten, wire.EventTaskCreated, wire.EventTaskAssigned, wire.EventTaskStarted,
		wire.EventTaskProgress, wire.EventTaskDone, wire.EventQuestionRejoined, wire.EventQuestionAnswered, wire.EventKeyIssued,
		wire.EventTokenIssued, wire.EventActorTokenIssued:
		return true
	}
	return false
}
