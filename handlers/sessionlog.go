package handlers

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"orchestrator/handlers/history"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

const (
	fateDelivered state.Disposition = "" // it is delivered
)

// sessionFact makes a fact of a session's log true.
func (sd sessionDecision) sessionFact(s *state.SessionState, topic, key, task string, f state.Fact) int64 {
	sd.recallGuests()
	payload, err := object.Encode(f)
	if err != nil {
		panic("a " + state.FactKind(f) + " cannot be encoded: " + err.Error())
	}
	r := wire.Record{
		Seq: sd.state.Next(), At: sd.at, From: s.Key(), To: s.Key(), Topic: topic, Kind: state.FactKind(f), Payload: payload, Key: key, Correlation: task,
	}
	sd.out.Records = append(sd.out.Records, r)
	sd.state.Take(f, &r)
	return r.Seq
}

// milliseconds returns a duration in milliseconds, rounded down to microseconds.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// logRefused records a refused message in the log of its session, if it has one.
func (sd sessionDecision) logRefused(s *state.SessionState, said *wire.SaySession, task string, err *wire.Error) {
	if s == nil {
		return
	}
	f := &state.SessionRefused{
		Session: s.Spec.ID, Type: said.Type[:min(len(said.Type), 100)], ID: said.ID, Task: task, Why: brief(err.Message), TookMS: milliseconds(sd.took), By: sd.from.Speaker(),
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
func complaints(s *state.SessionState, said *wire.SaySession, err *wire.Error) []string {
	all := []string{err.Message}
	if _, several := err.Details["errors"]; several || said.Err != nil {
		all = err.Complaints()
	}
	for i := range all {
		if place, inRequest := strings.CutPrefix(all[i], "/payload/message/"); inRequest {
			all[i] = "/" + place
		}
	}
	if m := said.Message; m != nil && (s.Spec.Validation != session.ValidationStrict || m.Strictly() == nil) {
		all = append(all, m.Notes...)
	}
	return all
}

func (sd sessionDecision) listSessions(_ *wire.Nothing) (*session.List, *wire.Error) {
	answer := &session.List{Sessions: []session.Brief{}}
	for _, s := range sd.state.Sessions.Order {
		if sd.from.Kind != Agent || s.Member(sd.from.Name) != nil {
			answer.Sessions = append(answer.Sessions, s.Brief())
		}
	}
	return answer, nil
}

func (sd sessionDecision) getSession(r *wire.GetSession) (*wire.SessionView, *wire.Error) {
	s, err := sd.sessionNamed(r.SessionID)
	if err != nil {
		return nil, err
	}
	page := &history.SessionPage{
		Session: s.Key(), After: r.After, Until: max(sd.state.Seq(), 1), Limit: cmp.Or(int(r.Limit), session.Page), Chain: r.CorrelationID, Task: r.TaskID, To: r.To,
	}
	sd.pages = append(sd.pages, history.Page{Session: page})
	view := sd.state.Agents.SessionView(s)
	if r.TaskID != "" {
		view.Tasks = slices.DeleteFunc(view.Tasks, func(k wire.SessionTask) bool { return k.TaskID != r.TaskID && k.Revises != r.TaskID })
		view.Reviews = slices.DeleteFunc(view.Reviews, func(v session.ReviewView) bool { return v.TaskID != r.TaskID })
	}
	return view, nil
}

// sessionNamed returns a session that the caller may read.
func (sd sessionDecision) sessionNamed(id string) (*state.SessionState, *wire.Error) {
	seats := sd.state.Sessions.Seats[sd.from.Name]
	if id == "" && sd.from.Kind == Agent && len(seats) == 1 {
		return seats[0].Of, nil
	}
	s := sd.state.Sessions.ByID[id]
	switch {
	case id == "":
		return nil, &wire.Error{Code: wire.CodeInvalid, Message: "session_id is missing", Details: map[string]any{"pointer": "/payload/session_id"}}
	case s == nil:
		return nil, state.Errorf(wire.CodeNotFound, state.Details{"session_id": id, "pointer": "/payload/session_id"}, "session %q does not exist", id)
	case sd.from.Kind == Agent && s.Member(sd.from.Name) == nil:
		return nil, state.Errorf(wire.CodeDenied, state.Details{"session_id": id, "pointer": "/payload/session_id"}, "you are not a member of the session %q", id)
	}
	return s, nil
}

func (sd sessionDecision) listReviews(r *wire.ListReviews) (*session.ReviewList, *wire.Error) {
	if r.SessionID != "" {
		if _, err := sd.sessionNamed(r.SessionID); err != nil {
			return nil, err
		}
	}
	answer := &session.ReviewList{Reviews: []session.ReviewView{}}
	for _, s := range sd.state.Sessions.Order {
		if sd.from.Kind == Agent && s.Member(sd.from.Name) == nil {
			continue
		}
		for _, v := range s.Reviews {
			if (r.SessionID == "" || s.Spec.ID == r.SessionID) && (r.TaskID == "" || v.View.TaskID == r.TaskID) &&
				(r.ReviewID == "" || v.View.ReviewID == r.ReviewID) {
				answer.Reviews = append(answer.Reviews, v.Shown())
			}
		}
	}
	return answer, nil
}
