package handlers

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"orchestrator/handlers/bus"
	"orchestrator/handlers/history"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// sessionSaid records a session message. The record has its session as sender and recipient, its
// message_id as key and its task as correlation.
type sessionSaid struct {
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
	Fate     disposition `json:"fate,omitzero"` // what becomes of it
	Request  *requestKey `json:"request,omitzero"`
	Document wire.Raw    `json:"document"`
}

// A disposition is what happens to a message after it was accepted.
type disposition string

const (
	fateDelivered disposition = ""       // it is delivered
	fateHeld      disposition = "held"   // it is delivered when its task waits for nothing
	fateKept      disposition = "kept"   // it was handled here and is not delivered
	fatePulled    disposition = "pulled" // its recipient polls for it
)

func (*sessionSaid) kind() string { return events.SessionMessage }

func (ss *sessionSaid) apply(st *core, r *wire.Record) {
	s := st.sessions.byID[ss.Session]
	s.messages++
	if ss.Sequence <= s.last+farAhead {
		s.last = max(s.last, ss.Sequence)
	}
	st.bus.Keys.Keep(s.key(), r.Key, bus.Sent{Seq: r.Seq, Sum: ss.Sum})
	s.latest = ss
	if ss.Request != nil {
		st.saveReply(ss.From, ss.Request, ss.answer(r.Seq), nil)
	}
	if from := s.member(ss.From); from != nil && ss.Given {
		from.number = ss.Sequence
	}
	if ss.By == "" {
		st.sessions.settleItems(ss.From, s, ss.ReplyTo, r.At)
		settleGiven(st, ss.From, r.At)
	}
	to := s.member(ss.To)
	if to == nil || ss.Fate == fateKept || ss.Fate == fatePulled {
		return
	}
	st.addItem(&outboxItem{
		seq: r.Seq, to: to, from: ss.From, id: ss.ID, kind: ss.Type, task: ss.Task, by: ss.By, held: ss.Fate == fateHeld,
		line: ss.Line(),
	}, r.At)
}

// answer returns the answer to a request to send the message.
func (ss *sessionSaid) answer(seq int64) *session.Said {
	return &session.Said{
		MessageID: ss.ID, SessionID: ss.Session, Seq: seq, SequenceNumber: ss.Sequence, CorrelationID: ss.Chain, Held: ss.Fate == fateHeld,
		Notes: ss.Notes,
	}
}

// Entry implements history.Entry.
func (ss *sessionSaid) Entry(e *session.Entry) (to string) {
	e.Document, e.MessageID, e.Type, e.From, e.TookMS, e.Errors = ss.Document, ss.ID, ss.Type, ss.From, ss.TookMS, ss.Notes
	e.Sequence, e.Chain, e.By = ss.Sequence, ss.Chain, ss.By
	return ss.To
}

// farAhead is how far a sequence number may exceed the highest one of the session and still
// advance it. A larger number counts only for its message.
const farAhead = 1 << 20

// Line returns the message as it is delivered.
func (ss *sessionSaid) Line() wire.Raw {
	m := session.Message{Document: ss.Document, Sequenced: ss.Given}
	if ss.Linked {
		m.CorrelationID = ss.Chain
	}
	return m.Delivered(ss.Sequence, ss.Chain)
}

