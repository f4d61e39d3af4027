package handlers

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

// standardTopics are the topics that always exist. The last one is for the warning about an
// unknown topic, which would otherwise cause another such warning.
var standardTopics = []wire.TopicView{
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

// topicNamed finds a standard topic.
func topicNamed(topic string) *wire.TopicView {
	i := slices.IndexFunc(standardTopics, func(v wire.TopicView) bool { return v.Topic == topic })
	if i < 0 {
		return nil
	}
	return &standardTopics[i]
}

// knows reports whether a topic is registered.
func (r *Rules) knows(topic string) bool {
	return topicNamed(topic) != nil || slices.Contains(r.Topics, topic)
}

// misdirected returns a warning if the sender or the recipient does not fit the topic, or "".
// The message is still accepted.
func misdirected(from string, m *wire.SendMessage) string {
	v := topicNamed(m.Topic)
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

func listTopics(md mailDecision, _ *wire.Nothing) (*wire.TopicList, *wire.Error) {
	answer := &wire.TopicList{Topics: make([]wire.TopicView, 0, len(standardTopics)+len(md.state.rules.Topics))}
	for _, v := range standardTopics {
		v.Standard = true
		answer.Topics = append(answer.Topics, v)
	}
	for _, topic := range md.state.rules.Topics {
		if topicNamed(topic) == nil {
			answer.Topics = append(answer.Topics, wire.TopicView{Topic: topic})
		}
	}
	return answer, nil
}
