package handlers

import (
	"cmp"
	"slices"
	"time"

	"orchestrator/wire"
)

// Due is when the earliest deadline passes, if there is one. The caller hands
// in a wire.Due then.
func (s *State) Due() (time.Time, bool) {
	due, some := time.Time{}, false
	if len(s.deadlines) > 0 {
		due, some = s.deadlines[0].deadline, true
	}
	if len(s.servers) > 0 {
		if lost := s.lostAt(); !some || lost.Before(due) {
			due, some = lost, true
		}
	}
	return due, some
}

// lostAt is when the first server will have been silent for too long.
func (s *State) lostAt() time.Time {
	heard := s.servers[0].remote.seen
	if heard.Before(s.since) {
		heard = s.since
	}
	return heard.Add(s.rules.Silence)
}

// keepDeadline files a question under its deadline, if it has one.
func (s *State) keepDeadline(q *question) {
	if !q.deadline.IsZero() {
		at, _ := slices.BinarySearchFunc(s.deadlines, q, byDeadline)
		s.deadlines = slices.Insert(s.deadlines, at, q)
	}
}

func (s *State) forgetDeadline(q *question) {
	if at, there := slices.BinarySearchFunc(s.deadlines, q, byDeadline); there {
		s.deadlines = slices.Delete(s.deadlines, at, at+1)
	}
}

func byDeadline(a, b *question) int {
	return cmp.Or(a.deadline.Compare(b.deadline), cmp.Compare(a.number, b.number))
}

// expire ends the questions whose time has passed, and finds servers that are
// not heard of any more.
func (t *turn) expire() {
	t.silence()
	for len(t.deadlines) > 0 && !t.deadlines[0].deadline.After(t.at) {
		q := t.deadlines[0]
		waited := q.waited(t.State)
		t.fact(agentPrefix+q.view.Agent, "", &questionExpired{ID: q.view.ID, Agent: q.view.Agent})
		if waited {
			t.out.Letters = append(t.out.Letters, Letter{To: q.asker(), Request: q.request.ID, Refusal: expired()})
		}
	}
}

func expired() *wire.Error {
	return &wire.Error{Code: wire.CodeTimeout, Message: "nobody answered in time: ask again, or with a longer timeout"}
}
