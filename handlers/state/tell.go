package state

import (
	"fmt"
	"strings"

	"orchestrator/handlers/review"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// Tell returns a record as an Event for people and programs. A record that cannot be decoded is
// shown with the error.
func Tell(r wire.Record) wire.Event {
	e := wire.Event{Seq: r.Seq, At: object.Timestamp(r.At), Kind: r.Kind, Payload: r.Payload}
	f, err := Decode(&r, new([]object.Member))
	if err != nil {
		e.Text = err.Error()
		return e
	}
	if h, ok := f.(*LifecycleEvent); ok {
		e.Agent, e.Run, e.Text, e.Figures, e.Payload = h.Agent, h.Run, h.Text, h.Figures, nil
		return e
	}
	e.Agent = AgentOf(r.From)
	if m, ok := f.(*Mailed); ok {
		e.Mail, e.Payload = &m.Message, nil
	}
	if told, ok := f.(teller); ok {
		told.tell(&e)
	}
	if e.Task == "" && strings.HasPrefix(r.Kind, "question.") {
		e.Task = r.Correlation
	}
	return e
}

// Happening reports whether records of a kind are events of the supervisor and not decisions.
func Happening(kind string) bool { return LifecycleKinds[kind] }

// About returns the agent that a record is about, without decoding it: its cause or its
// recipient.
func About(r *wire.Record) string {
	if name := AgentOf(r.From); name != "" {
		return name
	}
	if r.Kind == events.TaskAssigned {
		name, _ := object.TextOf(r.Payload, "agent")
		return name
	}
	return AgentOf(r.To)
}

// A teller is a fact that sets the text and the agent of its Event.
type teller interface{ tell(e *wire.Event) }

func (ak *AgentKnown) tell(e *wire.Event) {
	e.Agent, e.Text = ak.ID, "is a "+ak.Role
	if len(ak.Capabilities) > 0 {
		e.Text += ", can " + strings.Join(ak.Capabilities, ", ")
	}
}

func (f *AgentForgotten) tell(e *wire.Event) {
	e.Agent, e.Text = f.ID, "is no longer part of the team"
}

func (t *TaskCreated) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, label(t.ID, t.Name)
	if len(t.Dependencies) > 0 {
		var waits []string
		for _, d := range t.Dependencies {
			waits = append(waits, Short(d.On))
		}
		e.Text += " after " + strings.Join(waits, ", ")
	}
}

func (t *TaskAssigned) tell(e *wire.Event) {
	e.Task, e.Agent, e.Run = t.ID, t.Agent, t.Run
	e.Text = label(t.ID, t.Name) + " assigned to " + t.Agent
	if t.Score != 0 {
		e.Text += " (best fit)"
	}
	if t.Plan {
		e.Text += ", plan required"
	}
	if t.Attempt > 1 {
		e.Text += fmt.Sprintf(", attempt %d", t.Attempt)
	}
}

func (t *TaskStarted) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = t.ID, t.Agent, label(t.ID, t.Name)+" running"
}

func (t *TaskProgress) tell(e *wire.Event) {
	e.Task, e.Agent = t.ID, t.Agent
	e.Text = label(t.ID, t.Name)
	if t.Progress > 0 || t.Message == "" { // coding agents report words without a fraction
		e.Text += fmt.Sprintf(" %.0f%%", t.Progress*100)
	}
	if t.Message != "" {
		e.Text += "  " + t.Message
	}
}

func (t *TaskTrouble) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = t.ID, t.Agent, t.Error
	if t.ID != "" {
		e.Text = Short(t.ID) + ": " + t.Error
	}
}

func (t *TaskRequeued) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = t.ID, t.Agent, label(t.ID, t.Name)+" is back in the queue: "+t.Why
	if t.After != "" {
		e.Text += "; not before " + t.After
	}
}

func (t *TaskDue) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, label(t.ID, t.Name)+" can be assigned again"
}

func (t *TaskDone) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, label(t.ID, t.Name)+" done"
	if t.Agent != "" {
		e.Agent = t.Agent
	}
}

func (f *TaskFailed) tell(e *wire.Event) {
	e.Task, e.Text = f.ID, label(f.ID, f.Name)+" failed"+ClassWords(f.Class)+": "+f.Error
	if f.Agent != "" {
		e.Agent = f.Agent
	}
}

func (t *TaskCancelled) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, label(t.ID, t.Name)+" cancelled: "+t.Reason
	if t.Agent != "" {
		e.Agent = t.Agent
	}
}

func (t *TaskBlocked) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, label(t.ID, t.Name)+" will not run: its dependency "+Short(t.Upstream)+" did not succeed"
}

