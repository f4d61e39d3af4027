package handlers

import (
	"time"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

// Due returns the earliest deadline, if there is one. At that time the caller handles a
// wire.Tick.
func (s *State) Due() (time.Time, bool) {
	due, some := time.Time{}, false
	if len(s.questions.deadlines) > 0 {
		due, some = s.questions.deadlines[0].deadline, true
	}
	if len(s.agents.online) > 0 {
		if lost := s.lostAt(); !some || lost.Before(due) {
			due, some = lost, true
		}
	}
	if len(s.bus.Expected()) > 0 {
		if stale := s.staleAt(); !some || stale.Before(due) {
			due, some = stale, true
		}
	}
	if posted := s.sessions.posted; len(posted) > 0 && !s.stopping && (!some || posted[0].next.Before(due)) {
		due, some = posted[0].next, true
	}
	if watched := s.sessions.watched; len(watched) > 0 && !s.stopping && (!some || watched[0].due.Before(due)) {
		due, some = watched[0].due, true
	}
	if handed := s.delegations.due; len(handed) > 0 && !s.stopping && (!some || handed[0].due.Before(due)) {
		due, some = handed[0].due, true
	}
	if limited := s.agents.limited; len(limited) > 0 && (!some || limited[0].limited.Before(due)) {
		due, some = limited[0].limited, true
	}
	return due, some
}

// lostAt returns when the first server will have been silent for too long.
func (s *State) lostAt() time.Time { return s.agents.online.First(s.since).Add(s.rules.Silence) }

// Date implements byTime. It returns the deadline of the question.
func (q *question) Date() (time.Time, int64) { return q.deadline, q.number }

// keepDeadline adds a question to the deadlines, if it has one.
func (qs *questions) keepDeadline(q *question) {
	if !q.deadline.IsZero() {
		qs.deadlines.Add(q)
	}
}

// expire handles everything that is due: questions that expire, silent servers, actors and
// developers, session messages to be retried, and delegated tasks to be retried or reported.
func (d *decision) expire(due wire.Tick) {
	if due.Late {
		d.fact("", "", new(stoodStill)) // all servers and actors get their time again
	}
	d.agents().silence()
	d.mail().missBeats()
	d.sessions().retryItems(due.Blocked || due.Late)
	d.works().watch()
	d.delegations().tryAgain()
	d.agents().unlimit()
	for len(d.state.questions.deadlines) > 0 && !d.state.questions.deadlines[0].deadline.After(d.at) {
		q := d.state.questions.deadlines[0]
		waited := q.waited(d.state)
		d.fact(agentPrefix+q.view.Agent, "", &questionExpired{ID: q.view.ID, Agent: q.view.Agent})
		if waited {
			d.out.Letters = append(d.out.Letters, Letter{To: q.asker(), Request: q.request.ID, Refusal: expired()})
		}
	}
}

func expired() *wire.Error {
	return &wire.Error{Code: wire.CodeTimeout, Message: "there was no answer in time: ask again, or with a longer timeout"}
}

// stoodStill records that the orchestrator, or its machine, was suspended. Silence in that time
// does not count.
type stoodStill struct{}

func (*stoodStill) kind() string { return events.OrchestratorStoodStill }

func (*stoodStill) apply(s *State, r *wire.Record) {
	s.since = r.At
	s.stirred(r.At)
}

func (*stoodStill) tell(e *wire.Event) { e.Text = "the orchestrator has stood still for a while" }
