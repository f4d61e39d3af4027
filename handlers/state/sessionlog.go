package state

import (
	"orchestrator/handlers/bus"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// SessionSaid records a session message. The record has its session as sender and recipient, its
// message_id as key and its task as correlation.
type SessionSaid struct {
	Session  string      `json:"session_id"`
	From     string      `json:"from"`
	To       string      `json:"to"`
	Type     string      `json:"message_type"`
	ID       string      `json:"message_id"`
	Task     string      `json:"task,omitzero"`
	Sequence int64       `json:"sequence_number"`
	Given    bool        `json:"given,omitzero"` // its sender gave the sequence number
	Chain    string      `json:"correlation_id,omitzero"`
	Linked   bool        `json:"linked,omitzero"` // the sender set the correlation_id
	ReplyTo  string      `json:"reply_to,omitzero"`
	Sum      uint64      `json:"sum"`
	TookMS   float64     `json:"processing_duration_ms"`
	Notes    []string    `json:"notes,omitzero"`
	By       string      `json:"by,omitzero"`   // the actor that sent it for its sender, if any
	Fate     Disposition `json:"fate,omitzero"` // its handling
	Request  *RequestKey `json:"request,omitzero"`
	Document wire.Raw    `json:"document"`
}

// A Disposition is the handling of a message after it was accepted.
type Disposition string

const (
	FateHeld   Disposition = "held"   // it is delivered when its task is free of dependencies
	FateKept   Disposition = "kept"   // it was handled here and is not delivered
	FatePulled Disposition = "pulled" // its recipient polls for it
)

func (*SessionSaid) kind() string { return events.SessionMessage }

func (ss *SessionSaid) apply(st *State, r *wire.Record) {
	s := st.Sessions.ByID[ss.Session]
	s.Messages++
	if ss.Sequence <= s.Last+farAhead {
		s.Last = max(s.Last, ss.Sequence)
	}
	st.Bus.Keys.Keep(s.Key(), r.Key, bus.Sent{Seq: r.Seq, Sum: ss.Sum})
	s.latest = ss
	if ss.Request != nil {
		st.saveReply(ss.From, ss.Request, ss.Answer(r.Seq), nil)
	}
	if from := s.Member(ss.From); from != nil && ss.Given {
		from.Number = ss.Sequence
	}
	if ss.By == "" {
		st.Sessions.settleItems(ss.From, s, ss.ReplyTo, r.At)
		st.confirmRead(ss.From, r.At)
	}
	to := s.Member(ss.To)
	if to == nil || ss.Fate == FateKept || ss.Fate == FatePulled {
		return
	}
	st.addItem(&OutboxItem{To: to, StoredItem: StoredItem{
		Seq: r.Seq, From: ss.From, Id: ss.ID, Kind: ss.Type, Task: ss.Task, By: ss.By, Held: ss.Fate == FateHeld, Line: ss.Line(),
	}}, r.At)
}

// Answer returns the answer to a request to send the message.
func (ss *SessionSaid) Answer(seq int64) *session.Said {
	return &session.Said{
		MessageID: ss.ID, SessionID: ss.Session, Seq: seq, SequenceNumber: ss.Sequence, CorrelationID: ss.Chain, Held: ss.Fate == FateHeld,
		Notes: ss.Notes,
	}
}

// Entry implements history.Entry.
func (ss *SessionSaid) Entry(e *session.Entry) (to string) {
	e.Document, e.MessageID, e.Type, e.From, e.TookMS, e.Errors = ss.Document, ss.ID, ss.Type, ss.From, ss.TookMS, ss.Notes
	e.Sequence, e.Chain, e.By = ss.Sequence, ss.Chain, ss.By
	return ss.To
}

// farAhead is how far a sequence number may exceed the highest one of the session and still
// advance it. A larger number counts only for its message.
const farAhead = 1 << 20

// Line returns the message in the form for its recipient.
func (ss *SessionSaid) Line() wire.Raw {
	m := session.Message{Document: ss.Document, Sequenced: ss.Given}
	if ss.Linked {
		m.CorrelationID = ss.Chain
	}
	return m.Delivered(ss.Sequence, ss.Chain)
}

// SessionRefused records a message that was not delivered, with its errors.
type SessionRefused struct {
	Session  string   `json:"session_id"`
	From     string   `json:"from"`
	Type     string   `json:"message_type,omitzero"`
	ID       string   `json:"message_id,omitzero"`
	Task     string   `json:"task,omitzero"`
	Chain    string   `json:"correlation_id,omitzero"`
	Why      string   `json:"why"`
	Errors   []string `json:"errors"`
	TookMS   float64  `json:"processing_duration_ms"`
	By       string   `json:"by,omitzero"`
	Document wire.Raw `json:"document,omitzero"`
}

func (*SessionRefused) kind() string { return events.SessionRefused }

func (sr *SessionRefused) apply(st *State, _ *wire.Record) {
	s := st.Sessions.ByID[sr.Session]
	s.Messages++
	s.Refused++
}

// Entry implements history.Entry. A message that was refused has no addressee.
func (sr *SessionRefused) Entry(e *session.Entry) (to string) {
	e.Document, e.MessageID, e.Type, e.From, e.TookMS, e.Errors = sr.Document, sr.ID, sr.Type, sr.From, sr.TookMS, sr.Errors
	e.Refused, e.Chain, e.By = sr.Why, sr.Chain, sr.By
	return ""
}

// Speaker returns the actor that sends a message for another, or "" if the sender does.
func (a *Actor) Speaker() string {
	if a.Kind == Agent {
		return ""
	}
	return a.String()
}

func (s *SessionState) Brief() session.Brief {
	b := session.Brief{
		ID: s.Spec.ID, State: s.state(), Source: s.source(), Members: s.Spec.Members, Messages: s.Messages, Refused: s.Refused, Tasks: len(s.Works),
	}
	for _, w := range s.Works {
		if !w.Settled() {
			b.Open++
		}
		if w.Open != nil {
			b.Reviews++
		}
	}
	return b
}

func (s *SessionState) state() string {
	if s.Closed() {
		return session.Closed
	}
	return session.Open
}

func (s *SessionState) source() string {
	if s.File {
		return session.FromFile
	}
	return session.ByHand
}

// SessionView returns a session without its messages.
func (as *agents) SessionView(s *SessionState) *wire.SessionView {
	v := &wire.SessionView{
		Spec: s.Spec, State: s.state(), Reason: s.Reason, Source: s.source(), SequenceNumber: s.Last,
		Standing: []session.MemberView{}, Tasks: []wire.SessionTask{}, Reviews: []session.ReviewView{}, Messages: []session.Entry{},
	}
	working := make(map[string]int)
	for _, w := range s.Works {
		if w.Active() {
			working[w.Developer]++
		}
		v.Tasks = append(v.Tasks, w.View())
	}
	for _, m := range s.Members {
		shown := session.MemberView{Member: m.Member, Working: working[m.AgentID]}
		for _, p := range m.Outbox {
			if !p.Taken && !p.Repeat {
				shown.Waiting++
			}
		}
		if a := as.ByID[m.AgentID]; a != nil {
			shown.Status = a.Status()
		}
		v.Standing = append(v.Standing, shown)
	}
	for _, r := range s.Reviews {
		v.Reviews = append(v.Reviews, r.Shown())
	}
	return v
}

// View returns the work as its members see it.
func (w *Work) View() wire.SessionTask {
	t := w.Task
	v := wire.SessionTask{
		TaskID: t.View.ID, Name: t.View.Name, Architect: w.Architect, Developer: w.Developer, Phase: w.Phase, State: t.View.State,
		Progress: t.View.Progress, Step: t.View.Message, Overdue: w.Overdue, Tries: w.Tries, Iteration: w.Loop.Iteration,
		MaxIterations: w.Loop.Limit(), Escalated: w.Escalated, CorrelationID: w.Chain, Scope: w.Scope, Findings: []session.FindingView{}, Error: w.Trouble,
	}
	if w.Revises != nil {
		v.Revises = w.Revises.Task.View.ID
	}
	for _, f := range w.Last().Loop.Findings { // of its revisions: there they are fixed
		v.Findings = append(v.Findings, session.FindingView{
			ID: f.ID, Severity: f.Severity, Category: f.Category, File: f.File, Text: f.Text, Found: f.Found, Fixed: f.Fixed,
		})
	}
	return v
}

func (r *ReviewOf) Shown() session.ReviewView {
	shown := r.View
	if shown.Findings == nil {
		shown.Findings = []string{}
	}
	return shown
}
