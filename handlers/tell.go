package handlers

import (
	"fmt"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// Tell returns a record as an Event for people and programs. A record that cannot be decoded is
// shown with the error.
func Tell(r wire.Record) wire.Event {
	e := wire.Event{Seq: r.Seq, At: object.Timestamp(r.At), Kind: r.Kind, Payload: r.Payload}
	f, err := decode(&r)
	if err != nil {
		e.Text = err.Error()
		return e
	}
	if h, ok := f.(*lifecycleEvent); ok {
		e.Agent, e.Run, e.Text, e.Figures, e.Payload = h.Agent, h.Run, h.Text, h.Figures, nil
		return e
	}
	e.Agent = agentOf(r.From)
	if m, ok := f.(*mailed); ok {
		e.Mail, e.Payload = &m.Mail, nil
	}
	if told, ok := f.(teller); ok {
		told.tell(&e)
	}
	return e
}

// Happening reports whether records of a kind are events of the supervisor and not decisions.
func Happening(kind string) bool { return happenings[kind] }

// About returns the agent that a record is about, without decoding it: its cause or its
// recipient.
func About(r *wire.Record) string {
	if name := agentOf(r.From); name != "" {
		return name
	}
	if r.Kind == events.TaskAssigned {
		name, _ := object.TextOf(r.Payload, "agent")
		return name
	}
	return agentOf(r.To)
}

// A teller is a fact that sets the text and the agent of its Event.
type teller interface{ tell(e *wire.Event) }

func (f *agentKnown) tell(e *wire.Event) {
	e.Agent, e.Text = f.ID, "is a "+f.Role
	if len(f.Capabilities) > 0 {
		e.Text += ", can " + strings.Join(f.Capabilities, ", ")
	}
}

func (f *agentForgotten) tell(e *wire.Event) {
	e.Agent, e.Text = f.ID, "is no longer one of the agents"
}

func (f *taskCreated) tell(e *wire.Event) {
	e.Task, e.Text = f.ID, label(f.ID, f.Name)
	if len(f.Dependencies) > 0 {
		var waits []string
		for _, d := range f.Dependencies {
			waits = append(waits, short(d.On))
		}
		e.Text += " after " + strings.Join(waits, ", ")
	}
}

func (f *taskAssigned) tell(e *wire.Event) {
	e.Task, e.Agent, e.Run = f.ID, f.Agent, f.Run
	e.Text = label(f.ID, f.Name) + " -> " + f.Agent
	if f.Score != 0 {
		e.Text += fmt.Sprintf(", score %d", f.Score)
	}
	if f.Plan {
		e.Text += ", a plan first"
	}
	if f.Attempt > 1 {
		e.Text += fmt.Sprintf(", attempt %d", f.Attempt)
	}
}

func (f *taskStarted) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = f.ID, f.Agent, label(f.ID, f.Name)+" running"
}

func (f *taskProgress) tell(e *wire.Event) {
	e.Task, e.Agent = f.ID, f.Agent
	e.Text = fmt.Sprintf("%s %.0f%%", label(f.ID, f.Name), f.Progress*100)
	if f.Message != "" {
		e.Text += "  " + f.Message
	}
}

func (f *taskTrouble) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = f.ID, f.Agent, f.Error
	if f.ID != "" {
		e.Text = short(f.ID) + ": " + f.Error
	}
}

func (f *taskRequeued) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = f.ID, f.Agent, label(f.ID, f.Name)+" is back in the queue: "+f.Why
}

func (f *taskDone) tell(e *wire.Event) {
	e.Task, e.Text = f.ID, label(f.ID, f.Name)+" done"
	if f.Agent != "" {
		e.Agent = f.Agent
	}
}

func (f *taskFailed) tell(e *wire.Event) {
	e.Task, e.Text = f.ID, label(f.ID, f.Name)+" failed: "+f.Error
	if f.Agent != "" {
		e.Agent = f.Agent
	}
}

func (f *taskCancelled) tell(e *wire.Event) {
	e.Task, e.Text = f.ID, label(f.ID, f.Name)+" cancelled: "+f.Reason
	if f.Agent != "" {
		e.Agent = f.Agent
	}
}

func (f *taskBlocked) tell(e *wire.Event) {
	e.Task, e.Text = f.ID, label(f.ID, f.Name)+" will not run: it waits for "+short(f.Upstream)+", which came to nothing"
}

func (f *questionAsked) tell(e *wire.Event) {
	e.Agent, e.Text = f.Agent, f.ID+" "+f.Question
	for _, o := range f.Options {
		e.Text += " [" + o.Value + "]"
	}
}

func (f *questionRejoined) tell(e *wire.Event) { e.Agent, e.Text = f.Agent, f.ID+" is asked again" }

func (f *questionAnswered) tell(e *wire.Event) {
	e.Agent, e.Text = f.Agent, f.ID+" is answered: "+f.Answer
}

func (f *questionExpired) tell(e *wire.Event) {
	e.Agent, e.Text = f.Agent, f.ID+" was not answered in time"
}

func (f *keyIssued) tell(e *wire.Event) { e.Agent, e.Text = f.Agent, "has a new key "+f.ID }
