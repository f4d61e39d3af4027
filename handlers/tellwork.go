package handlers

import (
	"fmt"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

// What facts about the work on tasks mean, for people.

func (t *taskUpdated) tell(e *wire.Event) { e.Task, e.Text = t.ID, label(t.ID, t.Name)+" changed" }

func (t *taskNoted) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, label(t.ID, t.Name)+" noted: "+t.Content
}

func (t *taskPlanned) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = t.ID, t.Agent, label(t.ID, t.Name)+" has a plan: a person or a planner has to approve it"
}

func (t *taskRevise) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = t.ID, t.Agent, label(t.ID, t.Name)+" wants another plan: "+t.Feedback
}

func (t *taskHelp) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = t.ID, t.Agent, label(t.ID, t.Name)+" needs a person: "+t.QuestionID+" "+t.Question
}

func (t *taskUnblocked) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, label(t.ID, t.Name)+" waits for nothing any more"
}

func (t *taskAnnounced) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, fmt.Sprintf("%s is %s", label(t.ID, t.Name), t.State)
	if t.Unblocked > 0 {
		e.Text += fmt.Sprintf(", %d unblocked", t.Unblocked)
	}
}

func (d *dependencyAdded) tell(e *wire.Event) {
	e.Task, e.Text = d.ID, label(d.ID, d.Name)+" depends on "+short(d.Dependency.On)
	if d.Dependency.Type != hub.DependsBlocks && d.Dependency.Type != "" {
		e.Text += ", " + d.Dependency.Type
	}
	if d.Dependency.Contract != "" {
		e.Text += " " + d.Dependency.Contract
	}
}

func (d *dependencyGone) tell(e *wire.Event) {
	e.Task, e.Text = d.ID, label(d.ID, d.Name)+" does not depend on "+short(d.On)+" any more"
}

// maxTold is the maximum number of tasks that one text names.
const maxTold = 5

func (d *dependencyResolved) tell(e *wire.Event) {
	var names []string
	for i, w := range d.Waiting {
		if i == maxTold {
			names = append(names, fmt.Sprintf("%d more", len(d.Waiting)-i))
			break
		}
		names = append(names, short(w.ID))
	}
	e.Task, e.Text = d.ID, label(d.ID, d.Name)+" is there for "+strings.Join(names, ", ")
}

func (c *contractSeen) tell(e *wire.Event) {
	e.Task, e.Text = c.ID, fmt.Sprintf("%s delivers %s", label(c.ID, c.Name), c.Key)
	if c.what == events.ContractMissing {
		e.Text = fmt.Sprintf("%s does not deliver %s", label(c.ID, c.Name), c.Key)
	}
	switch {
	case c.Reason != "":
		e.Text += ": " + c.Reason
	case c.Status == hub.ContractPartial:
		e.Text += ", in part"
	}
	if c.NeededBy != "" {
		e.Text += ", which " + short(c.NeededBy) + " wants"
	}
}

func (o *oddity) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = o.ID, o.Agent, o.Pointer+": "+o.Text
	if o.ID != "" {
		e.Text = label(o.ID, o.Name) + " " + e.Text
	}
}

func (q *questionWithdrawn) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = q.Task, q.Agent, q.ID+" needs no answer any more"
}

func (ac *agentCapable) tell(e *wire.Event) {
	e.Agent, e.Text = ac.Agent, "says what it can do"
	if ac.Capabilities == nil {
		e.Text = "says how it is"
	}
}

func (sr *serverRegistered) tell(e *wire.Event) {
	e.Agent, e.Text = sr.Agent, "has registered"
	if sr.Hostname != "" {
		e.Text += " from " + sr.Hostname
	}
}

func (ss *serverSeen) tell(e *wire.Event) { e.Agent, e.Text = ss.Agent, "is there" }
func (sl *serverLost) tell(e *wire.Event) { e.Agent, e.Text = sl.Agent, "is not heard of any more" }

func (k *keysRotated) tell(e *wire.Event) {
	e.Agent, e.Text = k.Agent, "has a new key "+k.ID+", the old ones hold until "+k.Until
}

func (k *keyRevoked) tell(e *wire.Event) { e.Agent, e.Text = k.Agent, k.ID+" is revoked" }

func (ri *registrationIssued) tell(e *wire.Event) { e.Text = "a server may register with " + ri.ID }

func (t *tokenIssued) tell(e *wire.Event) {
	e.Text = t.Subject + " has a new token " + t.ID + " as " + t.Role
}

func (t *tokenRevoked) tell(e *wire.Event) { e.Text = t.ID + " of " + t.Subject + " is revoked" }

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
