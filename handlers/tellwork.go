package handlers

import (
	"fmt"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

// What facts about the work on tasks mean, for people.

func (f *taskUpdated) tell(e *wire.Event) { e.Task, e.Text = f.ID, label(f.ID, f.Name)+" changed" }

func (f *taskNoted) tell(e *wire.Event) {
	e.Task, e.Text = f.ID, label(f.ID, f.Name)+" noted: "+f.Content
}

func (f *taskPlanned) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = f.ID, f.Agent, label(f.ID, f.Name)+" has a plan: a person or a planner has to approve it"
}

func (f *taskRevise) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = f.ID, f.Agent, label(f.ID, f.Name)+" wants another plan: "+f.Feedback
}

func (f *taskHelp) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = f.ID, f.Agent, label(f.ID, f.Name)+" needs a person: "+f.QuestionID+" "+f.Question
}

func (f *taskUnblocked) tell(e *wire.Event) {
	e.Task, e.Text = f.ID, label(f.ID, f.Name)+" waits for nothing any more"
}

func (f *taskAnnounced) tell(e *wire.Event) {
	e.Task, e.Text = f.ID, fmt.Sprintf("%s is %s", label(f.ID, f.Name), f.State)
	if f.Unblocked > 0 {
		e.Text += fmt.Sprintf(", %d unblocked", f.Unblocked)
	}
}

func (f *dependencyAdded) tell(e *wire.Event) {
	e.Task, e.Text = f.ID, label(f.ID, f.Name)+" depends on "+short(f.Dependency.On)
	if f.Dependency.Type != hub.DependsBlocks && f.Dependency.Type != "" {
		e.Text += ", " + f.Dependency.Type
	}
	if f.Dependency.Contract != "" {
		e.Text += " " + f.Dependency.Contract
	}
}

func (f *dependencyGone) tell(e *wire.Event) {
	e.Task, e.Text = f.ID, label(f.ID, f.Name)+" does not depend on "+short(f.On)+" any more"
}

// maxTold is the maximum number of tasks that one text names.
const maxTold = 5

func (f *dependencyResolved) tell(e *wire.Event) {
	var names []string
	for i, w := range f.Waiting {
		if i == maxTold {
			names = append(names, fmt.Sprintf("%d more", len(f.Waiting)-i))
			break
		}
		names = append(names, short(w.ID))
	}
	e.Task, e.Text = f.ID, label(f.ID, f.Name)+" is there for "+strings.Join(names, ", ")
}

func (f *contractSeen) tell(e *wire.Event) {
	e.Task, e.Text = f.ID, fmt.Sprintf("%s delivers %s", label(f.ID, f.Name), f.Key)
	if f.what == events.ContractMissing {
		e.Text = fmt.Sprintf("%s does not deliver %s", label(f.ID, f.Name), f.Key)
	}
	switch {
	case f.Reason != "":
		e.Text += ": " + f.Reason
	case f.Status == hub.ContractPartial:
		e.Text += ", in part"
	}
	if f.NeededBy != "" {
		e.Text += ", which " + short(f.NeededBy) + " wants"
	}
}

func (f *oddity) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = f.ID, f.Agent, f.Pointer+": "+f.Text
	if f.ID != "" {
		e.Text = label(f.ID, f.Name) + " " + e.Text
	}
}

func (f *questionWithdrawn) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = f.Task, f.Agent, f.ID+" needs no answer any more"
}

func (f *agentCapable) tell(e *wire.Event) {
	e.Agent, e.Text = f.Agent, "says what it can do"
	if f.Capabilities == nil {
		e.Text = "says how it is"
	}
}

func (f *serverRegistered) tell(e *wire.Event) {
	e.Agent, e.Text = f.Agent, "has registered"
	if f.Hostname != "" {
		e.Text += " from " + f.Hostname
	}
}

func (f *serverSeen) tell(e *wire.Event) { e.Agent, e.Text = f.Agent, "is there" }
func (f *serverLost) tell(e *wire.Event) { e.Agent, e.Text = f.Agent, "is not heard of any more" }

func (f *keysRotated) tell(e *wire.Event) {
	e.Agent, e.Text = f.Agent, "has a new key "+f.ID+", the old ones hold until "+f.Until
}

func (f *keyRevoked) tell(e *wire.Event) { e.Agent, e.Text = f.Agent, f.ID+" is revoked" }

func (f *registrationIssued) tell(e *wire.Event) { e.Text = "a server may register with " + f.ID }

func (f *tokenIssued) tell(e *wire.Event) {
	e.Text = f.Subject + " has a new token " + f.ID + " as " + f.Role
}

func (f *tokenRevoked) tell(e *wire.Event) { e.Text = f.ID + " of " + f.Subject + " is revoked" }
