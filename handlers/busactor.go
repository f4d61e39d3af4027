package handlers

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"orchestrator/handlers/access"
	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// A busActor is an actor on the bus, which has mail. Most actors are agents. Others are programs
// on another machine.
type busActor struct {
	id     string
	number int64     // in the order in which they became known
	since  int64     // number of the record by which it did
	agent  *agent    // its agent; nil: none here
	ofRun  bool      // it exists only for one run of the agent
	cursor int64     // the last message that it acked
	latest int64     // the last that was sent only to it
	seen   time.Time // its last sign of life
	beat   time.Time // its heartbeat, or when it was first expected
	beats  bool      // there was one
	due    bool      // the next one is expected
	stale  bool      // its heartbeat is overdue, and GO was notified
}

// date implements byTime. It returns the time of the last heartbeat.
func (b *busActor) date() (time.Time, int64) { return b.beat, b.number }

// bus holds the actors that have mail. The mail itself is in the log.
type bus struct {
	actors map[string]*busActor
	order  []*busActor          // in the order in which they became known
	met    int64                // so far
	due    timeOrder[*busActor] // actors whose heartbeat is expected
	keys   sentKeys
}

func newBus() bus {
	b := bus{actors: make(map[string]*busActor), keys: newSentKeys()}
	b.enter(mail.Global, 0)
	return b
}

// enter returns the actor with an id, and adds it if it is new.
func (b *bus) enter(id string, seq int64) *busActor {
	c := b.actors[id]
	if c == nil {
		b.met++
		c = &busActor{id: id, number: b.met, since: seq}
		b.actors[id] = c
		b.order = append(b.order, c)
	}
	return c
}

// leave forgets an actor.
func (b *bus) leave(c *busActor) {
	b.unwatch(c)
	delete(b.actors, c.id)
	b.order = slices.DeleteFunc(b.order, func(o *busActor) bool { return o == c })
}

// watch expects a heartbeat of an actor, the last of which was at a given time. No heartbeat of
// a stale actor is expected until one arrives.
func (b *bus) watch(c *busActor, at time.Time) {
	b.unwatch(c)
	c.beat, c.due = at, true
	b.due.add(c)
}

// unwatch expects it no more.
func (b *bus) unwatch(c *busActor) {
	if c.due {
		b.due.drop(c)
		c.due = false
	}
}

// beat records a heartbeat. If the agent does not run, the heartbeat is late and no further one
// is expected.
func (b *bus) beat(c *busActor, at time.Time) {
	b.unwatch(c)
	c.seen, c.beat, c.beats = at, at, true
	if c.agent == nil || c.agent.remote != nil || c.agent.alive() {
		b.watch(c, at)
	}
}

// attach gives an agent the mail of an actor.
func (s *State) attach(a *agent, id string, seq int64) *busActor {
	if a.mail != nil && a.mail.id == id {
		return a.mail
	}
	s.detach(a)
	c := s.bus.enter(id, seq)
	if c.agent != nil {
		c.agent.mail = nil // its run has ended, otherwise the name would be taken
	}
	s.bus.unwatch(c)
	s.access.RemoveAll(access.Actor, id) // an agent has its own from its start
	a.mail, c.agent = c, a
	return c
}

// detach takes the mail from an agent. An actor that existed only for a run is removed; its mail
// stays in the log.
func (s *State) detach(a *agent) {
	c := a.mail
	if c == nil {
		return
	}
	a.mail, c.agent = nil, nil
	s.bus.unwatch(c)
	if c.ofRun && !s.access.HasToken(c.id) {
		s.bus.leave(c)
	}
}

// ownActor is the default actor of an agent: a worker, with a new id for each run.
const ownActor = "W"

// writes returns the actor of an agent on the bus, independent of its run.
func (a *agent) writes() string { return cmp.Or(a.Member.Actor, ownActor) }

// named reports whether an actor is configured for the agent, which must then send heartbeats.
func (a *agent) named() bool { return a.writes() != ownActor }

