package bus

import (
	"fmt"
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// The senders and recipients of a topic, where they are limited.
const (
	anyActor   = "any"
	busActors  = "Bus, Governor"
	globalOnly = mail.Global
)

// topics are the topics that always exist. The last one is for the warning about an
// unknown topic, which would otherwise cause another such warning.
var topics = []wire.TopicView{
	{Topic: mail.TopicTaskAssigned, From: globalOnly, To: anyActor, Summary: "A task is given to an actor"},
	{Topic: mail.TopicTaskCompleted, From: anyActor, To: globalOnly, Summary: "A task is done"},
	{Topic: mail.TopicTaskFailed, From: anyActor, To: globalOnly, Summary: "A task, or a message, could not be dealt with"},
	{Topic: mail.TopicTaskProgress, From: anyActor, To: globalOnly, Summary: "How far a task is"},
	{Topic: mail.TopicAgentSpawned, From: globalOnly, To: globalOnly, Summary: "An agent has started"},
	{Topic: mail.TopicAgentTerminated, From: anyActor, To: globalOnly, Summary: "An agent has ended, and well"},
	{Topic: mail.TopicAlertFired, From: busActors, To: globalOnly, Summary: "Something is wrong"},
	{Topic: mail.TopicAlertResolved, From: busActors, To: globalOnly, Summary: "It is not any more"},
	{Topic: mail.TopicHeartbeat, From: anyActor, To: mail.Bus, Summary: "The sender is there"},
	{Topic: mail.TopicDirect, From: anyActor, To: anyActor, Summary: "Whatever two actors have to say to each other"},
	{Topic: mail.TopicBroadcast, From: globalOnly, To: mail.Broadcast, Summary: "Something urgent for all"},
	{Topic: mail.TopicUnknown, From: mail.Bus, To: globalOnly, Summary: "An actor has used a topic that is not registered"},
}

// Topics returns the topics that always exist.
func Topics() []wire.TopicView { return slices.Clone(topics) }

// Topic returns a standard topic, or nil.
func Topic(topic string) *wire.TopicView {
	i := slices.IndexFunc(topics, func(v wire.TopicView) bool { return v.Topic == topic })
	if i < 0 {
		return nil
	}
	return &topics[i]
}

// Misdirected returns a warning if the sender or the recipient does not fit the topic, or "".
// The message is still accepted.
func Misdirected(from string, m *wire.SendMessage) string {
	v := Topic(m.Topic)
	if v == nil {
		return ""
	}
	fits := func(id, who string) bool {
		return who == anyActor || who == id || who == busActors && (id == mail.Bus || id == mail.Governor)
	}
	switch {
	case !fits(from, v.From):
		return fmt.Sprintf("%s is for %s to send, and this is from %s", m.Topic, v.From, from)
	case !fits(m.To, v.To) && m.To != mail.Broadcast:
		return fmt.Sprintf("%s is for %s, and this is to %s", m.Topic, v.To, m.To)
	}
	return ""
}
