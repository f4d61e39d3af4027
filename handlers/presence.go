package handlers

import (
	"time"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// beatsApart is the minimum interval between recorded heartbeats of an actor.
const beatsApart = time.Second

func heartbeat(md mailDecision, r *wire.Heartbeat) (*wire.Beat, *wire.Error) {
	id, err := md.writer(r.Actor, "actor")
	if err != nil {
		return nil, err
	}
	c := md.state.bus.actors[id]
	if c == nil || !c.beats || c.stale || md.at.Sub(c.beat) >= beatsApart {
		md.factOf(id, "", "", &actorSeen{Actor: id})
		c = md.state.bus.actors[id]
		md.resolveStale(c, "its heartbeat is back")
	}
	return &wire.Beat{Actor: id, LastSeen: object.Timestamp(c.beat), Every: md.state.rules.Heartbeat.Milliseconds()}, nil
}

// actorSeen records a heartbeat of an actor.
type actorSeen struct {
	Actor string `json:"actor"`
}

func (*actorSeen) kind() string { return events.ActorSeen }

func (a *actorSeen) apply(s *State, r *wire.Record) {
	s.bus.beat(s.bus.enter(a.Actor, r.Seq), r.At)
}

// actorStale records that the heartbeats of an actor have stopped, or, with Over set, that the
// alert has ended.
type actorStale struct {
	Actor string `json:"actor"`
	Over  bool   `json:"over,omitzero"`
}

func (*actorStale) kind() string { return events.ActorStale }

func (a *actorStale) apply(s *State, _ *wire.Record) {
	c := s.bus.actors[a.Actor]
	c.stale = !a.Over
	if c.stale {
		s.bus.unwatch(c)
	}
}

func alertOf(what string, c *busActor) mail.Alert {
	a := mail.Alert{Alert: what}
	if c == nil {
		return a
	}
	a.Actor = c.id
	if c.agent != nil {
		a.Agent = c.agent.ID
	}
	if !c.beat.IsZero() {
		a.LastSeen = object.Timestamp(c.beat)
	}
	return a
}

// staleAt returns when the first actor becomes stale. A heartbeat at that exact time is not too
// late.
func (s *State) staleAt() time.Time {
	return s.bus.due.first(s.since).Add(s.rules.Stale + time.Millisecond)
}

// missBeats finds the actors whose heartbeats have stopped. GO is notified once of each.
func (md mailDecision) missBeats() {
	for len(md.state.bus.due) > 0 && !md.state.staleAt().After(md.at) {
		c := md.state.bus.due[0]
		about := alertOf(mail.AlertStale, c)
		md.factOf(mail.Bus, "", "", &actorStale{Actor: c.id})
		md.tellGlobal(mail.Bus, mail.TopicAlertFired, 0, about)
	}
}

// resolveStale notifies GO that an actor is no longer stale, if it was.
func (md mailDecision) resolveStale(c *busActor, why string) {
	if c == nil || !c.stale {
		return
	}
	md.factOf(mail.Bus, "", "", &actorStale{Actor: c.id, Over: true})
	about := alertOf(mail.AlertStale, c)
	about.Text = why
	md.tellGlobal(mail.Bus, mail.TopicAlertResolved, 0, about)
}

// spawn notifies GO that an agent has started, and resolves its alerts.
func (md mailDecision) spawn(a *agent, e *wire.Event, wrecked bool) {
	md.tellGlobal(mail.Global, mail.TopicAgentSpawned, 0, mail.Spawned{Agent: a.ID, Actor: a.mail.id, Run: e.Run, PID: e.Figures.PID})
	md.resolveStale(a.mail, "it has started anew")
	if wrecked {
		about := alertOf(mail.AlertCrashed, a.mail)
		about.Run, about.Text = e.Run, "it has started anew"
		md.tellGlobal(mail.Bus, mail.TopicAlertResolved, 0, about)
	}
}

// terminate notifies GO of the end of an agent, unless the agent has announced it. An end with
// an error fires an alert.
func (md mailDecision) terminate(a *agent, e *wire.Event) {
	from, id := mail.Bus, "" // another agent may have its actor
	if a.mail != nil {
		from, id = a.mail.id, a.mail.id
	}
	if a.wrecked {
		md.crashed(a, e)
		return
	}
	md.resolveStale(a.mail, "it has ended")
	if !a.farewell {
		md.tellGlobal(from, mail.TopicAgentTerminated, 0, mail.Spawned{
			Agent: a.ID, Actor: id, Run: e.Run, ExitCode: e.Figures.ExitCode, Text: e.Text,
		})
	}
}

// crashed notifies GO that an agent has ended with an error.
func (md mailDecision) crashed(a *agent, e *wire.Event) {
	md.resolveStale(a.mail, "it has ended")
	about := alertOf(mail.AlertCrashed, a.mail)
	about.Agent, about.Run, about.Text = a.ID, e.Run, e.Text
	about.ExitCode, about.Signal = e.Figures.ExitCode, e.Figures.Signal
	md.tellGlobal(mail.Bus, mail.TopicAlertFired, 0, about)
}

func listActors(md mailDecision, _ *wire.Nothing) (*wire.ActorList, *wire.Error) {
	answer := &wire.ActorList{Actors: make([]wire.ActorView, 0, len(md.state.bus.order))}
	for _, c := range md.state.bus.order {
		answer.Actors = append(answer.Actors, c.view())
	}
	return answer, nil
}

// view returns the actor as all callers see it.
func (b *busActor) view() wire.ActorView {
	v := wire.ActorView{Actor: b.id, Cursor: b.cursor, Latest: b.latest, Status: wire.ActorQuiet}
	if b.agent != nil {
		v.Agent = b.agent.ID
	}
	if !b.seen.IsZero() {
		v.LastSeen = object.Timestamp(b.seen)
	}
	if b.beats {
		v.LastBeat = object.Timestamp(b.beat)
	}
	switch {
	case b.stale:
		v.Status = wire.ActorStale
	case b.agent != nil && !b.agent.online():
		v.Status = wire.ActorOffline
	case b.agent != nil, b.due:
		v.Status = wire.ActorActive
	}
	return v
}
