package handlers

import (
	"fmt"
	"slices"

	"orchestrator/handlers/bus"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// A messageContext is a session message while it is being decided.
type messageContext struct {
	*session.Message
	of      *state.SessionState
	said    *wire.SaySession
	from    *state.Member
	to      *state.Member
	chain   string            // the correlation_id
	task    string            // the task that it is about
	fate    state.Disposition // its handling
	notes   []string          // warnings
	effect  effect
	work    *state.Work // that the effect changes
	created *newWork    // of an effectAssign
}

// The pointers of errors about the members of a message.
const (
	atFrom = "/from_agent/agent_id"
	atTo   = "/to_agent/agent_id"
)

func (sd sessionDecision) sendSessionMessage(said *wire.SaySession) (*session.Said, *wire.Error) {
	x, err := sd.locate(said)
	if err != nil {
		sd.logRefused(sd.refusing(said), said, "", err)
		if m := said.Message; m != nil {
			err = m.Placed(err)
		}
		return nil, err
	}
	if before, _ := sd.state.Bus.Keys.Before(&said.Lookup, x.of.Key(), x.MessageID); before.Seq != 0 {
		return sd.saidBefore(x, before)
	}
	if err := sd.consider(x); err != nil {
		sd.logRefused(x.of, said, x.task, err)
		return nil, x.Placed(err)
	}
	answer := sd.say(x, sd.mark())
	sd.perform(x)
	if sd.request.Form == dialect.Session {
		return nil, nil // a delivered message has no answer
	}
	return answer, nil
}

// saidBefore answers a message with a message_id that was used before. A repeat has no effect and
// is no error; another message is refused.
func (sd sessionDecision) saidBefore(x *messageContext, before bus.Sent) (*session.Said, *wire.Error) {
	if before.Sum != x.Sum {
		err := state.Errorf(wire.CodeInvalid, state.Details{"pointer": "/message_id", "reason": wire.ReasonReused},
			"this message_id was used for another message: use a new one for each")
		sd.logRefused(x.of, x.said, "", err)
		return nil, x.Placed(err)
	}
	if sd.request.Form == dialect.Session {
		return nil, nil
	}
	return &session.Said{MessageID: x.MessageID, SessionID: x.of.Spec.ID, Seq: before.Seq, Duplicate: true}, nil
}

// locate finds the session of a message, its sender and its recipient.
func (sd sessionDecision) locate(said *wire.SaySession) (*messageContext, *wire.Error) {
	m := said.Message
	if said.Err != nil || m == nil {
		return nil, said.Err
	}
	if sd.from.Kind == Agent && m.From.AgentID != sd.from.Name {
		return nil, rejected(atFrom, fmt.Sprintf("agent_id is %q, but you are %q", m.From.AgentID, sd.from.Name))
	}
	s, err := sd.sessionOf(said)
	if err != nil {
		return nil, err
	}
	x := &messageContext{Message: m, of: s, said: said, from: s.Member(m.From.AgentID), to: s.Addressed(m.To), notes: slices.Clone(m.Notes)}
	switch {
	case x.from == nil:
		return nil, rejected(atFrom, fmt.Sprintf("%q is not a member of the session %q", m.From.AgentID, s.Spec.ID))
	case x.to == nil:
		return nil, rejected(atTo, fmt.Sprintf("%q is not a member of the session %q", m.To.AgentID, s.Spec.ID))
	case x.from.AgentType != m.From.AgentType:
		return nil, rejected("/from_agent/agent_type", fmt.Sprintf("%q is of the type %s in this session", m.From.AgentID, x.from.AgentType))
	case x.to.AgentType != m.To.AgentType:
		return nil, rejected("/to_agent/agent_type", fmt.Sprintf("%q is of the type %s in this session", m.To.AgentID, x.to.AgentType))
	case s.Spec.Validation == session.ValidationStrict && m.Strictly() != nil:
		return nil, m.Strictly()
	}
	return x, nil
}

// sessionOf returns the session of a message: the named session, or the only one that both members
// share.
func (sd sessionDecision) sessionOf(said *wire.SaySession) (*state.SessionState, *wire.Error) {
	m := said.Message
	if said.SessionID != "" && m.SessionID != "" && said.SessionID != m.SessionID {
		return nil, rejected("/session_id", fmt.Sprintf("it was sent in session %q, but names session %q", said.SessionID, m.SessionID))
	}
	for _, id := range []string{said.SessionID, m.SessionID} {
		if id == "" {
			continue
		}
		if s := sd.state.Sessions.ByID[id]; s != nil {
			return s, nil
		}
		return nil, state.Errorf(wire.CodeNotFound, state.Details{"session_id": id, "pointer": "/session_id"}, "session %q does not exist", id)
	}
	var both, one []*state.SessionState
	for _, seat := range sd.state.Sessions.Seats[m.From.AgentID] {
		one = append(one, seat.Of)
		if seat.Of.Addressed(m.To) != nil {
			both = append(both, seat.Of)
		}
	}
	open := slices.DeleteFunc(slices.Clone(both), func(s *state.SessionState) bool { return s.Closed() })
	if len(open) > 1 {
		if s := sd.state.Tasks.BelongsTo(m, open); s != nil {
			return s, nil
		}
	}
	switch {
	case len(open) == 1:
		return open[0], nil
	case len(open) > 1:
		return nil, state.Errorf(wire.CodeInvalid, state.Details{"pointer": "/session_id", "reason": "ambiguous_session"},
			"you are in %d sessions with %q: name the one that you mean", len(open), m.To.AgentID)
	case len(both) > 0:
		return both[0], nil
	case len(one) > 0:
		return one[0], nil
	}
	return nil, rejected(atFrom, fmt.Sprintf("%q is not a member of any session", m.From.AgentID))
}

// refusing returns the session that logs a message refused before its session is known, or nil.
func (sd sessionDecision) refusing(said *wire.SaySession) *state.SessionState {
	name := sd.from.Name
	if m := said.Message; m != nil {
		if s, err := sd.sessionOf(said); err == nil && (sd.from.Kind != Agent || s.Member(name) != nil) {
			return s
		}
		if sd.from.Kind != Agent {
			name = m.From.AgentID
		}
	}
	if s := sd.state.Sessions.ByID[said.SessionID]; s != nil && (sd.from.Kind != Agent || s.Member(sd.from.Name) != nil) {
		return s
	}
	if sd.from.Kind != Agent || len(sd.state.Sessions.Seats[name]) == 0 {
		return nil
	}
	return sd.state.Sessions.Seats[name][0].Of
}

// consider decides the effect of a message. It changes no state yet.
func (sd sessionDecision) consider(x *messageContext) *wire.Error {
	if x.of.Closed() {
		return state.Errorf(wire.CodeConflict, state.Details{"session_id": x.of.Spec.ID, "reason": "session_closed"},
			"the session %q is closed: %s", x.of.Spec.ID, x.of.Reason)
	}
	if err := x.Misdirected(); err != nil {
		return err
	}
	if run := x.Message.To.InstanceID; sd.state.Agents.HasEnded(x.to.AgentID, run) {
		return rejected("/to_agent/instance_id", fmt.Sprintf("the run %s of %q has ended", run, x.to.AgentID))
	}
	if x.Sequenced && x.SequenceNumber < x.from.Number {
		x.notes = append(x.notes, fmt.Sprintf("/sequence_number: %d comes after %d", x.SequenceNumber, x.from.Number))
	}
	if err := sd.considerBody(x); err != nil {
		return err
	}
	if err := x.to.CheckBacklog(); err != nil && x.MessageType != session.TypeAbort {
		return err
	}
	switch {
	case x.CorrelationID == "":
	case x.chain == "":
		x.chain = x.CorrelationID
	case x.chain != x.CorrelationID:
		x.notes = append(x.notes, fmt.Sprintf("/correlation_id: it is %.80q, and should be %.80q", x.CorrelationID, x.chain))
		x.chain = x.CorrelationID
	}
	return nil
}

func (sd sessionDecision) considerBody(x *messageContext) *wire.Error {
	switch body := x.Body.(type) {
	case *session.Assignment:
		return sd.works().considerAssignment(x, body)
	case *session.Acknowledgment:
		sd.works().considerAck(x)
	case *session.Progress:
		return sd.works().considerProgress(x, body)
	case *session.Completion:
		return sd.works().considerCompletion(x, body)
	case *session.ReviewRequest:
		return sd.reviews().considerRequest(x, body)
	case *session.ReviewResult:
		return sd.reviews().considerResult(x, body)
	case *session.Abort:
		return sd.considerAbort(x, body)
	case *session.Feedback:
		sd.about(x, body.TaskID, "related_task_id")
	case *session.StatusQuery:
		sd.about(x, body.TaskID, "task_id")
		sd.considerQuery(x)
	}
	return nil
}

// about sets the task of a message that may name any task.
func (sd sessionDecision) about(x *messageContext, task, key string) {
	if task == "" {
		return
	}
	if w := sd.state.Tasks.WorkOn(x.of, task); w != nil {
		x.task, x.chain = task, w.Chain
		return
	}
	x.notes = append(x.notes, fmt.Sprintf("/payload/%s: no task of this session is called %.80q", key, task))
}

// say records a message in the log of its session and sends it.
func (sd sessionDecision) say(x *messageContext, mk *state.RequestKey) *session.Said {
	if !x.Sequenced {
		x.SequenceNumber = x.of.Last + 1
	}
	if x.fate == fateDelivered && sd.state.Agents.Pulls(x.to.AgentID) {
		x.fate = state.FatePulled
	}
	f := &state.SessionSaid{
		Session: x.of.Spec.ID, From: x.From.AgentID, To: x.to.AgentID, Type: x.MessageType, ID: x.MessageID, Task: x.task,
		Sequence: x.SequenceNumber, Given: x.Sequenced, Chain: x.chain, Linked: x.CorrelationID != "", ReplyTo: x.ReplyTo, Sum: x.Sum,
		TookMS: milliseconds(sd.took), Notes: x.notes, Fate: x.fate, Request: mk, Document: x.Document,
	}
	if f.By = (Actor{}).String(); x.said != nil {
		f.By = sd.from.Speaker()
	}
	key := x.MessageID
	if x.said == nil {
		key = ownKey + key
	}
	seq := sd.sessionFact(x.of, x.MessageType, key, x.task, f)
	if !sd.starts {
		sd.flush() // before the notices about its effects
	}
	return f.Answer(seq)
}

// ownKey begins the keys of messages that the orchestrator sends for members. No message_id has
// this form, so no member can use one.
const ownKey = "own:"

// rejected refuses a message for its sender or its addressee.
func rejected(pointer, message string) *wire.Error {
	return &wire.Error{Code: wire.CodeDenied, Message: message, Details: map[string]any{"pointer": pointer}}
}

// An effect is the change that an accepted message makes, besides its delivery. consider chooses it
// and perform applies it, after the message is recorded.
type effect int

const (
	effectNone     effect = iota
	effectAssign          // makes a task; the message has its newWork
	effectRevise          // assigns an existing task again
	effectBegin           // begins the work
	effectProgress        // records progress of the work
	effectRetry           // tries a failed work again
	effectComplete        // completes the work
	effectReview          // begins a review of the work
	effectDecide          // ends a review of the work
	effectDrop            // ends the work, which is aborted
	effectClose           // closes the session
	effectStatus          // answers a query for a member that does not run
)

// perform applies the effect of a message.
func (sd sessionDecision) perform(x *messageContext) {
	switch x.effect {
	case effectNone:
	case effectAssign:
		sd.works().assignNew(x, x.Body.(*session.Assignment))
	case effectRevise:
		sd.works().assignWork(x, x.Body.(*session.Assignment))
	case effectBegin:
		sd.works().acknowledged(x)
	case effectProgress:
		sd.works().progressed(x, x.Body.(*session.Progress))
	case effectRetry:
		sd.works().beginAnew(x.work, x.Body.(*session.Completion).Error)
	case effectComplete:
		sd.works().completed(x, x.Body.(*session.Completion))
	case effectReview:
		sd.reviews().requested(x, x.Body.(*session.ReviewRequest))
	case effectDecide:
		sd.reviews().decided(x, x.Body.(*session.ReviewResult))
	case effectDrop:
		sd.aborted(x, x.Body.(*session.Abort))
	case effectClose:
		a := x.Body.(*session.Abort)
		sd.closeSession(x.of, &state.SessionClosed{Reason: a.Reason, By: x.from.AgentID, Stop: sd.leaving(x.of)})
	case effectStatus:
		sd.answerQuery(x, x.Body.(*session.StatusQuery))
	}
}

// aborted applies the abort of a task.
func (sd sessionDecision) aborted(x *messageContext, a *session.Abort) {
	w, quiet := x.work, x.to.AgentID // the message notifies its addressee
	if to := w.Of.Member(w.Developer); to != nil && to != x.to && to != x.from && w.Phase != session.PhaseCompleted {
		sd.works().sayFor(w, x.from, to, func(h session.Head) *session.Message {
			return h.Abort(object.MemberOf(x.Document, "payload"), a)
		})
		quiet = w.Developer
	}
	sd.works().drop(w, "Aborted: "+a.Reason, quiet)
}

// answerQuery answers a query for its addressee.
func (sd sessionDecision) answerQuery(x *messageContext, q *session.StatusQuery) {
	h := sd.head(x.of, x.to, x.from, x.chain)
	if h.ReplyTo = x.MessageID; h.CorrelationID == "" {
		h.CorrelationID = x.CorrelationID
	}
	m := h.StatusResponse(sd.standing(x.of, sd.state.Agents.ByID[x.to.AgentID], q.TaskID))
	sd.say(&messageContext{Message: m, of: x.of, from: x.to, to: x.from, chain: h.CorrelationID, task: x.task, notes: m.Notes}, nil)
}
