package handlers

import (
	"slices"
	"time"

	"orchestrator/handlers/bus"
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
	c := md.state.bus.Actor(id)
	if c == nil || !c.Beats || c.Stale || md.at.Sub(c.Beat) >= beatsApart {
		md.factOf(id, "", "", &actorSeen{Actor: id})
		c = md.state.bus.Actor(id)
		md.resolveStale(c, "its heartbeat is back")
	}
	return &wire.Beat{Actor: id, LastSeen: object.Timestamp(c.Beat), Every: md.state.rules.Heartbeat.Milliseconds()}, nil
}

// actorSeen records a heartbeat of an actor.
type actorSeen struct {
	Actor string `json:"actor"`
}

func (*actorSeen) kind() string { return events.ActorSeen }

func (a *actorSeen) apply(s *State, r *wire.Record) {
	beat(&s.bus, s.bus.Enter(a.Actor, r.Seq), r.At)
}

// actorStale records that the heartbeats of an actor have stopped, or, with Over set, that the
// alert has ended.
type actorStale struct {
	Actor string `json:"actor"`
	Over  bool   `json:"over,omitzero"`
}

func (*actorStale) kind() string { return events.ActorStale }

func (a *actorStale) apply(s *State, _ *wire.Record) {
	c := s.bus.Actor(a.Actor)
	c.Stale = !a.Over
	if c.Stale {
		s.bus.Unwatch(c)
	}
}

func alertOf(what string, c *busActor) mail.Alert {
	a := mail.Alert{Alert: what}
	if c == nil {
		return a
	}
	a.Actor = c.ID
	if c.Agent != nil {
		a.Agent = c.Agent.ID
	}
	if !c.Beat.IsZero() {
		a.LastSeen = object.Timestamp(c.Beat)
	}
	return a
}

// staleAt returns when the first actor becomes stale. A heartbeat at that exact time is not too
// late.
func (s *State) staleAt() time.Time {
	return s.bus.Expected().First(s.since).Add(s.rules.Stale + time.Millisecond)
}

// missBeats finds the actors whose heartbeats have stopped. GO is notified once of each.
func (md mailDecision) missBeats() {
	for len(md.state.bus.Expected()) > 0 && !md.state.staleAt().After(md.at) {
		c := md.state.bus.Expected()[0]
		about := alertOf(mail.AlertStale, c)
		md.factOf(mail.Bus, "", "", &actorStale{Actor: c.ID})
		md.tellGlobal(mail.Bus, mail.TopicAlertFired, 0, about)
	}
}

// resolveStale notifies GO that an actor is no longer stale, if it was.
func (md mailDecision) resolveStale(c *busActor, why string) {
	if c == nil || !c.Stale {
		return
	}
	md.factOf(mail.Bus, "", "", &actorStale{Actor: c.ID, Over: true})
	about := alertOf(mail.AlertStale, c)
	about.Text = why
	md.tellGlobal(mail.Bus, mail.TopicAlertResolved, 0, about)
}

// spawn notifies GO that an agent has started, and resolves its alerts.
func (md mailDecision) spawn(a *agent, e *wire.Event, wrecked bool) {
	md.tellGlobal(mail.Global, mail.TopicAgentSpawned, 0, mail.Spawned{Agent: a.ID, Actor: a.mail.ID, Run: e.Run, PID: e.Figures.PID})
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
		from, id = a.mail.ID, a.mail.ID
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
	answer := &wire.ActorList{Actors: make([]wire.ActorView, 0, len(md.state.bus.All()))}
	for _, c := range md.state.bus.All() {
		answer.Actors = append(answer.Actors, actorView(c))
	}
	return answer, nil
}

// actorView returns the actor as all callers see it.
func actorView(c *busActor) wire.ActorView {
	v := wire.ActorView{Actor: c.ID, Cursor: c.Cursor, Latest: c.Latest, Status: wire.ActorQuiet}
	if c.Agent != nil {
		v.Agent = c.Agent.ID
	}
	if !c.Seen.IsZero() {
		v.LastSeen = object.Timestamp(c.Seen)
	}
	if c.Beats {
		v.LastBeat = object.Timestamp(c.Beat)
	}
	switch {
	case c.Stale:
		v.Status = wire.ActorStale
	case c.Agent != nil && !c.Agent.online():
		v.Status = wire.ActorOffline
	case c.Agent != nil, c.Due:
		v.Status = wire.ActorActive
	}
	return v
}

// knows reports whether a topic is registered.
func (r *Rules) knows(topic string) bool {
	return bus.Topic(topic) != nil || slices.Contains(r.Topics, topic)
}

func listTopics(md mailDecision, _ *wire.Nothing) (*wire.TopicList, *wire.Error) {
	standard := bus.Topics()
	answer := &wire.TopicList{Topics: make([]wire.TopicView, 0, len(standard)+len(md.state.rules.Topics))}
	for _, v := range standard {
		v.Standard = true
		answer.Topics = append(answer.Topics, v)
	}
	for _, topic := range md.state.rules.Topics {
		if bus.Topic(topic) == nil {
			answer.Topics = append(answer.Topics, wire.TopicView{Topic: topic})
		}
	}
	return answer, nil
}