// attachAgent gives an agent that does not run the mail that does not depend on its run.
func (s *State) attachAgent(a *agent, seq int64) {
	switch {
	case a.remote != nil:
		s.attach(a, ownActor+":"+a.serverID, seq)
	case a.mail != nil && a.alive(): // its running actor stays
	case mail.PerRun(a.writes()):
		s.detach(a)
	case s.bus.taken(a.writes(), a): // until it starts: the other has ended by then
		s.detach(a)
	default:
		s.attach(a, a.writes(), seq)
	}
}

// remote reports whether an actor is known and belongs to no agent here.
func (b *bus) remote(id string) bool {
	c := b.actors[id]
	return c != nil && c.agent == nil
}

// dropActor handles the loss of the last token of an external actor. Its heartbeat is no longer
// expected. A short-lived actor is removed.
func (b *bus) dropActor(id string) {
	c := b.actors[id]
	b.unwatch(c)
	if mail.Passing(id) && !c.stale {
		b.leave(c)
	}
}

// taken reports whether a running agent other than a has the mail of an actor.
func (b *bus) taken(id string, a *agent) bool {
	c := b.actors[id]
	return c != nil && c.agent != nil && c.agent != a && c.agent.remote == nil && c.agent.alive()
}

// attachRun gives an agent that has started the mail of its run.
func (s *State) attachRun(a *agent, r *wire.Record) {
	c := s.attach(a, mail.ActorOfRun(a.writes(), a.run), r.Seq)
	c.ofRun, a.farewell = mail.PerRun(a.writes()), false
	if a.named() {
		s.bus.watch(c, r.At)
	}
}

// fromActor is the member of a message that names its sender.
const fromActor = "from_actor"

// writer returns the actor of the caller, as its connection or credential determines it. A
// claimed actor must be the same. Only operators on the local socket may act as another one.
func (md mailDecision) writer(claimed, where string) (string, *wire.Error) {
	if claimed == mail.Broadcast && where != fromActor {
		return "", &wire.Error{
			Code: wire.CodeInvalid, Message: fmt.Sprintf("%s must be an actor, and %s is all of them", where, mail.Broadcast),
			Details: map[string]any{"pointer": "/payload/" + where},
		}
	}
	id := ""
	switch md.from.Kind {
	case Orchestrator:
		return mail.Bus, nil
	case External:
		id = md.from.Name
	case Operator:
		if md.from.Name == "" {
			if claimed != "" && where == fromActor && mail.CheckActor(claimed) != "" {
				return "", wrongActor(mail.Global, claimed, where)
			}
			if claimed != "" {
				return claimed, nil
			}
			return mail.Global, nil
		}
		id = "IO:" + md.from.Name
		if mail.CheckActor(id) != "" {
			return "", &wire.Error{Code: wire.CodeDenied, Message: fmt.Sprintf("%q cannot be part of an actor's id", md.from.Name)}
		}
	case Agent:
		a := md.state.agents.byID[md.from.Name]
		if a == nil || a.mail == nil {
			return "", &wire.Error{
				Code: wire.CodeConflict, Message: fmt.Sprintf("%q has no mail now: it does not run, or another is the actor that it was", md.from.Name),
				Details: map[string]any{"agent": md.from.Name, "reason": "no_actor"},
			}
		}
		id = a.mail.id
	}
	if claimed != "" && claimed != id {
		return "", wrongActor(id, claimed, where)
	}
	return id, nil
}

// wrongActor refuses a claim to be another actor than id.
func wrongActor(id, claimed, where string) *wire.Error {
	return &wire.Error{
		Code: wire.CodeDenied, Message: fmt.Sprintf("you are %s here, and cannot be %.80s", id, wire.Visible(claimed)),
		Details: map[string]any{"actor": id, "pointer": "/payload/" + where},
	}
}

// Reads returns the actor whose mail an agent reads, and the number of the last message that it
// needs no notice of. That is the last acknowledged one, or the record that introduced the
// actor.
func (s *State) Reads(name string) (actor string, after int64) {
	a := s.agents.byID[name]
	if a == nil || a.mail == nil {
		return "", 0
	}
	if a.mail.ofRun {
		return a.mail.id, max(a.mail.cursor, a.mail.since)
	}
	return a.mail.id, a.mail.cursor
}
