package mail

import (
	"cmp"
	"strings"

	"orchestrator/wire/object"
)

// Housekeeping reports whether the orchestrator keeps its records with a message: starts and ends of
// agents, heartbeats and unknown topics. People read all other messages, alerts included.
func (m *Message) Housekeeping() bool {
	switch m.Topic {
	case TopicAgentSpawned, TopicAgentTerminated, TopicHeartbeat, TopicUnknown:
		return true
	}
	return false
}

// Text returns the text of a message for people, or its payload if it has none. An alert begins with
// the name of its agent.
func (m *Message) Text() string {
	text, ok := object.TextOf(m.Payload, "text")
	if !ok || text == "" {
		return string(m.Payload)
	}
	if agent, ok := object.TextOf(m.Payload, "agent"); ok && (m.Topic == TopicAlertFired || m.Topic == TopicAlertResolved) {
		text = agent + ": " + text
	}
	return text
}

// Names has the agents of actors.
type Names map[string]string

// NamesOf returns the agents of a list of actors.
func NamesOf(list []ActorView) Names {
	names := make(Names, len(list))
	for _, v := range list {
		if v.Agent != "" {
			names[v.Actor] = v.Agent
		}
	}
	return names
}

// Learn adds the actor of a run, if the message announces one.
func (n Names) Learn(m *Message) {
	if m.Topic != TopicAgentSpawned {
		return
	}
	actor, _ := object.TextOf(m.Payload, "actor")
	if agent, _ := object.TextOf(m.Payload, "agent"); agent != "" && actor != "" {
		n[actor] = agent
	}
}

// Of returns the name of an actor for people: the name of its agent, or the actor itself. The id of
// an ended run is cut.
func (n Names) Of(actor string) string {
	at := strings.LastIndexByte(actor, ':') + 1
	if run := actor[at:]; n[actor] == "" && at > 0 && object.IsUUID(run) {
		return actor[:at] + run[:shownRun]
	}
	return cmp.Or(n[actor], actor)
}

// shownRun is how much of the id of a run people see.
const shownRun = 8
