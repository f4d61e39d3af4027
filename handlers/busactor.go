package handlers

import (
	"cmp"
	"fmt"
	"time"

	"orchestrator/handlers/access"
	"orchestrator/handlers/bus"
	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// A busActor is an actor on the bus, which may be an agent here.
type busActor = bus.Actor[agent]

// beat records a heartbeat of an actor. The agent of an actor may have ended since.
func beat(b *bus.Directory[agent], c *busActor, at time.Time) {
	b.Beat(c, at, c.Agent == nil || c.Agent.remote != nil || c.Agent.alive())
}

// attach gives an agent the mail of an actor.
func (s *State) attach(a *agent, id string, seq int64) *busActor {
	if a.mail != nil && a.mail.ID == id {
		return a.mail
	}
	s.detach(a)
	c := s.bus.Enter(id, seq)
	if c.Agent != nil {
		c.Agent.mail = nil // its run has ended, otherwise the name would be taken
	}
	s.bus.Unwatch(c)
	s.access.RemoveAll(access.Actor, id) // an agent has its own from its start
	a.mail, c.Agent = c, a
	return c
}

// detach takes the mail from an agent. An actor that existed only for a run is removed; its mail
// stays in the log.
func (s *State) detach(a *agent) {
	c := a.mail
	if c == nil {
		return
	}
	a.mail, c.Agent = nil, nil
	s.bus.Unwatch(c)
	if c.OfRun && !s.access.HasToken(c.ID) {
		s.bus.Leave(c)
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
	case isTaken(s.bus.Actor(a.writes()), a): // until it starts: the other has ended by then
		s.detach(a)
	default:
		s.attach(a, a.writes(), seq)
	}
}

// isTaken reports whether a running agent other than a has the mail of an actor.
func isTaken(c *busActor, a *agent) bool {
	return c != nil && c.Agent != nil && c.Agent != a && c.Agent.remote == nil && c.Agent.alive()
}

// attachRun gives an agent that has started the mail of its run.
func (s *State) attachRun(a *agent, r *wire.Record) {
	c := s.attach(a, mail.ActorOfRun(a.writes(), a.run), r.Seq)
	c.OfRun, a.farewell = mail.PerRun(a.writes()), false
	if a.named() {
		s.bus.Watch(c, r.At)
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
		id = a.mail.ID
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
	if a.mail.OfRun {
		return a.mail.ID, max(a.mail.Cursor, a.mail.Since)
	}
	return a.mail.ID, a.mail.Cursor
}
