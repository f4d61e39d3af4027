package handlers

import (
	"time"

	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

// A sessionState is a group of agents that work together by session messages: architects, developers
// and reviewers.
type sessionState struct {
	spec     wire.SessionSpec
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
	wire.SessionMember
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
		seat := &member{SessionMember: m, of: s}
		for _, old := range before {
			if old.AgentID == m.AgentID {
				seat = old
				seat.SessionMember = m
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
