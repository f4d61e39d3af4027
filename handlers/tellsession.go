package handlers

import (
	"fmt"

	"orchestrator/handlers/review"
	"orchestrator/wire"
)

// What facts about sessions mean, for people.

func (f *sessionOpened) tell(e *wire.Event) {
	e.Text = fmt.Sprintf("session %s is open, with %s", f.ID, counted(len(f.Members), "member"))
}

func (f *sessionClosed) tell(e *wire.Event) {
	e.Agent, e.Text = f.By, fmt.Sprintf("session %s is closed: %s", f.ID, f.Reason)
}

func (f *sessionSaid) tell(e *wire.Event) {
	e.Agent, e.Task = f.From, f.Task
	e.Text = fmt.Sprintf("%s  %s -> %s  %s", f.Session, f.From, f.To, f.Type)
	if f.Task != "" {
		e.Text += " " + short(f.Task)
	}
	if f.By != "" {
		e.Text += ", said by " + f.By
	}
	switch f.Fate {
	case fateHeld:
		e.Text += ", held back"
	case fateKept:
		e.Text += ", kept here"
	}
}

func (f *sessionRefused) tell(e *wire.Event) {
	e.Agent, e.Task = f.From, f.Task
	e.Text = fmt.Sprintf("%s  a message of %s is refused: %s", f.Session, f.From, f.Why)
}

func (f *sessionDelivered) tell(e *wire.Event) {
	e.Agent, e.Text = f.Agent, fmt.Sprintf("has message %d", f.Message)
}

func (f *sessionDeferred) tell(e *wire.Event) {
	e.Agent, e.Text = f.Agent, fmt.Sprintf("has not taken %s, which is tried again at %s", f.ID, f.Next)
	if f.Again {
		e.Text = fmt.Sprintf("%s is tried again, retry %d", f.ID, f.Retries)
	}
	if f.Unread {
		e.Text = fmt.Sprintf("runs and has not read %s: its sender is told again at %s", f.ID, f.Next)
	}
}

func (f *sessionUndelivered) tell(e *wire.Event) {
	e.Agent, e.Text = f.Agent, fmt.Sprintf("%s is not delivered: %s", f.ID, f.Why)
}

func (f *workAssigned) tell(e *wire.Event) {
	e.Agent, e.Task, e.Text = f.Developer, f.ID, fmt.Sprintf("%s is assigned to %s by %s", short(f.ID), f.Developer, f.Architect)
	if f.Revises != "" {
		e.Text += ", a revision of " + short(f.Revises)
	}
	if f.Held {
		e.Text += ", when it waits for nothing any more"
	}
}

func (f *workMoved) tell(e *wire.Event) {
	e.Task, e.Text = f.ID, fmt.Sprintf("%s is %s", short(f.ID), f.Phase)
	if f.Why != "" {
		e.Text += ": " + f.Why
	}
}

func (f *workRepeated) tell(e *wire.Event) { e.Task, e.Text = f.ID, short(f.ID)+" is assigned again" }

func (f *workCompleted) tell(e *wire.Event) {
	e.Task, e.Text = f.ID, short(f.ID)+" is completed, as its developer says"
}

func (f *workTroubled) tell(e *wire.Event) {
	e.Task, e.Text = f.TaskID, fmt.Sprintf("%s: %s: %s, to do: %s", short(f.TaskID), f.ErrorType, f.ErrorMessage, f.SuggestedAction)
}

func (f *deadlinePassed) tell(e *wire.Event) {
	e.Agent, e.Task, e.Text = f.Agent, f.ID, label(f.ID, f.Name)+" is not completed, and its deadline has passed: "+f.Deadline
}

func (f *progressOverdue) tell(e *wire.Event) {
	e.Agent, e.Task, e.Text = f.Agent, f.ID, label(f.ID, f.Name)+" has not been heard of since "+f.Since
}

func (f *reviewRequested) tell(e *wire.Event) {
	e.Agent, e.Task, e.Text = f.Reviewer, f.ID, fmt.Sprintf("%s is asked to review %s", f.Reviewer, short(f.ID))
}

func (f *reviewDecided) tell(e *wire.Event) {
	e.Agent, e.Task = f.Reviewer, f.ID
	e.Text = fmt.Sprintf("%s: %s%s", short(f.ID), f.Verdict, foundWords(f.Findings))
	if f.Verdict == "" {
		e.Text = fmt.Sprintf("the review of %s came to nothing: %s", short(f.ID), f.Why)
	}
}

// foundWords returns the number of open and of fixed findings, as text.
func foundWords(found []review.Finding) string {
	open := 0
	for i := range found {
		if found[i].IsOpen() {
			open++
		}
	}
	said := ""
	if open > 0 {
		said += ", " + counted(open, "finding")
	}
	if mended := len(found) - open; mended > 0 {
		said += fmt.Sprintf(", %d mended", mended)
	}
	return said
}

func (f *reviewEscalated) tell(e *wire.Event) {
	e.Task, e.Text = f.ID, fmt.Sprintf("%s has had %s, with %s open: %s", label(f.ID, f.Name), counted(f.Iterations, "review"), counted(f.Open, "finding"), f.Policy)
}

func (f *reviewExtended) tell(e *wire.Event) {
	e.Task, e.Text = f.ID, short(f.ID)+" is to be revised once more, as a person wants"
}