func (qa *QuestionAsked) tell(e *wire.Event) {
	e.Agent, e.Task, e.Text = qa.Agent, qa.Task, qa.ID+" "+qa.Question
	for _, o := range qa.Options {
		e.Text += " [" + o.Value
		if o.Label != "" && o.Label != o.Value {
			e.Text += ": " + o.Label
		}
		e.Text += "]"
	}
}

func (qr *QuestionRejoined) tell(e *wire.Event) { e.Agent, e.Text = qr.Agent, qr.ID+" is asked again" }

func (qa *QuestionAnswered) tell(e *wire.Event) {
	e.Agent, e.Text = qa.Agent, qa.ID+" is answered: "+qa.Answer
}

func (qk *QuestionKept) tell(e *wire.Event) {
	e.Agent, e.Text = qk.Agent, "continues without the answer to "+qk.ID+", which will arrive as mail"
}

func (qe *QuestionExpired) tell(e *wire.Event) {
	e.Agent, e.Text = qe.Agent, qe.ID+" was not answered in time"
}

func (k *KeyIssued) tell(e *wire.Event) { e.Agent, e.Text = k.Agent, "has a new key "+k.ID }

// The meanings of facts about the work on tasks, for people.

func (t *TaskUpdated) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, label(t.ID, t.Name)+" changed"
	if t.By != "" {
		e.Text += " by " + t.By
	}
}

func (t *TaskNoted) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, label(t.ID, t.Name)+" noted: "+t.Content
}

func (t *TaskPlanned) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = t.ID, t.Agent, label(t.ID, t.Name)+" has a plan: a person or a planner must approve it"
}

func (t *TaskRevise) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = t.ID, t.Agent, label(t.ID, t.Name)+" needs a new plan: "+t.Feedback
}

func (t *TaskHelp) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = t.ID, t.Agent, label(t.ID, t.Name)+" needs a person: "+t.QuestionID+" "+t.Question
}

func (t *TaskUnblocked) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, label(t.ID, t.Name)+" unblocked"
}

func (t *TaskAnnounced) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, fmt.Sprintf("%s is %s", label(t.ID, t.Name), t.State)
	if t.Unblocked > 0 {
		e.Text += fmt.Sprintf(", %d unblocked", t.Unblocked)
	}
}

func (d *DependencyAdded) tell(e *wire.Event) {
	e.Task, e.Text = d.ID, label(d.ID, d.Name)+" depends on "+Short(d.Dependency.On)
	if d.Dependency.Type != hub.DependsBlocks && d.Dependency.Type != "" {
		e.Text += ", " + d.Dependency.Type
	}
	if d.Dependency.Contract != "" {
		e.Text += " " + d.Dependency.Contract
	}
}

func (d *DependencyGone) tell(e *wire.Event) {
	e.Task, e.Text = d.ID, label(d.ID, d.Name)+" no longer depends on "+Short(d.On)
}

// maxTold is the maximum number of tasks that one text names.
const maxTold = 5

func (d *DependencyResolved) tell(e *wire.Event) {
	var names []string
	for i, w := range d.Waiting {
		if i == maxTold {
			names = append(names, fmt.Sprintf("%d more", len(d.Waiting)-i))
			break
		}
		names = append(names, Short(w.ID))
	}
	e.Task, e.Text = d.ID, label(d.ID, d.Name)+" is available to "+strings.Join(names, ", ")
}

func (c *ContractSeen) tell(e *wire.Event) {
	e.Task, e.Text = c.ID, fmt.Sprintf("%s delivers %s", label(c.ID, c.Name), c.Key)
	if c.What == events.ContractMissing {
		e.Text = fmt.Sprintf("%s does not deliver %s", label(c.ID, c.Name), c.Key)
	}
	switch {
	case c.Reason != "":
		e.Text += ": " + c.Reason
	case c.Status == hub.ContractPartial:
		e.Text += ", in part"
	}
	if c.NeededBy != "" {
		e.Text += ", which " + Short(c.NeededBy) + " needs"
	}
}

func (o *DocumentWarning) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = o.ID, o.Agent, o.Pointer+": "+o.Text
	if o.ID != "" {
		e.Text = label(o.ID, o.Name) + " " + e.Text
	}
}

func (q *QuestionWithdrawn) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = q.Task, q.Agent, q.ID+" no longer needs an answer"
}

func (ac *AgentCapable) tell(e *wire.Event) {
	e.Agent, e.Text = ac.Agent, "reported its capabilities"
	if ac.Capabilities == nil {
		e.Text = "reported its status"
	}
}

func (sr *ServerRegistered) tell(e *wire.Event) {
	e.Agent, e.Text = sr.Agent, "has registered"
	if sr.Hostname != "" {
		e.Text += " from " + sr.Hostname
	}
}

