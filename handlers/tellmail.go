package handlers

import (
	"fmt"

	"orchestrator/wire"
)

func (m *mailed) tell(e *wire.Event) {
	e.Text = fmt.Sprintf("%s -> %s  %s", m.From, m.To, m.Topic)
	if m.ReplyTo != nil {
		e.Text += fmt.Sprintf(", answers %d", *m.ReplyTo)
	}
	if m.cause != nil {
		e.Agent = m.cause.Agent
	}
}

func (m *mailAcked) tell(e *wire.Event) {
	e.Text = fmt.Sprintf("%s has dealt with its mail up to %d", m.Actor, m.Seq)
}

func (a *actorSeen) tell(e *wire.Event) { e.Text = a.Actor + " is there" }

func (a *actorStale) tell(e *wire.Event) {
	e.Text = a.Actor + " sends no heartbeat any more"
	if a.Over {
		e.Text = a.Actor + " is not missed any more"
	}
}

func (a *actorTokenIssued) tell(e *wire.Event) { e.Text = a.Actor + " has a new token " + a.ID }
