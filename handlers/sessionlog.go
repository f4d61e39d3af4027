package handlers

import (
	"strings"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// sessionSaid is a message of a session as its log has it. It is in the record with
// its session as sender and addressee, its message_id as key and its task as
// correlation.
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
	Linked   bool        `json:"linked,omitzero"` // and the correlation_id
	ReplyTo  string      `json:"reply_to,omitzero"`
	Sum      uint64      `json:"sum"`
	TookMS   float64     `json:"processing_duration_ms"`
	Notes    []string    `json:"notes,omitzero"`
	By       string      `json:"by,omitzero"`   // who said it in its sender's name, if any did
	Fate     disposition `json:"fate,omitzero"` // what becomes of it
	Request  *requestKey `json:"request,omitzero"`
	Document wire.Raw    `json:"document"`
}

// disposition is what becomes of a message.
type disposition string

const (
	fateDelivered disposition = ""       // it is delivered
	fateHeld      disposition = "held"   // it is delivered when its task waits for nothing any more
	fateKept      disposition = "kept"   // it was dealt with here, and no member needs to hear of it
	fatePulled    disposition = "pulled" // its addressee asks for it
)

func (*sessionSaid) kind() string { return wire.EventSessionSaid }

func (f *sessionSaid) apply(st *State, r *wire.Record) {
	s := st.sessions.byID[f.Session]
	s.messages++
	if f.Sequence <= s.last+farAhead {
		s.last = max(s.last, f.Sequence)
	}
	st.bus.keys.keep(s.key(), r.Key, keyed{seq: r.Seq, sum: f.Sum})
	s.latest = f
	if f.Request != nil {
		st.saveReply(f.From, f.Request, f.answer(r.Seq), nil)
	}
	if from := s.member(f.From); from != nil && f.Given {
		from.number = f.Sequence
	}
	if f.By == "" {
		st.settleItems(f.From, s, f.ReplyTo, r.At)
		st.settleGiven(f.From, r.At)
	}
	to := s.member(f.To)
	if to == nil || f.Fate == fateKept || f.Fate == fatePulled {
		return
	}
	st.addItem(&outboxItem{
		seq: r.Seq, to: to, from: f.From, id: f.ID, kind: f.Type, task: f.Task, by: f.By, held: f.Fate == fateHeld,
		line: f.line(),
	}, r.At)
}

// answer is the reply to a request to send a message.
func (f *sessionSaid) answer(seq int64) *wire.SessionSaid {
	return &wire.SessionSaid{
		MessageID: f.ID, SessionID: f.Session, Seq: seq, SequenceNumber: f.Sequence, CorrelationID: f.Chain, Held: f.Fate == fateHeld,
		Notes: f.Notes,
	}
}

// farAhead is how far a sequence number may be ahead of all others and count: a sender that
// says one that is further has it alone.
const farAhead = 1 << 20

// line is the message as it is delivered.
func (f *sessionSaid) line() wire.Raw {
	m := wire.SessionMessage{Document: f.Document, Sequenced: f.Given}
	if f.Linked {
		m.CorrelationID = f.Chain
	}
	return m.Delivered(f.Sequence, f.Chain)
}

// sessionRefused is a message that was not delivered, with what was wrong with it.
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

func (*sessionRefused) kind() string { return wire.EventSessionRefused }

func (f *sessionRefused) apply(st *State, _ *wire.Record) {
	s := st.sessions.byID[f.Session]
	s.messages++
	s.refused++
}

// sessionFact makes a fact of a session's log true.
func (t *decision) sessionFact(s *session, topic, key, task string, f fact) int64 {
	payload, err := object.Encode(f)
	if err != nil {
		panic("a " + f.kind() + " cannot be spelled: " + err.Error())
	}
	t.state.seq++
	r := wire.Record{
		Seq: t.state.seq, At: t.at, From: s.key(), To: s.key(), Topic: topic, Kind: f.kind(), Payload: payload, Key: key, Correlation: task,
	}
	t.out.Records = append(t.out.Records, r)
	f.apply(t.state, &r)
	return r.Seq
}

// milliseconds is how long something took, to the microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// logRefused logs a message that is refused with its session, if it has one.
func (t *decision) logRefused(s *session, said *wire.SaySession, task string, err *wire.Error) {
	if s == nil {
		return
	}
	f := &sessionRefused{
		Session: s.spec.ID, Type: heading(said.Type), ID: said.ID, Task: task, Why: brief(err.Message), TookMS: milliseconds(t.took), By: t.speaker(),
		Document: said.Document, From: t.from.Name,
	}
	if f.From == "" { // an operator, who has not said in whose name
		f.From = t.from.String()
	}
	if m := said.Message; m != nil {
		f.Type, f.ID, f.Chain, f.Document = m.MessageType, m.MessageID, m.CorrelationID, m.Document
		if t.from.Kind != Agent { // an agent is itself, whatever name it says
			f.From = m.From.AgentID
		}
	}
	f.Errors = complaints(s, said, err)
	t.sessionFact(s, wire.EventSessionRefused, "", task, f)
}

// complaints are what is wrong with a message that is refused, and what else there is
// to say of it. What is wrong with its form has its place in it.
func complaints(s *session, said *wire.SaySession, err *wire.Error) []string {
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

// heading is as much of a type that is not known as it takes to see what was meant.
func heading(text string) string { return text[:min(len(text), 100)] }

// speaker is who says a message in another's name; "" when its sender does.
func (t *decision) speaker() string {
	if t.from.Kind == Agent {
		return ""
	}
	return t.from.String()
}