func (ss *ServerSeen) tell(e *wire.Event) { e.Agent, e.Text = ss.Agent, "is online" }
func (sl *ServerLost) tell(e *wire.Event) { e.Agent, e.Text = sl.Agent, "is offline" }

func (k *KeysRotated) tell(e *wire.Event) {
	e.Agent, e.Text = k.Agent, "has a new key "+k.ID+", the old ones are valid until "+k.Until
}

func (k *KeyRevoked) tell(e *wire.Event) { e.Agent, e.Text = k.Agent, k.ID+" is revoked" }

func (ri *RegistrationIssued) tell(e *wire.Event) { e.Text = "a server may register with " + ri.ID }

func (t *TokenIssued) tell(e *wire.Event) {
	e.Text = t.Subject + " has a new token " + t.ID + " as " + t.Role
}

func (t *TokenRevoked) tell(e *wire.Event) { e.Text = t.ID + " of " + t.Subject + " is revoked" }

func (m *Mailed) tell(e *wire.Event) {
	e.Text = fmt.Sprintf("%s -> %s  %s", m.From, m.To, m.Topic)
	if m.ReplyTo != nil {
		e.Text += fmt.Sprintf(", answers %d", *m.ReplyTo)
	}
	if m.Cause != nil {
		e.Agent = m.Cause.Agent
	}
}

func (m *MailAcked) tell(e *wire.Event) {
	e.Text = fmt.Sprintf("%s acknowledged its mail up to %d", m.Actor, m.Seq)
}

func (a *ActorSeen) tell(e *wire.Event) { e.Text = a.Actor + " is present" }

func (a *ActorStale) tell(e *wire.Event) {
	e.Text = a.Actor + " stopped sending heartbeats"
	if a.Over {
		e.Text = a.Actor + " is no longer missing"
	}
}

func (a *ActorTokenIssued) tell(e *wire.Event) { e.Text = a.Actor + " has a new token " + a.ID }

// The events of facts about delegated tasks.

func (f *TaskForwarded) tell(e *wire.Event) {
	e.Task, e.Agent, e.Run, e.Text = f.ID, f.Agent, f.Run, label(f.ID, f.Name)+" is sent to "+f.Agent
	if f.Acted != 0 {
		e.Text = "the input for " + label(f.ID, f.Name) + " is sent to " + f.Agent
	}
}

func (t *TaskReturned) tell(e *wire.Event) {
	e.Task, e.Agent, e.Run = t.ID, t.Agent, t.Run
	e.Text = t.Agent + " does not read its messages: " + label(t.ID, t.Name) + " waits until it does"
	if t.Acted != 0 {
		e.Text = t.Agent + " does not read its messages: the input for " + label(t.ID, t.Name) + " waits until it does"
	}
}

func (t *TaskResponded) tell(e *wire.Event) {
	e.Task, e.Agent, e.Text = t.ID, t.Agent, label(t.ID, t.Name)+" is "+t.Status+", reported by "+t.Agent
	switch {
	case t.Again:
		e.Text = label(t.ID, t.Name) + " is " + t.Status + ": its source is notified again"
	case t.Own:
		e.Text = label(t.ID, t.Name) + " is " + t.Status + ": its source is notified"
	}
}

func (t *TaskAnswered) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, "the source of "+label(t.ID, t.Name)+" has received the response"
}

func (t *TaskUnanswered) tell(e *wire.Event) {
	e.Task, e.Text = t.ID, "the source of "+label(t.ID, t.Name)+" does not read its messages: the response waits until it does"
}

func (t *TaskActed) tell(e *wire.Event) {
	e.Task, e.Agent = t.ID, t.Agent
	switch t.Act {
	case delegation.ActStatus:
		e.Text = t.Agent + " is asked for the status of " + label(t.ID, t.Name)
	default:
		e.Text = t.Agent + " is given input for " + label(t.ID, t.Name)
	}
}

func (t *TaskRetried) tell(e *wire.Event) {
	e.Task, e.Agent = t.ID, t.Agent
	e.Text = label(t.ID, t.Name) + " is tried again"
	if t.Fault != nil { // other records have no fault
		e.Text += " after " + t.Fault.Code + ": " + wire.Visible(t.Fault.Message)
	}
}

// The meanings of facts about sessions, for people.

func (so *SessionOpened) tell(e *wire.Event) {
	e.Text = fmt.Sprintf("session %s is open, with %s", so.ID, Counted(len(so.Members), "member"))
}

func (sc *SessionClosed) tell(e *wire.Event) {
	e.Agent, e.Text = sc.By, fmt.Sprintf("session %s is closed: %s", sc.ID, sc.Reason)
}

