package supervisor

import (
	"slices"
	"sync"
	"time"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// audience is everybody who is told what becomes true: the journal, the voices
// of the agents it is about, and those who follow all of them.
type audience struct {
	journal *journal
	heard   func(*wire.Event) // sees each event

	mu     sync.Mutex
	voices map[string]*voice
	all    []*Follower // those who follow all agents, also future ones
}

// tell tells of facts, in their order.
func (u *audience) tell(records []wire.Record) {
	events := make([]*wire.Event, 0, len(records))
	for _, r := range records {
		e := handlers.Tell(r)
		events = append(events, &e)
	}
	u.journal.add(events)
	for i, e := range events {
		u.say(e, records[i].At)
		u.heard(e)
	}
}

// say puts an event among what its agent says, or, if it is about none, among
// what those hear who follow all. What was decided about tasks is only heard,
// and does not push the agent's own words out of what is kept of them.
func (u *audience) say(e *wire.Event, at time.Time) {
	u.mu.Lock()
	v, all := u.voices[e.Agent], u.all
	u.mu.Unlock()
	switch {
	case v == nil:
		p := sentence(e, at)
		for _, f := range all {
			f.pushNow(e.Agent, p)
		}
	case e.Payload == nil:
		v.say(e, at)
	default:
		v.mention(e, at)
	}
}

// enter adds an agent's voice, and has those who follow all follow it too.
func (u *audience) enter(v *voice) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.voices[v.agent] = v
	for _, f := range u.all {
		v.follow(f)
	}
}

func (u *audience) leave(v *voice) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.voices[v.agent] == v {
		delete(u.voices, v.agent)
	}
}

func (u *audience) join(f *Follower) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = append(slices.Clone(u.all), f)
}

func (u *audience) part(f *Follower) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = slices.DeleteFunc(slices.Clone(u.all), func(o *Follower) bool { return o == f })
}

// close ends all who follow all.
func (u *audience) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, f := range u.all {
		f.close()
	}
}
