package handlers

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

var sessionOperations = []Operation{
	bind("send-session-message", (*decision).sessions, sendSessionMessage),
	bind("get-session", (*decision).sessions, getSession),
	bind("list-sessions", (*decision).sessions, listSessions),
	bind("create-session", (*decision).sessions, createSession),
	bind("list-reviews", (*decision).sessions, listReviews),
}

// A sessionState is a group of agents that work together by session messages: architects, developers
// and reviewers.
type sessionState struct {
	spec     session.Spec
	file     bool   // it is in the configuration; otherwise a request created it
	closedAt int64  // the record that closed it; 0 while it is open
	reason   string // for which it was closed
	aborted  bool   // by a member: it opens again with the next start
	members  []*member
	works    []*work     // in the order in which they were assigned
	open     []*work     // the works that are not settled
	reviews  []*reviewOf // in the order of their requests
	byReview map[string]*reviewOf
	messages int64        // so far
	refused  int64        // among them
	last     int64        // the highest sequence number
	latest   *sessionSaid // the message of this turn, whose content its consequences need
}

// A member is a member of a session.
type member struct {
	session.Member
	of     *sessionState
	number int64         // the last sequence number that it gave itself
	outbox []*outboxItem // messages that it may not have read, in order
}

// sessions holds all sessions.
type sessions struct {
	byID    map[string]*sessionState
	order   []*sessionState
	seats   map[string][]*member        // the memberships of each agent
	posted  queue.Timeline[*outboxItem] // items with a deadline
	watched queue.Timeline[*work]       // works whose developer must report
	fresh   []*outboxItem               // that this turn has sent on their way
}

func newSessions() sessions {
	return sessions{byID: make(map[string]*sessionState), seats: make(map[string][]*member)}
}

// key returns the actor under which the messages of a session are recorded.
func (s *sessionState) key() string { return sessionPrefix + s.spec.ID }

func (s *sessionState) closed() bool { return s.closedAt != 0 }

const sessionPrefix = "session:"

// member returns the member with a name, or nil.
func (s *sessionState) member(name string) *member {
	for _, m := range s.members {
		if m.AgentID == name {
			return m
		}
	}
	return nil
}

// workOn returns the work of a session on a task, or nil.
func (t *tasks) workOn(x *sessionState, id string) *work {
	if k := t.byID[id]; k != nil && k.work() != nil && k.work().of == x {
		return k.work()
	}
	return nil
}

// seatIn updates the members of a session from its spec. A member that stays keeps its outbox.
func (x *sessions) seatIn(s *sessionState) {
	before := s.members
	x.unseat(s)
	for _, m := range s.spec.Members {
		seat := &member{Member: m, of: s}
		for _, old := range before {
			if old.AgentID == m.AgentID {
				seat = old
				seat.Member = m
			}
		}
		s.members = append(s.members, seat)
		x.seats[m.AgentID] = x.seatsOf(m.AgentID)
	}
	for _, old := range before {
		if s.member(old.AgentID) == nil {
			x.drop(old)
		}
	}
}

// seatsOf returns the memberships of an agent, in the order of the sessions.
func (x *sessions) seatsOf(name string) (seats []*member) {
	for _, s := range x.order {
		if m := s.member(name); m != nil {
			seats = append(seats, m)
		}
	}
	return seats
}

func (x *sessions) unseat(s *sessionState) {
	for _, m := range s.members {
		var others []*member
		for _, seat := range x.seats[m.AgentID] {
			if seat != m {
				others = append(others, seat)
			}
		}
		if x.seats[m.AgentID] = others; others == nil {
			delete(x.seats, m.AgentID)
		}
	}
	s.members = nil
}

// drop removes the outbox of a former member.
func (x *sessions) drop(m *member) {
	for _, p := range m.outbox {
		x.posted.Drop(p)
	}
	m.outbox = nil
}

// looked drops the letters of a turn that was replayed.
func (x *sessions) looked() { clear(x.fresh); x.fresh = x.fresh[:0] }

// put files a session.
func (x *sessions) put(s *sessionState) {
	if x.byID[s.spec.ID] == nil {
		x.byID[s.spec.ID] = s
		x.order = append(x.order, s)
	}
}

// The words of sessions for how long something may take.
const (
	progressAfter = 2 * time.Minute
	progressEvery = 30 * time.Second
)

// deliveryRetries are the delays between attempts to deliver a message.
var deliveryRetries = [session.DeliveryRetries]time.Duration{2 * time.Second, 10 * time.Second, time.Minute}

// sessionOpened records that a session is new, open again, or changed.
type sessionOpened struct {
	session.Spec
	File bool `json:"file,omitzero"`
}

func (*sessionOpened) kind() string { return events.SessionOpened }

func (so *sessionOpened) apply(st *core, _ *wire.Record) {
	s := st.sessions.byID[so.ID]
	if s == nil {
		s = &sessionState{byReview: make(map[string]*reviewOf)}
	}
	s.spec, s.file, s.closedAt, s.reason, s.aborted = so.Spec, so.File, 0, "", false
	st.sessions.put(s)
	st.sessions.seatIn(s)
	for _, w := range s.works {
		st.watchWork(w)
	}
}

// sessionClosed records that a session accepts no messages any more.
type sessionClosed struct {
	ID     string   `json:"session_id"`
	Reason string   `json:"reason"`
	By     string   `json:"by,omitzero"`   // the member that has aborted it
	Stop   []string `json:"stop,omitzero"` // agents that end with it
}

func (*sessionClosed) kind() string { return events.SessionClosed }

