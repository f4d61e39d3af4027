package handlers

import (
	"fmt"

	"orchestrator/wire"
)

func (f *mailed) tell(e *wire.Event) {
	e.Text = fmt.Sprintf("%s -> %s  %s", f.From, f.To, f.Topic)
	if f.ReplyTo != nil {
		e.Text += fmt.Sprintf(", answers %d", *f.ReplyTo)
	}
	if f.cause != nil {
		e.Agent = f.cause.Agent
	}
}

func (f *mailAcked) tell(e *wire.Event) {
	e.Text = fmt.Sprintf("%s has dealt with its mail up to %d", f.Actor, f.Seq)
}

func (f *actorSeen) tell(e *wire.Event) { e.Text = f.Actor + " is there" }

func (f *actorStale) tell(e *wire.Event) {
	e.Text = f.Actor + " sends no heartbeat any more"
	if f.Over {
		e.Text = f.Actor + " is not missed any more"
	}
}

func (f *actorTokenIssued) tell(e *wire.Event) { e.Text = f.Actor + " has a new token " + f.ID }
