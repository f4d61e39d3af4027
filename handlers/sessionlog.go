package handlers

import (
	"strings"
	"time"

	"orchestrator/handlers/bus"
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

func (ss *sessionSaid) apply(st *State, r *wire.Record) {
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
		st.agents.settleGiven(ss.From, r.At)
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
func (ss *sessionSaid) answer(seq int64) *wire.SessionSaid {
	return &wire.SessionSaid{
		MessageID: ss.ID, SessionID: ss.Session, Seq: seq, SequenceNumber: ss.Sequence, CorrelationID: ss.Chain, Held: ss.Fate == fateHeld,
		Notes: ss.Notes,
	}
}

// Entry implements history.Entry.
func (ss *sessionSaid) Entry(e *wire.SessionEntry) (to string) {
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

func (sr *sessionRefused) apply(st *State, _ *wire.Record) {
	s := st.sessions.byID[sr.Session]
	s.messages++
	s.refused++
}

// Entry implements history.Entry. A message that was refused has no addressee.
func (sr *sessionRefused) Entry(e *wire.SessionEntry) (to string) {
	e.Document, e.MessageID, e.Type, e.From, e.TookMS, e.Errors = sr.Document, sr.ID, sr.Type, sr.From, sr.TookMS, sr.Errors
	e.Refused, e.Chain, e.By = sr.Why, sr.Chain, sr.By
	return ""
}

// sessionFact makes a fact of a session's log true.
func (sd sessionDecision) sessionFact(s *sessionState, topic, key, task string, f fact) int64 {
	payload, err := object.Encode(f)
	if err != nil {
		panic("a " + f.kind() + " cannot be spelled: " + err.Error())
	}
	sd.state.seq++
	r := wire.Record{
		Seq: sd.state.seq, At: sd.at, From: s.key(), To: s.key(), Topic: topic, Kind: f.kind(), Payload: payload, Key: key, Correlation: task,
	}
	sd.out.Records = append(sd.out.Records, r)
	f.apply(sd.state, &r)
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
		Session: s.spec.ID, Type: heading(said.Type), ID: said.ID, Task: task, Why: brief(err.Message), TookMS: milliseconds(sd.took), By: sd.from.speaker(),
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
	if m := said.Message; m != nil && (s.spec.Validation != wire.ValidationStrict || m.Strictly() == nil) {
		all = append(all, m.Notes...)
	}
	return all
}

// heading returns the start of an unknown message type.
func heading(text string) string { return text[:min(len(text), 100)] }

// speaker returns the actor that sends a message for another, or "" if the sender does.
func (a *Actor) speaker() string {
	if a.Kind == Agent {
		return ""
	}
	return a.String()
}
