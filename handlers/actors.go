package handlers

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
	"orchestrator/wire/object"
)

var actorOperations = []Operation{
	bind("heartbeat", (*decision).mail, heartbeat),
	bind("list-actors", (*decision).mail, listActors),
	bind("list-topics", (*decision).mail, listTopics),
}

// A busActor is an actor on the bus, which may be an agent here.
type busActor = bus.Actor[agent]

// beat records a heartbeat of an actor. The agent of an actor may have ended since.
func beat(b *bus.Directory[agent], c *busActor, at time.Time) {
	b.Beat(c, at, c.Agent == nil || c.Agent.remote != nil || c.Agent.alive())
}

// attach gives an agent the mail of an actor.
func (s *core) attach(a *agent, id string, seq int64) *busActor {
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
func (s *core) detach(a *agent) {
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
func (s *core) attachAgent(a *agent, seq int64) {
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
func (s *core) attachRun(a *agent, r *wire.Record) {
	c := s.attach(a, mail.ActorOfRun(a.writes(), a.run), r.Seq)
	c.OfRun, a.farewell = mail.PerRun(a.writes()), false
	if a.named() {
		s.bus.Watch(c, r.At)
	}
}

// fromActor is the member of a message that names its sender.
const fromActor = "from_actor"

// writer returns the bus actor of a caller, as its connection or credential determines it. A
// claimed actor must be the same. Only operators on the local socket may act as another one.
func (as *agents) writer(from Actor, claimed, where string) (string, *wire.Error) {
	if claimed == mail.Broadcast && where != fromActor {
		return "", errorf(wire.CodeInvalid, details{"pointer": "/payload/" + where}, "%s must be an actor, and %s is all of them", where, mail.Broadcast)
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
		a := as.byID[from.Name]
		if a == nil || a.mail == nil {
			return "", errorf(wire.CodeConflict, details{"agent": from.Name, "reason": "no_actor"},
				"%q has no mail now: it does not run, or another is the actor that it was", from.Name)
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
	return errorf(wire.CodeDenied, details{"actor": id, "pointer": "/payload/" + where},
		"you are %s here, and cannot be %.80s", id, wire.Visible(claimed))
}

// Reads returns the actor whose mail an agent reads, and the number of the last message that it
// needs no notice of. That is the last acknowledged one, or the record that introduced the
// actor.
func (s *core) Reads(name string) (actor string, after int64) {
	a := s.agents.byID[name]
	if a == nil || a.mail == nil {
		return "", 0
	}
	if a.mail.OfRun {
		return a.mail.ID, max(a.mail.Cursor, a.mail.Since)
	}
	return a.mail.ID, a.mail.Cursor
}

// beatsApart is the minimum interval between recorded heartbeats of an actor.
const beatsApart = time.Second

func heartbeat(md mailDecision, r *wire.Heartbeat) (*mail.Beat, *wire.Error) {
	id, err := md.state.agents.writer(md.from, r.Actor, "actor")
	if err != nil {
		return nil, err
	}
	c := md.state.bus.Actor(id)
	if c == nil || !c.Beats || c.Stale || md.at.Sub(c.Beat) >= beatsApart {
		md.factOf(id, "", "", &actorSeen{Actor: id})
		c = md.state.bus.Actor(id)
		md.resolveStale(c, "its heartbeat is back")
	}
	return &mail.Beat{Actor: id, LastSeen: object.Timestamp(c.Beat), Every: md.state.rules.Heartbeat.Milliseconds()}, nil
}

// actorSeen records a heartbeat of an actor.
type actorSeen struct {
	Actor string `json:"actor"`
}

func (*actorSeen) kind() string { return events.ActorSeen }

func (a *actorSeen) apply(s *core, r *wire.Record) {
	beat(&s.bus, s.bus.Enter(a.Actor, r.Seq), r.At)
}

// actorStale records that the heartbeats of an actor have stopped, or, with Over set, that the
// alert has ended.
type actorStale struct {
	Actor string `json:"actor"`
	Over  bool   `json:"over,omitzero"`
}

func (*actorStale) kind() string { return events.ActorStale }

func (a *actorStale) apply(s *core, _ *wire.Record) {
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
func (s *core) staleAt() time.Time {
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

func listActors(md mailDecision, _ *wire.Nothing) (*mail.ActorList, *wire.Error) {
	answer := &mail.ActorList{Actors: make([]mail.ActorView, 0, len(md.state.bus.All()))}
	for _, c := range md.state.bus.All() {
		answer.Actors = append(answer.Actors, actorView(c))
	}
	return answer, nil
}

// actorView returns the actor as all callers see it.
func actorView(c *busActor) mail.ActorView {
	v := mail.ActorView{Actor: c.ID, Cursor: c.Cursor, Latest: c.Latest, Status: mail.ActorQuiet}
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
		v.Status = mail.ActorStale
	case c.Agent != nil && !c.Agent.online():
		v.Status = mail.ActorOffline
	case c.Agent != nil, c.Due:
		v.Status = mail.ActorActive
	}
	return v
}

// knows reports whether a topic is registered.
func (r *Rules) knows(topic string) bool {
	return bus.Topic(topic) != nil || slices.Contains(r.Topics, topic)
}

func listTopics(md mailDecision, _ *wire.Nothing) (*mail.TopicList, *wire.Error) {
	standard := bus.Topics()
	answer := &mail.TopicList{Topics: make([]mail.TopicView, 0, len(standard)+len(md.state.rules.Topics))}
	for _, v := range standard {
		v.Standard = true
		answer.Topics = append(answer.Topics, v)
	}
	for _, topic := range md.state.rules.Topics {
		if bus.Topic(topic) == nil {
			answer.Topics = append(answer.Topics, mail.TopicView{Topic: topic})
		}
	}
	return answer, nil
}
