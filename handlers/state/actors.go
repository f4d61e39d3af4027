package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"orchestrator/handlers/access"
	"orchestrator/handlers/bus"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
)

// A busActor is an actor on the bus, which may be an agent here.
type BusActor = bus.Actor[KnownAgent]

// beat records a heartbeat of an actor. The agent of an actor may have ended since.
func beat(b *bus.Directory[KnownAgent], c *BusActor, at time.Time) {
	b.Beat(c, at, c.Agent == nil || c.Agent.Remote != nil || c.Agent.Alive())
}

// attach gives an agent the mail of an actor.
func (s *State) attach(a *KnownAgent, id string, seq int64) *BusActor {
	if a.Mail != nil && a.Mail.ID == id {
		return a.Mail
	}
	s.detach(a)
	c := s.Bus.Enter(id, seq)
	if c.Agent != nil {
		c.Agent.Mail = nil // its run has ended, otherwise the name would be taken
	}
	s.Bus.Unwatch(c)
	s.Access.RemoveAll(access.Actor, id) // an agent has its own from its start
	a.Mail, c.Agent = c, a
	return c
}

// detach takes the mail from an agent. An actor that existed only for a run is removed; its mail
// stays in the log.
func (s *State) detach(a *KnownAgent) {
	c := a.Mail
	if c == nil {
		return
	}
	a.Mail, c.Agent = nil, nil
	s.Bus.Unwatch(c)
	if c.OfRun && !s.Access.HasToken(c.ID) {
		s.Bus.Leave(c)
	}
}

// ownActor is the default actor of an agent: a worker, with a new id for each run.
const ownActor = "W"

// Writes returns the actor of an agent on the bus, independent of its run.
func (a *KnownAgent) Writes() string { return cmp.Or(a.Member.Actor, ownActor) }

// named reports whether an actor is configured for the agent, which must then send heartbeats.
func (a *KnownAgent) named() bool { return a.Writes() != ownActor }

// attachAgent gives an agent that does not run the mail that does not depend on its run.
func (s *State) attachAgent(a *KnownAgent, seq int64) {
	switch {
	case a.Remote != nil:
		s.attach(a, ownActor+":"+a.ServerID, seq)
	case a.Mail != nil && a.Alive(): // its running actor stays
	case mail.PerRun(a.Writes()):
		s.detach(a)
	case isTaken(s.Bus.Actor(a.Writes()), a): // until it starts: the other has ended by then
		s.detach(a)
	default:
		s.attach(a, a.Writes(), seq)
	}
}

// isTaken reports whether a running agent other than a has the mail of an actor.
func isTaken(c *BusActor, a *KnownAgent) bool {
	return c != nil && c.Agent != nil && c.Agent != a && c.Agent.Remote == nil && c.Agent.Alive()
}

// attachRun gives an agent that has started the mail of its run.
func (s *State) attachRun(a *KnownAgent, r *wire.Record) {
	c := s.attach(a, mail.ActorOfRun(a.Writes(), a.Run), r.Seq)
	c.OfRun, a.Farewell = mail.PerRun(a.Writes()), false
	if a.named() {
		s.Bus.Watch(c, r.At)
	}
}

// fromActor is the member of a message that names its sender.
const fromActor = "from_actor"

// Writer returns the bus actor of a caller, as its connection or credential determines it. A
// claimed actor must be the same. Only operators on the local socket may act as another one.
func (as *agents) Writer(from Actor, claimed, where string) (string, *wire.Error) {
	if claimed == mail.Broadcast && where != fromActor {
		return "", Errorf(wire.CodeInvalid, Details{"pointer": "/payload/" + where}, "%s must be an actor, and %s is all of them", where, mail.Broadcast)
	}
	id := ""
	switch from.Kind {
	case Orchestrator:
		return mail.Bus, nil
	case External:
		id = from.Name
	case Operator:
		if from.Name == "" {
			if claimed != "" && where == fromActor && mail.CheckActor(claimed) != "" {
				return "", wrongActor(mail.Global, claimed, where)
			}
			if claimed != "" {
				return claimed, nil
			}
			return mail.Global, nil
		}
		id = "IO:" + from.Name
		if mail.CheckActor(id) != "" {
			return "", &wire.Error{Code: wire.CodeDenied, Message: fmt.Sprintf("%q cannot be part of an actor's id", from.Name)}
		}
	case Agent:
		a := as.ByID[from.Name]
		if a == nil || a.Mail == nil {
			return "", Errorf(wire.CodeConflict, Details{"agent": from.Name, "reason": "no_actor"},
				"%q has no mail now: it is not running, or another is the actor that it was", from.Name)
		}
		id = a.Mail.ID
	}
	if claimed != "" && claimed != id {
		return "", wrongActor(id, claimed, where)
	}
	return id, nil
}

// wrongActor refuses a claim to be another actor than id.
func wrongActor(id, claimed, where string) *wire.Error {
	return Errorf(wire.CodeDenied, Details{"actor": id, "pointer": "/payload/" + where},
		"you are %s here, and cannot be %.80s", id, wire.Visible(claimed))
}

// Reads returns the actor with the mail of an agent, and the number of the last message that it
// needs no notice of: the last acknowledged message, or the record that introduced the actor.
func (s *State) Reads(name string) (actor string, after int64) {
	a := s.Agents.ByID[name]
	if a == nil || a.Mail == nil {
		return "", 0
	}
	if a.Mail.OfRun {
		return a.Mail.ID, max(a.Mail.Cursor, a.Mail.Since)
	}
	return a.Mail.ID, a.Mail.Cursor
}

// ActorSeen records a heartbeat of an actor.
type ActorSeen struct {
	Actor string `json:"actor"`
}

func (*ActorSeen) kind() string { return events.ActorSeen }

func (a *ActorSeen) apply(s *State, r *wire.Record) {
	beat(&s.Bus, s.Bus.Enter(a.Actor, r.Seq), r.At)
}

// ActorStale records that the heartbeats of an actor have stopped, or, with Over set, that the
// alert has ended.
type ActorStale struct {
	Actor string `json:"actor"`
	Over  bool   `json:"over,omitzero"`
}

func (*ActorStale) kind() string { return events.ActorStale }

func (a *ActorStale) apply(s *State, _ *wire.Record) {
	c := s.Bus.Actor(a.Actor)
	c.Stale = !a.Over
	if c.Stale {
		s.Bus.Unwatch(c)
	}
}

// StaleAt returns when the first actor becomes stale. A heartbeat at that exact time is not too
// late.
func (s *State) StaleAt() time.Time {
	return s.Bus.Expected().First(s.StartedAt).Add(s.Rules.Stale + time.Millisecond)
}

// Knows reports whether a topic is registered.
func (r *Rules) Knows(topic string) bool {
	return bus.Topic(topic) != nil || slices.Contains(r.Topics, topic)
}
