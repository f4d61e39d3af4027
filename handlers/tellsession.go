package handlers

import (
	"fmt"

	"orchestrator/handlers/review"
	"orchestrator/wire"
)

// What facts about sessions mean, for people.

func (so *sessionOpened) tell(e *wire.Event) {
	e.Text = fmt.Sprintf("session %s is open, with %s", so.ID, counted(len(so.Members), "member"))
}

func (sc *sessionClosed) tell(e *wire.Event) {
	e.Agent, e.Text = sc.By, fmt.Sprintf("session %s is closed: %s", sc.ID, sc.Reason)
}

func (ss *sessionSaid) tell(e *wire.Event) {
	e.Agent, e.Task = ss.From, ss.Task
	e.Text = fmt.Sprintf("%s  %s -> %s  %s", ss.Session, ss.From, ss.To, ss.Type)
	if ss.Task != "" {
		e.Text += " " + short(ss.Task)
	}
	if ss.By != "" {
		e.Text += ", said by " + ss.By
	}
	switch ss.Fate {
	case fateHeld:
		e.Text += ", held back"
	case fateKept:
		e.Text += ", kept here"
	}
}

func (sr *sessionRefused) tell(e *wire.Event) {
	e.Agent, e.Task = sr.From, sr.Task
	e.Text = fmt.Sprintf("%s  a message of %s is refused: %s", sr.Session, sr.From, sr.Why)
}

func (sd *sessionDelivered) tell(e *wire.Event) {
	e.Agent, e.Text = sd.Agent, fmt.Sprintf("has message %d", sd.Message)
}

func (sd *sessionDeferred) tell(e *wire.Event) {
	e.Agent, e.Text = sd.Agent, fmt.Sprintf("has not taken %s, which is tried again at %s", sd.ID, sd.Next)
	if sd.Again {
		e.Text = fmt.Sprintf("%s is tried again, retry %d", sd.ID, sd.Retries)
	}
	if sd.Unread {
		e.Text = fmt.Sprintf("runs and has not read %s: its sender is told again at %s", sd.ID, sd.Next)
	}
}

func (su *sessionUndelivered) tell(e *wire.Event) {
	e.Agent, e.Text = su.Agent, fmt.Sprintf("%s is not delivered: %s", su.ID, su.Why)
}

func (wa *workAssigned) tell(e *wire.Event) {
	e.Agent, e.Task, e.Text = wa.Developer, wa.ID, fmt.Sprintf("%s is assigned to %s by %s", short(wa.ID), wa.Developer, wa.Architect)
	if wa.Revises != "" {
		e.Text += ", a revision of " + short(wa.Revises)
	}
	if wa.Held {
		e.Text += ", when it waits for nothing any more"
	}
}

func (wm *workMoved) tell(e *wire.Event) {
	e.Task, e.Text = wm.ID, fmt.Sprintf("%s is %s", short(wm.ID), wm.Phase)
	if wm.Why != "" {
		e.Text += ": " + wm.Why
	}
}

func (wr *workRepeated) tell(e *wire.Event) {
	e.Task, e.Text = wr.ID, short(wr.ID)+" is assigned again"
}

func (wc *workCompleted) tell(e *wire.Event) {
	e.Task, e.Text = wc.ID, short(wc.ID)+" is completed, as its developer says"
}

func (wt *workTroubled) tell(e *wire.Event) {
	e.Task, e.Text = wt.TaskID, fmt.Sprintf("%s: %s: %s, to do: %s", short(wt.TaskID), wt.ErrorType, wt.ErrorMessage, wt.SuggestedAction)
}

func (d *deadlinePassed) tell(e *wire.Event) {
	e.Agent, e.Task, e.Text = d.Agent, d.ID, label(d.ID, d.Name)+" is not completed, and its deadline has passed: "+d.Deadline
}

func (p *progressOverdue) tell(e *wire.Event) {
	e.Agent, e.Task, e.Text = p.Agent, p.ID, label(p.ID, p.Name)+" has not been heard of since "+p.Since
}

func (rr *reviewRequested) tell(e *wire.Event) {
	e.Agent, e.Task, e.Text = rr.Reviewer, rr.ID, fmt.Sprintf("%s is asked to review %s", rr.Reviewer, short(rr.ID))
}

func (rd *reviewDecided) tell(e *wire.Event) {
	e.Agent, e.Task = rd.Reviewer, rd.ID
	e.Text = fmt.Sprintf("%s: %s%s", short(rd.ID), rd.Verdict, foundWords(rd.Findings))
	if rd.Verdict == "" {
		e.Text = fmt.Sprintf("the review of %s came to nothing: %s", short(rd.ID), rd.Why)
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

func (re *reviewEscalated) tell(e *wire.Event) {
	e.Task, e.Text = re.ID, fmt.Sprintf("%s has had %s, with %s open: %s", label(re.ID, re.Name), counted(re.Iterations, "review"), counted(re.Open, "finding"), re.Policy)
}

func (re *reviewExtended) tell(e *wire.Event) {
	e.Task, e.Text = re.ID, short(re.ID)+" is to be revised once more, as a person wants"
}
