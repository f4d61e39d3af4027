package state

import (
	"cmp"
	"slices"
	"time"

	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// A sessionState is a group of agents that work together by session messages: architects, developers
// and reviewers.
type SessionState struct {
	StoredSession
	Members  []*Member
	Works    []*Work     // in the order of their assignment
	Open     []*Work     // the works that are not settled
	Reviews  []*ReviewOf // in the order of their requests
	ByReview map[string]*ReviewOf
	latest   *SessionSaid // the message of this turn, with the content that its consequences need
}

// A StoredSession is the part of a SessionState that a snapshot copies.
type StoredSession struct {
	Spec     session.Spec `json:"spec"`
	File     bool         `json:"file,omitzero"`      // it is in the configuration; otherwise a request created it
	ClosedAt int64        `json:"closed_at,omitzero"` // the record that closed it; 0 while it is open
	Aborted  bool         `json:"aborted,omitzero"`   // by a member: it opens again with the next start
	Reason   string       `json:"reason,omitzero"`    // why it was closed
	Messages int64        `json:"messages,omitzero"`  // so far
	Refused  int64        `json:"refused,omitzero"`   // among them
	Last     int64        `json:"last,omitzero"`      // the highest sequence number
}

// A member is a member of a session.
type Member struct {
	session.Member
	Of     *SessionState `json:"-"`
	Number int64         `json:"-"` // the last sequence number that it gave itself
	Outbox []*OutboxItem `json:"-"` // messages that it may not have read, in order
}

// sessions holds all sessions.
type sessions struct {
	ByID    map[string]*SessionState
	Order   []*SessionState
	Seats   map[string][]*Member        // the memberships of each agent
	Posted  queue.Timeline[*OutboxItem] // items with a deadline
	Watched queue.Timeline[*Work]       // works with a developer that must report
	Fresh   []*OutboxItem               // that this turn has sent on their way
}

func NewSessions() sessions {
	return sessions{ByID: make(map[string]*SessionState), Seats: make(map[string][]*Member)}
}

// Key returns the actor under which the messages of a session are recorded.
func (s *SessionState) Key() string { return SessionPrefix + s.Spec.ID }

func (s *SessionState) Closed() bool { return s.ClosedAt != 0 }

const SessionPrefix = "session:"

// Member returns the member with a name, or nil.
func (s *SessionState) Member(name string) *Member {
	for _, m := range s.Members {
		if m.AgentID == name {
			return m
		}
	}
	return nil
}

// WorkOn returns the work of a session on a task, or nil.
func (ts *tasks) WorkOn(x *SessionState, id string) *Work {
	if t := ts.ByID[id]; t != nil && t.Work() != nil && t.Work().Of == x {
		return t.Work()
	}
	return nil
}

// AddMembers updates the members of a session from its spec. A member that stays keeps its outbox.
func (x *sessions) AddMembers(s *SessionState) {
	before := s.Members
	x.removeMember(s)
	for _, m := range s.Spec.Members {
		seat := &Member{Member: m, Of: s}
		for _, old := range before {
			if old.AgentID == m.AgentID {
				seat = old
				seat.Member = m
			}
		}
		s.Members = append(s.Members, seat)
		x.Seats[m.AgentID] = x.seatsOf(m.AgentID)
	}
	for _, old := range before {
		if s.Member(old.AgentID) == nil {
			x.drop(old)
		}
	}
}

// seatsOf returns the memberships of an agent, in the order of the sessions.
func (x *sessions) seatsOf(name string) (seats []*Member) {
	for _, s := range x.Order {
		if m := s.Member(name); m != nil {
			seats = append(seats, m)
		}
	}
	return seats
}

func (x *sessions) removeMember(s *SessionState) {
	for _, m := range s.Members {
		var others []*Member
		for _, seat := range x.Seats[m.AgentID] {
			if seat != m {
				others = append(others, seat)
			}
		}
		if x.Seats[m.AgentID] = others; others == nil {
			delete(x.Seats, m.AgentID)
		}
	}
	s.Members = nil
}

// drop removes the outbox of a former member.
func (x *sessions) drop(m *Member) {
	for _, p := range m.Outbox {
		x.Posted.Drop(p)
	}
	m.Outbox = nil
}

// ResetChanged drops the letters of a turn that was replayed.
func (x *sessions) ResetChanged() { clear(x.Fresh); x.Fresh = x.Fresh[:0] }

// Put files a session.
func (x *sessions) Put(s *SessionState) {
	if x.ByID[s.Spec.ID] == nil {
		x.ByID[s.Spec.ID] = s
		x.Order = append(x.Order, s)
	}
}

// The words of sessions for durations.
const (
	progressAfter = 2 * time.Minute
	progressEvery = 30 * time.Second
)

// DeliveryRetries are the delays between attempts to deliver a message.
var DeliveryRetries = [session.DeliveryRetries]time.Duration{2 * time.Second, 10 * time.Second, time.Minute}

// SessionOpened records that a session is new, open again, or changed.
type SessionOpened struct {
	session.Spec
	File bool `json:"file,omitzero"`
}

func (*SessionOpened) kind() string { return events.SessionOpened }

func (so *SessionOpened) apply(st *State, _ *wire.Record) {
	s := st.Sessions.ByID[so.ID]
	if s == nil {
		s = &SessionState{ByReview: make(map[string]*ReviewOf)}
	}
	s.Spec, s.File, s.ClosedAt, s.Reason, s.Aborted = so.Spec, so.File, 0, "", false
	st.Sessions.Put(s)
	st.Sessions.AddMembers(s)
	for _, w := range s.Works {
		st.WatchWork(w)
	}
}

// SessionClosed records that a session no longer accepts messages.
type SessionClosed struct {
	ID     string   `json:"session_id"`
	Reason string   `json:"reason"`
	By     string   `json:"by,omitzero"`   // the member that has aborted it
	Stop   []string `json:"stop,omitzero"` // agents that end with it
}

func (*SessionClosed) kind() string { return events.SessionClosed }

func (sc *SessionClosed) apply(st *State, r *wire.Record) {
	s := st.Sessions.ByID[sc.ID]
	s.ClosedAt, s.Reason, s.Aborted = r.Seq, sc.Reason, sc.By != ""
	for _, m := range s.Members {
		st.Sessions.drop(m)
	}
	for _, t := range st.Sessions.Trim(st.Rules.KeepClosed) {
		st.Tasks.Leave(t)
	}
}

// Trim removes closed sessions until at most keep are left. The sessions that were closed
// first are removed first. Their messages stay in the log, and their tasks, which Trim returns,
// remain. Aborted sessions are kept, since the next start opens them again.
func (x *sessions) Trim(keep int) (released []*Task) {
	var closed []*SessionState
	for _, s := range x.Order {
		if s.Closed() && !s.Aborted {
			closed = append(closed, s)
		}
	}
	slices.SortFunc(closed, func(a, b *SessionState) int { return cmp.Compare(a.ClosedAt, b.ClosedAt) })
	for _, s := range closed[:max(0, len(closed)-keep)] {
		for _, w := range s.Works {
			w.Task.Extra.Work = nil
			released = append(released, w.Task)
		}
		delete(x.ByID, s.Spec.ID)
		x.Order = slices.DeleteFunc(x.Order, func(o *SessionState) bool { return o == s })
		x.removeMember(s)
	}
	return released
}