func (ss *SessionSaid) tell(e *wire.Event) {
	e.Agent, e.Task = ss.From, ss.Task
	e.Text = fmt.Sprintf("%s  %s to %s: %s", ss.Session, ss.From, ss.To, plain(ss.Type))
	if ss.Task != "" {
		e.Text += " " + Short(ss.Task)
	}
	if ss.By != "" {
		e.Text += ", sent by " + ss.By
	}
	switch ss.Fate {
	case FateHeld:
		e.Text += ", sent once it is unblocked"
	case FateKept:
		e.Text += ", kept here"
	}
}

func (sr *SessionRefused) tell(e *wire.Event) {
	e.Agent, e.Task = sr.From, sr.Task
	e.Text = fmt.Sprintf("%s  a message from %s is refused: %s", sr.Session, sr.From, sr.Why)
}

func (sd *SessionDelivered) tell(e *wire.Event) {
	e.Agent, e.Text = sd.Agent, fmt.Sprintf("received message %d", sd.Message)
}

func (sd *SessionDeferred) tell(e *wire.Event) {
	e.Agent, e.Text = sd.Agent, fmt.Sprintf("has not taken %s; the next attempt is at %s", sd.ID, sd.Next)
	if sd.Again {
		e.Text = fmt.Sprintf("%s is tried again, retry %d", sd.ID, sd.Retries)
	}
	if sd.Unread {
		e.Text = fmt.Sprintf("is running but has not read %s: its sender is notified again at %s", sd.ID, sd.Next)
	}
}

func (su *SessionUndelivered) tell(e *wire.Event) {
	e.Agent, e.Text = su.Agent, fmt.Sprintf("%s is not delivered: %s", su.ID, su.Why)
}

func (wa *WorkAssigned) tell(e *wire.Event) {
	e.Agent, e.Task, e.Text = wa.Developer, wa.ID, fmt.Sprintf("%s is assigned to %s by %s", Short(wa.ID), wa.Developer, wa.Architect)
	if wa.Revises != "" {
		e.Text += ", a revision of " + Short(wa.Revises)
	}
	if wa.Held {
		e.Text += ", once it is unblocked"
	}
}

func (wm *WorkMoved) tell(e *wire.Event) {
	e.Task, e.Text = wm.ID, fmt.Sprintf("%s is %s", Short(wm.ID), wm.Phase)
	if wm.Why != "" {
		e.Text += ": " + wm.Why
	}
}

func (wr *WorkRepeated) tell(e *wire.Event) {
	e.Task, e.Text = wr.ID, Short(wr.ID)+" is assigned again"
}

func (wc *WorkCompleted) tell(e *wire.Event) {
	e.Task, e.Text = wc.ID, Short(wc.ID)+" is completed, according to its developer"
}

func (wt *WorkTroubled) tell(e *wire.Event) {
	e.Task, e.Text = wt.TaskID, fmt.Sprintf("%s: %s: %s, suggested action: %s", Short(wt.TaskID), wt.ErrorType, wt.ErrorMessage, wt.SuggestedAction)
}

func (d *DeadlinePassed) tell(e *wire.Event) {
	e.Agent, e.Task, e.Text = d.Agent, d.ID, label(d.ID, d.Name)+" has missed its deadline: "+d.Deadline
}

func (p *ProgressOverdue) tell(e *wire.Event) {
	e.Agent, e.Task, e.Text = p.Agent, p.ID, label(p.ID, p.Name)+" has reported nothing since "+p.Since
}

func (rr *ReviewRequested) tell(e *wire.Event) {
	e.Agent, e.Task, e.Text = rr.Reviewer, rr.ID, fmt.Sprintf("%s is asked to review %s", rr.Reviewer, Short(rr.ID))
}

func (rd *ReviewDecided) tell(e *wire.Event) {
	e.Agent, e.Task = rd.Reviewer, rd.ID
	e.Text = fmt.Sprintf("%s: %s%s", Short(rd.ID), plain(string(rd.Verdict)), foundWords(rd.Findings))
	if rd.Verdict == "" {
		e.Text = fmt.Sprintf("the review of %s ended without a verdict: %s", Short(rd.ID), rd.Why)
	}
}

// plain returns a word of the protocol as people write it.
func plain(word string) string { return strings.ReplaceAll(word, "_", " ") }

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
		said += ", " + Counted(open, "finding")
	}
	if fixed := len(found) - open; fixed > 0 {
		said += ", " + Counted(fixed, "finding") + " fixed"
	}
	return said
}

func (re *ReviewEscalated) tell(e *wire.Event) {
	e.Task, e.Text = re.ID, fmt.Sprintf("%s has had %s, with %s open: %s", label(re.ID, re.Name), Counted(re.Iterations, "review"), Counted(re.Open, "finding"), re.Policy)
}

func (re *ReviewExtended) tell(e *wire.Event) {
	e.Task, e.Text = re.ID, Short(re.ID)+" needs another revision, requested by a person"
}
