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

func (ak *agentKnown) tell(e *wire.Event) {
	e.Agent, e.Text = ak.ID, "is a "+ak.Role
	if len(ak.Capabilities) > 0 {
		e.Text += ", can " + strings.Join(ak.Capabilities, ", ")
	}
}

func (f *agentForgotten) tell(e *wire.Event) {
	e.Agent, e.Text = f.ID, "is no longer one of the agents"
}

func (t *taskCreated) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, label(t.ID, t.Name)
	if len(t.Dependencies) > 0 {
		var waits []string
		for _, d := range t.Dependencies {
			waits = append(waits, short(d.On))
		}
		e.Text += " after " + strings.Join(waits, ", ")
	}
}

func (t *taskAssigned) tell(e *wire.Event) {
	e.Task, e.Agent, e.Run = t.ID, t.Agent, t.Run
	e.Text = label(t.ID, t.Name) + " -> " + t.Agent
	if t.Score != 0 {
		e.Text += fmt.Sprintf(", score %d", t.Score)
	}
	if t.Plan {
		e.Text += ", a plan first"
	}
	if t.Attempt > 1 {
		e.Text += fmt.Sprintf(", attempt %d", t.Attempt)
	}
}

func (t *taskStarted) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = t.ID, t.Agent, label(t.ID, t.Name)+" running"
}

func (t *taskProgress) tell(e *wire.Event) {
	e.Task, e.Agent = t.ID, t.Agent
	e.Text = fmt.Sprintf("%s %.0f%%", label(t.ID, t.Name), t.Progress*100)
	if t.Message != "" {
		e.Text += "  " + t.Message
	}
}

func (t *taskTrouble) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = t.ID, t.Agent, t.Error
	if t.ID != "" {
		e.Text = short(t.ID) + ": " + t.Error
	}
}

func (t *taskRequeued) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = t.ID, t.Agent, label(t.ID, t.Name)+" is back in the queue: "+t.Why
}

func (t *taskDone) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, label(t.ID, t.Name)+" done"
	if t.Agent != "" {
		e.Agent = t.Agent
	}
}

func (f *taskFailed) tell(e *wire.Event) {
	e.Task, e.Text = f.ID, label(f.ID, f.Name)+" failed: "+f.Error
	if f.Agent != "" {
		e.Agent = f.Agent
	}
}

func (t *taskCancelled) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, label(t.ID, t.Name)+" cancelled: "+t.Reason
	if t.Agent != "" {
		e.Agent = t.Agent
	}
}

func (t *taskBlocked) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, label(t.ID, t.Name)+" will not run: it waits for "+short(t.Upstream)+", which came to nothing"
}

func (qa *questionAsked) tell(e *wire.Event) {
	e.Agent, e.Text = qa.Agent, qa.ID+" "+qa.Question
	for _, o := range qa.Options {
		e.Text += " [" + o.Value + "]"
	}
}

func (qr *questionRejoined) tell(e *wire.Event) { e.Agent, e.Text = qr.Agent, qr.ID+" is asked again" }

func (qa *questionAnswered) tell(e *wire.Event) {
	e.Agent, e.Text = qa.Agent, qa.ID+" is answered: "+qa.Answer
}

func (qe *questionExpired) tell(e *wire.Event) {
	e.Agent, e.Text = qe.Agent, qe.ID+" was not answered in time"
}

func (k *keyIssued) tell(e *wire.Event) { e.Agent, e.Text = k.Agent, "has a new key "+k.ID }
