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

func (f *taskReturned) tell(e *wire.Event) {
	e.Task, e.Agent, e.Run = f.ID, f.Agent, f.Run
	e.Text = f.Agent + " does not read: " + label(f.ID, f.Name) + " waits until it does"
	if f.Acted != 0 {
		e.Text = f.Agent + " does not read: the input to " + label(f.ID, f.Name) + " waits until it does"
	}
}

func (f *taskResponded) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = f.ID, f.Agent, label(f.ID, f.Name)+" is "+f.Status+", says "+f.Agent
	switch {
	case f.Again:
		e.Text = label(f.ID, f.Name) + " is " + f.Status + ": its source is told so again"
	case f.Own:
		e.Text = label(f.ID, f.Name) + " is " + f.Status + ": its source is told so"
	}
}

func (f *taskAnswered) tell(e *wire.Event) {
	e.Task, e.Text = f.ID, "the source of "+label(f.ID, f.Name)+" has the response"
}

func (f *taskUnanswered) tell(e *wire.Event) {
	e.Task, e.Text = f.ID, "the source of "+label(f.ID, f.Name)+" does not read: the response waits until it does"
}

func (f *taskActed) tell(e *wire.Event) {
	e.Task, e.Agent = f.ID, f.Agent
	switch f.Act {
	case delegation.ActStatus:
		e.Text = f.Agent + " is asked how " + label(f.ID, f.Name) + " stands"
	default:
		e.Text = f.Agent + " is given input to " + label(f.ID, f.Name)
	}
}

func (f *taskRetried) tell(e *wire.Event) {
	e.Task, e.Agent = f.ID, f.Agent
	e.Text = label(f.ID, f.Name) + " is tried again"
	if f.Fault != nil { // other records have no fault
		e.Text += " after " + f.Fault.Code + ": " + wire.Visible(f.Fault.Message)
	}
}