// sessionRefused records a message that was not delivered, with its errors.
type sessionRefused struct {
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

func (*sessionRefused) kind() string { return events.SessionRefused }

func (sr *sessionRefused) apply(st *core, _ *wire.Record) {
	s := st.sessions.byID[sr.Session]
	s.messages++
	s.refused++
}

// Entry implements history.Entry. A message that was refused has no addressee.
func (sr *sessionRefused) Entry(e *session.Entry) (to string) {
	e.Document, e.MessageID, e.Type, e.From, e.TookMS, e.Errors = sr.Document, sr.ID, sr.Type, sr.From, sr.TookMS, sr.Errors
	e.Refused, e.Chain, e.By = sr.Why, sr.Chain, sr.By
	return ""
}

// sessionFact makes a fact of a session's log true.
func (sd sessionDecision) sessionFact(s *sessionState, topic, key, task string, f fact) int64 {
	sd.recallGuests()
	payload, err := object.Encode(f)
	if err != nil {
		panic("a " + factKind(f) + " cannot be spelled: " + err.Error())
	}
	r := wire.Record{
		Seq: sd.state.next(), At: sd.at, From: s.key(), To: s.key(), Topic: topic, Kind: factKind(f), Payload: payload, Key: key, Correlation: task,
	}
	sd.out.Records = append(sd.out.Records, r)
	take(sd.state, f, &r)
	return r.Seq
}

// milliseconds returns a duration in milliseconds, rounded down to microseconds.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// logRefused records a refused message in the log of its session, if it has one.
func (sd sessionDecision) logRefused(s *sessionState, said *wire.SaySession, task string, err *wire.Error) {
	if s == nil {
		return
	}
	f := &sessionRefused{
		Session: s.spec.ID, Type: said.Type[:min(len(said.Type), 100)], ID: said.ID, Task: task, Why: brief(err.Message), TookMS: milliseconds(sd.took), By: sd.from.speaker(),
		Document: said.Document, From: sd.from.Name,
	}
	if f.From == "" { // an operator that did not name a sender
		f.From = sd.from.String()
	}
	if m := said.Message; m != nil {
		f.Type, f.ID, f.Chain, f.Document = m.MessageType, m.MessageID, m.CorrelationID, m.Document
		if sd.from.Kind != Agent { // an agent cannot use another name
			f.From = m.From.AgentID
		}
	}
	f.Errors = complaints(s, said, err)
	sd.sessionFact(s, events.SessionRefused, "", task, f)
}

// complaints returns the errors of a refused message, and its notes. Pointers are relative to
// the message.
func complaints(s *sessionState, said *wire.SaySession, err *wire.Error) []string {
	all := []string{err.Message}
	if _, several := err.Details["errors"]; several || said.Err != nil {
		all = err.Complaints()
	}
	for i := range all {
		if place, inRequest := strings.CutPrefix(all[i], "/payload/message/"); inRequest {
			all[i] = "/" + place
		}
	}
	if m := said.Message; m != nil && (s.spec.Validation != session.ValidationStrict || m.Strictly() == nil) {
		all = append(all, m.Notes...)
	}
	return all
}

// speaker returns the actor that sends a message for another, or "" if the sender does.
func (a *Actor) speaker() string {
	if a.Kind == Agent {
		return ""
	}
	return a.String()
}

func listSessions(sd sessionDecision, _ *wire.Nothing) (*session.List, *wire.Error) {
	answer := &session.List{Sessions: []session.Brief{}}
	for _, s := range sd.state.sessions.order {
		if sd.from.Kind != Agent || s.member(sd.from.Name) != nil {
			answer.Sessions = append(answer.Sessions, s.brief())
		}
	}
	return answer, nil
}

func (s *sessionState) brief() session.Brief {
	b := session.Brief{
		ID: s.spec.ID, State: s.state(), Source: s.source(), Members: s.spec.Members, Messages: s.messages, Refused: s.refused, Tasks: len(s.works),
	}
	for _, w := range s.works {
		if !w.settled() {
			b.Open++
		}
		if w.open != nil {
			b.Reviews++
		}
	}
	return b
}

func (s *sessionState) state() string {
	if s.closed() {
		return session.Closed
	}
	return session.Open
}

func (s *sessionState) source() string {
	if s.file {
		return session.FromFile
	}
	return session.ByHand
}

func getSession(sd sessionDecision, r *wire.GetSession) (*wire.SessionView, *wire.Error) {
	s, err := sd.sessionNamed(r.SessionID)
	if err != nil {
		return nil, err
	}
	page := &history.SessionPage{
		Session: s.key(), After: r.After, Until: max(sd.state.Seq(), 1), Limit: cmp.Or(int(r.Limit), session.Page), Chain: r.CorrelationID, Task: r.TaskID, To: r.To,
	}
	sd.pages = append(sd.pages, history.Page{Session: page})
	view := sd.state.agents.sessionView(s)
	if r.TaskID != "" {
		view.Tasks = slices.DeleteFunc(view.Tasks, func(k wire.SessionTask) bool { return k.TaskID != r.TaskID && k.Revises != r.TaskID })
		view.Reviews = slices.DeleteFunc(view.Reviews, func(v session.ReviewView) bool { return v.TaskID != r.TaskID })
	}
	return view, nil
}

// sessionNamed returns a session that the caller may read.
func (sd sessionDecision) sessionNamed(id string) (*sessionState, *wire.Error) {
	seats := sd.state.sessions.seats[sd.from.Name]
	if id == "" && sd.from.Kind == Agent && len(seats) == 1 {
		return seats[0].of, nil
	}
	s := sd.state.sessions.byID[id]
	switch {
	case id == "":
		return nil, &wire.Error{Code: wire.CodeInvalid, Message: "session_id is missing", Details: map[string]any{"pointer": "/payload/session_id"}}
	case s == nil:
		return nil, errorf(wire.CodeNotFound, details{"session_id": id, "pointer": "/payload/session_id"}, "there is no session %q", id)
	case sd.from.Kind == Agent && s.member(sd.from.Name) == nil:
		return nil, errorf(wire.CodeDenied, details{"session_id": id, "pointer": "/payload/session_id"}, "you are not a member of the session %q", id)
	}
	return s, nil
}

// sessionView returns a session without its messages.
func (as *agents) sessionView(s *sessionState) *wire.SessionView {
	v := &wire.SessionView{
		Spec: s.spec, State: s.state(), Reason: s.reason, Source: s.source(), SequenceNumber: s.last,
		Standing: []session.MemberView{}, Tasks: []wire.SessionTask{}, Reviews: []session.ReviewView{}, Messages: []session.Entry{},
	}
	working := make(map[string]int)
	for _, w := range s.works {
		if w.active() {
			working[w.developer]++
		}
		v.Tasks = append(v.Tasks, w.view())
	}
	for _, m := range s.members {
		shown := session.MemberView{Member: m.Member, Working: working[m.AgentID]}
		for _, p := range m.outbox {
			if !p.taken && !p.repeat {
				shown.Waiting++
			}
		}
		if a := as.byID[m.AgentID]; a != nil {
			shown.Status = a.status()
		}
		v.Standing = append(v.Standing, shown)
	}
	for _, r := range s.reviews {
		v.Reviews = append(v.Reviews, r.shown())
	}
	return v
}

// view returns the work as its members see it.
func (w *work) view() wire.SessionTask {
	k := w.task
	v := wire.SessionTask{
		TaskID: k.view.ID, Name: k.view.Name, Architect: w.architect, Developer: w.developer, Phase: w.phase, State: k.view.State,
		Progress: k.view.Progress, Step: k.view.Message, Overdue: w.overdue, Tries: w.tries, Iteration: w.loop.Iteration,
		MaxIterations: w.loop.Limit(), Escalated: w.escalated, CorrelationID: w.chain, Scope: w.scope, Findings: []session.FindingView{}, Error: w.trouble,
	}
	if w.revises != nil {
		v.Revises = w.revises.task.view.ID
	}
	for _, f := range w.last().loop.Findings { // of its revisions: there they are fixed
		v.Findings = append(v.Findings, session.FindingView{
			ID: f.ID, Severity: f.Severity, Category: f.Category, File: f.File, Text: f.Text, Found: f.Found, Fixed: f.Fixed,
		})
	}
	return v
}

func (r *reviewOf) shown() session.ReviewView {
	shown := r.view
	if shown.Findings == nil {
		shown.Findings = []string{}
	}
	return shown
}

func listReviews(sd sessionDecision, r *wire.ListReviews) (*session.ReviewList, *wire.Error) {
	if r.SessionID != "" {
		if _, err := sd.sessionNamed(r.SessionID); err != nil {
			return nil, err
		}
	}
	answer := &session.ReviewList{Reviews: []session.ReviewView{}}
	for _, s := range sd.state.sessions.order {
		if sd.from.Kind == Agent && s.member(sd.from.Name) == nil {
			continue
		}
		for _, v := range s.reviews {
			if (r.SessionID == "" || s.spec.ID == r.SessionID) && (r.TaskID == "" || v.view.TaskID == r.TaskID) &&
				(r.ReviewID == "" || v.view.ReviewID == r.ReviewID) {
				answer.Reviews = append(answer.Reviews, v.shown())
			}
		}
	}
	return answer, nil
}