func (sc *sessionClosed) apply(st *core, r *wire.Record) {
	s := st.sessions.byID[sc.ID]
	s.closedAt, s.reason, s.aborted = r.Seq, sc.Reason, sc.By != ""
	for _, m := range s.members {
		st.sessions.drop(m)
	}
	for _, k := range st.sessions.trim(st.rules.KeepClosed) {
		st.tasks.leave(k)
	}
}

// trim removes closed sessions until at most keep are left. Those that were closed first are
// removed first. Their messages stay in the log, and their tasks, which trim returns, remain. Aborted sessions are
// kept, since the next start opens them again.
func (x *sessions) trim(keep int) (released []*task) {
	var closed []*sessionState
	for _, s := range x.order {
		if s.closed() && !s.aborted {
			closed = append(closed, s)
		}
	}
	slices.SortFunc(closed, func(a, b *sessionState) int { return cmp.Compare(a.closedAt, b.closedAt) })
	for _, s := range closed[:max(0, len(closed)-keep)] {
		for _, w := range s.works {
			w.task.more.work = nil
			released = append(released, w.task)
		}
		delete(x.byID, s.spec.ID)
		x.order = slices.DeleteFunc(x.order, func(o *sessionState) bool { return o == s })
		x.unseat(s)
	}
	return released
}

// syncSessions applies the configured sessions: it opens new ones, updates changed ones and
// closes the others. An aborted session stays closed until the next start: see reconvene.
func (sd sessionDecision) syncSessions(specs []session.Spec) {
	there := make(map[string]bool, len(specs))
	for _, spec := range specs {
		there[spec.ID] = true
		if s := sd.state.sessions.byID[spec.ID]; s == nil || s.closed() && !s.aborted || !s.closed() && !s.spec.Equal(&spec) || !s.file {
			sd.dismiss(s, &spec)
			sd.fact("", "", &sessionOpened{Spec: spec, File: true})
		}
	}
	for _, s := range slices.Clone(sd.state.sessions.order) {
		if s.file && !s.closed() && !there[s.spec.ID] {
			sd.closeSession(s, &sessionClosed{Reason: "it is no longer in the configuration"})
		}
	}
	sd.leaveBehind()
}

// leaveBehind ends the work of members that are no longer agents, and retries their undelivered
// messages.
func (sd sessionDecision) leaveBehind() {
	for _, s := range sd.state.sessions.order {
		for _, m := range s.members {
			if sd.state.agents.byID[m.AgentID] != nil {
				continue
			}
			for _, p := range slices.Clone(m.outbox) {
				if p.out != "" && slices.Contains(m.outbox, p) {
					sd.deliveryFailed(p)
				}
			}
			for _, w := range slices.Clone(s.works) {
				if w.developer == m.AgentID && (w.active() || w.phase == session.PhaseHeld) {
					sd.dismissFrom(w, m.AgentID, m.AgentID+" is no longer one of the agents")
				}
			}
		}
	}
}

// reconvene opens the sessions that were aborted before this orchestrator started.
func (sd sessionDecision) reconvene() {
	for _, s := range sd.state.sessions.order {
		if s.closed() && s.aborted {
			sd.fact("", "", &sessionOpened{Spec: s.spec, File: s.file})
		}
	}
}

// dismiss ends the work of members that are not in the new spec.
func (sd sessionDecision) dismiss(s *sessionState, spec *session.Spec) {
	if s == nil || s.closed() {
		return
	}
	for _, m := range s.members {
		if slices.Contains(spec.Members, m.Member) {
			continue
		}
		why := fmt.Sprintf("%s is not one of the %ss of the session any more", m.AgentID, m.AgentType)
		for _, w := range slices.Clone(s.works) {
			sd.dismissFrom(w, m.AgentID, why)
		}
	}
}

func (sd sessionDecision) dismissFrom(w *work, name, why string) {
	switch {
	case w.open != nil && w.open.view.Reviewer == name:
		sd.reviews().breakReview(w, why)
	case w.developer != name:
	case w.phase == session.PhaseHeld: // its developer never received it
		sd.tasks().cancel(w.task, why, end{})
		sd.links().abandon(w.task, "")
	case w.active():
		if w.task.view.AssignedTo == name {
			sd.tasks().recall(w.task, name, w.task.run, why)
		}
		sd.works().loseWork(w, &session.ExecutionError{ErrorType: session.ExecutionException, ErrorMessage: why, SuggestedAction: session.SuggestReassign})
	}
}

// closeSession closes a session and drops its works.
func (sd sessionDecision) closeSession(s *sessionState, f *sessionClosed) {
	for _, w := range slices.Backward(slices.Clone(s.works)) { // dependents first
		sd.works().drop(w, "its session was ended: "+brief(f.Reason), "")
	}
	f.ID, f.Reason = s.spec.ID, brief(f.Reason)
	sd.fact("", "", f)
}

func createSession(sd sessionDecision, create *wire.CreateSession) (*wire.SessionView, *wire.Error) {
	spec := &create.Spec
	if spec.Verify != nil && sd.from.Kind == Agent {
		return nil, errorf(wire.CodeDenied, details{"pointer": "/payload/verify"}, "only a person may name commands that run as the agent of a task")
	}
	if s := sd.state.sessions.byID[spec.ID]; s != nil && !s.closed() {
		return nil, errorf(wire.CodeConflict, details{"session_id": spec.ID, "reason": "session_taken", "pointer": "/payload/session_id"},
			"there is a session %q already", spec.ID)
	}
	sd.fact("", "", &sessionOpened{Spec: *spec})
	return sd.state.agents.sessionView(sd.state.sessions.byID[spec.ID]), nil
}
