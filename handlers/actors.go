package handlers

import (
	"time"

	"orchestrator/handlers/bus"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

var actorOperations = []Operation{
	bind("heartbeat", (*decision).mail, heartbeat),
	bind("list-actors", (*decision).mail, listActors),
	bind("list-topics", (*decision).mail, listTopics),
}

// beatsApart is the minimum interval between recorded heartbeats of an actor.
const beatsApart = time.Second

func heartbeat(md mailDecision, r *wire.Heartbeat) (*mail.Beat, *wire.Error) {
	id, err := md.state.Agents.Writer(md.from, r.Actor, "actor")
	if err != nil {
		return nil, err
	}
	c := md.state.Bus.Actor(id)
	if c == nil || !c.Beats || c.Stale || md.at.Sub(c.Beat) >= beatsApart {
		md.factOf(id, "", "", &state.ActorSeen{Actor: id})
		c = md.state.Bus.Actor(id)
		md.resolveStale(c, "its heartbeat is back")
	}
	return &mail.Beat{Actor: id, LastSeen: object.Timestamp(c.Beat), Every: md.state.Rules.Heartbeat.Milliseconds()}, nil
}

func alertOf(what string, c *state.BusActor) mail.Alert {
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

// missBeats finds the actors whose heartbeats have stopped. GO is notified once of each.
func (md mailDecision) missBeats() {
	for len(md.state.Bus.Expected()) > 0 && !md.state.StaleAt().After(md.at) {
		c := md.state.Bus.Expected()[0]
		about := alertOf(mail.AlertStale, c)
		md.factOf(mail.Bus, "", "", &state.ActorStale{Actor: c.ID})
		md.tellGlobal(mail.Bus, mail.TopicAlertFired, 0, about)
	}
}

// resolveStale notifies GO that an actor is no longer stale, if it was.
func (md mailDecision) resolveStale(c *state.BusActor, why string) {
	if c == nil || !c.Stale {
		return
	}
	md.factOf(mail.Bus, "", "", &state.ActorStale{Actor: c.ID, Over: true})
	about := alertOf(mail.AlertStale, c)
	about.Text = why
	md.tellGlobal(mail.Bus, mail.TopicAlertResolved, 0, about)
}

// spawn notifies GO that an agent has started, and resolves its alerts.
func (md mailDecision) spawn(a *state.KnownAgent, e *wire.Event, wrecked bool) {
	md.tellGlobal(mail.Global, mail.TopicAgentSpawned, 0, mail.Spawned{Agent: a.ID, Actor: a.Mail.ID, Run: e.Run, PID: e.Figures.PID})
	md.resolveStale(a.Mail, "it has restarted")
	if wrecked {
		about := alertOf(mail.AlertCrashed, a.Mail)
		about.Run, about.Text = e.Run, "it has restarted"
		md.tellGlobal(mail.Bus, mail.TopicAlertResolved, 0, about)
	}
}

// terminate notifies GO of the end of an agent, unless the agent has announced it. An end with
// an error fires an alert.
func (md mailDecision) terminate(a *state.KnownAgent, e *wire.Event) {
	from, id := mail.Bus, "" // another agent may have its actor
	if a.Mail != nil {
		from, id = a.Mail.ID, a.Mail.ID
	}
	if a.Wrecked {
		md.crashed(a, e)
		return
	}
	md.resolveStale(a.Mail, "it has ended")
	if !a.Farewell {
		md.tellGlobal(from, mail.TopicAgentTerminated, 0, mail.Spawned{
			Agent: a.ID, Actor: id, Run: e.Run, ExitCode: e.Figures.ExitCode, Text: e.Text,
		})
	}
}

// crashed notifies GO that an agent has ended with an error.
func (md mailDecision) crashed(a *state.KnownAgent, e *wire.Event) {
	md.resolveStale(a.Mail, "it has ended")
	about := alertOf(mail.AlertCrashed, a.Mail)
	about.Agent, about.Run, about.Text = a.ID, e.Run, e.Text
	about.ExitCode, about.Signal = e.Figures.ExitCode, e.Figures.Signal
	md.tellGlobal(mail.Bus, mail.TopicAlertFired, 0, about)
}

func listActors(md mailDecision, _ *wire.Nothing) (*mail.ActorList, *wire.Error) {
	answer := &mail.ActorList{Actors: make([]mail.ActorView, 0, len(md.state.Bus.All()))}
	for _, c := range md.state.Bus.All() {
		answer.Actors = append(answer.Actors, actorView(c))
	}
	return answer, nil
}

// actorView returns the actor as all callers see it.
func actorView(c *state.BusActor) mail.ActorView {
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
	case c.Agent != nil && !c.Agent.Online():
		v.Status = mail.ActorOffline
	case c.Agent != nil, c.Due:
		v.Status = mail.ActorActive
	}
	return v
}

func listTopics(md mailDecision, _ *wire.Nothing) (*mail.TopicList, *wire.Error) {
	standard := bus.Topics()
	answer := &mail.TopicList{Topics: make([]mail.TopicView, 0, len(standard)+len(md.state.Rules.Topics))}
	for _, v := range standard {
		v.Standard = true
		answer.Topics = append(answer.Topics, v)
	}
	for _, topic := range md.state.Rules.Topics {
		if bus.Topic(topic) == nil {
			answer.Topics = append(answer.Topics, mail.TopicView{Topic: topic})
		}
	}
	return answer, nil
}
