package handlers

import (
	"time"

	"orchestrator/wire"
)

// session is agents that work together by session messages: those who plan, those
// who do and those who review.
type session struct {
	spec     wire.SessionSpec
	file     bool   // it is in the configuration; else a request made it
	closedAt int64  // the record that closed it; 0 while it is open
	reason   string // for which it was closed
	aborted  bool   // by a member: it opens again with the next start
	members  []*member
	works    []*work     // in the order in which they were assigned
	open     []*work     // those of them that something is still said of
	reviews  []*reviewOf // in the order in which they were asked for
	byReview map[string]*reviewOf
	messages int64        // so far
	refused  int64        // among them
	last     int64        // the highest sequence number
	latest   *sessionSaid // the message that is being decided about: what follows from it, in the same turn and so in the same batch of the record, needs its words
}

// member is one of a session.
type member struct {
	wire.SessionMember
	of     *session
	number int64         // the last sequence number that it gave itself
	outbox []*outboxItem // that are not in its hands, in order
}

// sessions are all there are.
type sessions struct {
	byID    map[string]*session
	order   []*session
	seats   map[string][]*member   // of each agent
	posted  timeOrder[*outboxItem] // that are to be tried again
	watched timeOrder[*work]       // whose developer is expected to say something
	fresh   []*outboxItem          // that this turn has sent on their way
}

func newSessions() sessions {
	return sessions{byID: make(map[string]*session), seats: make(map[string][]*member)}
}

// key is what the messages of a session are kept under in the record.
func (s *session) key() string { return sessionPrefix + s.spec.ID }

func (s *session) closed() bool { return s.closedAt != 0 }

const sessionPrefix = "session:"

// member finds one of a session.
func (s *session) member(name string) *member {
	for _, m := range s.members {
		if m.AgentID == name {
			return m
		}
	}
	return nil
}

// workOn finds what a session does about a task.
func (s *State) workOn(x *session, id string) *work {
	if k := s.tasks.byID[id]; k != nil && k.work() != nil && k.work().of == x {
		return k.work()
	}
	return nil
}

// seatIn gives the members of a session their seats, as its spec has them now.
// Who was one before keeps what waits for it.
func (x *sessions) seatIn(s *session) {
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

// seatsOf finds the seats of an agent, in the order of the sessions.
func (x *sessions) seatsOf(name string) (seats []*member) {
	for _, s := range x.order {
		if m := s.member(name); m != nil {
			seats = append(seats, m)
		}
	}
	return seats
}

func (x *sessions) unseat(s *session) {
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

// drop lets go of what waits for a member that is none any more.
func (x *sessions) drop(m *member) {
	for _, p := range m.outbox {
		x.posted.drop(p)
	}
	m.outbox = nil
}

// looked lets go of the letters of a turn that was another life's.
func (x *sessions) looked() { clear(x.fresh); x.fresh = x.fresh[:0] }

// put files a session.
func (x *sessions) put(s *session) {
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

// deepest is how deep a message may nest that was accepted once, whatever holds now.
const deepest = 10_000

// deliveryRetries is how long after a failed attempt a message is tried again.
var deliveryRetries = [wire.DeliveryRetries]time.Duration{2 * time.Second, 10 * time.Second, time.Minute}
