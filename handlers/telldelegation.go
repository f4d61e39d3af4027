package handlers

import (
	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// The events of facts about delegated tasks.

func (f *taskForwarded) tell(e *wire.Event) {
	e.Task, e.Agent, e.Run, e.Text = f.ID, f.Agent, f.Run, label(f.ID, f.Name)+" is brought to "+f.Agent
	if f.Acted != 0 {
		e.Text = "the input to " + label(f.ID, f.Name) + " is brought to " + f.Agent
	}
}

func (t *taskReturned) tell(e *wire.Event) {
	e.Task, e.Agent, e.Run = t.ID, t.Agent, t.Run
	e.Text = t.Agent + " does not read: " + label(t.ID, t.Name) + " waits until it does"
	if t.Acted != 0 {
		e.Text = t.Agent + " does not read: the input to " + label(t.ID, t.Name) + " waits until it does"
	}
}

func (t *taskResponded) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = t.ID, t.Agent, label(t.ID, t.Name)+" is "+t.Status+", says "+t.Agent
	switch {
	case t.Again:
		e.Text = label(t.ID, t.Name) + " is " + t.Status + ": its source is told so again"
	case t.Own:
		e.Text = label(t.ID, t.Name) + " is " + t.Status + ": its source is told so"
	}
}

func (t *taskAnswered) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, "the source of "+label(t.ID, t.Name)+" has the response"
}

func (t *taskUnanswered) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, "the source of "+label(t.ID, t.Name)+" does not read: the response waits until it does"
}

func (t *taskActed) tell(e *wire.Event) {
	e.Task, e.Agent = t.ID, t.Agent
	switch t.Act {
	case delegation.ActStatus:
		e.Text = t.Agent + " is asked how " + label(t.ID, t.Name) + " stands"
	default:
		e.Text = t.Agent + " is given input to " + label(t.ID, t.Name)
	}
}

func (t *taskRetried) tell(e *wire.Event) {
	e.Task, e.Agent = t.ID, t.Agent
	e.Text = label(t.ID, t.Name) + " is tried again"
	if t.Fault != nil { // other records have no fault
		e.Text += " after " + t.Fault.Code + ": " + wire.Visible(t.Fault.Message)
	}
}
