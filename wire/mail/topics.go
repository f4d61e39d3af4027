package mail

import (
	"fmt"
	"strings"
)

// The topics that are always known.
const (
	TopicTaskAssigned    = "task.assigned"
	TopicTaskCompleted   = "task.completed"
	TopicTaskFailed      = "task.failed"
	TopicTaskProgress    = "task.progress"
	TopicAgentSpawned    = "agent.spawned"
	TopicAgentTerminated = "agent.terminated"
	TopicAlertFired      = "alert.fired"
	TopicAlertResolved   = "alert.resolved"
	TopicHeartbeat       = "heartbeat"
	TopicDirect          = "message.direct"
	TopicBroadcast       = "broadcast.all"
	TopicUnknown         = "topic.unknown" // the bus accepted mail on a topic that is not registered
)

// Bounds of mail.
const (
	MaxPayload = 1 << 20 // bytes of a payload
	MaxTopic   = 200
	MaxKey     = 200
	MaxPage    = 10_000 // messages that a poll may request
)

// CheckTopic returns why a text is not a topic, or "" if it is one.
func CheckTopic(topic string) string {
	if len(topic) > MaxTopic {
		return fmt.Sprintf("must not be longer than %d bytes", MaxTopic)
	}
	for word := range strings.SplitSeq(topic, ".") {
		if word == "" || strings.ContainsFunc(word, func(c rune) bool { return unreadable(c) || c == '*' }) {
			return fmt.Sprintf("must be words with dots between them, such as build.finished, not %.80q", topic)
		}
	}
	return ""
}

// The payloads of messages from the bus itself to GO.

// Alert is the payload of alert.fired and alert.resolved.
type Alert struct {
	Alert    string `json:"alert"` // Alert… below
	Actor    string `json:"actor"`
	Agent    string `json:"agent,omitzero"`
	LastSeen string `json:"last_seen,omitzero"`
	Run      string `json:"run,omitzero"`
	ExitCode *int   `json:"exit_code,omitzero"`
	Signal   string `json:"signal,omitzero"`
	Code     string `json:"error_code,omitzero"`
	Text     string `json:"text,omitzero"`
}

// The alerts.
const (
	AlertStale   = "agent.stale"      // its heartbeats have stopped
	AlertCrashed = "agent.crashed"    // it has ended with an error
	AlertHelp    = "task.needs_human" // an agent needs a person for a task
	AlertDead    = "message.failed"   // it could not deal with a message
)

// Spawned is the payload of agent.spawned. It is also the payload of agent.terminated if the agent
// has sent none.
type Spawned struct {
	Agent    string `json:"agent"`
	Actor    string `json:"actor"`
	Run      string `json:"run"`
	PID      int    `json:"pid,omitzero"`
	ExitCode *int   `json:"exit_code,omitzero"`
	Text     string `json:"text,omitzero"`
}

// UnknownTopic is the payload of topic.unknown.
type UnknownTopic struct {
	Topic string `json:"topic"`
	From  string `json:"from_actor"`
	To    string `json:"to_actor"`
	Seq   int64  `json:"seq"`
}

// A TopicView is a topic with its intended senders and recipients.
type TopicView struct {
	// The name of the topic.
	Topic string `json:"topic"`
	// Whether the topic is predefined; otherwise it is from the configuration.
	Standard bool `json:"standard"`
	// The intended sender: an actor, or any.
	From string `json:"from,omitzero"`
	// The intended recipient.
	To string `json:"to,omitzero"`
	// The meaning of a message on the topic.
	Summary string `json:"summary,omitzero"`
}

// TopicList answers list-topics.
type TopicList struct {
	Topics []TopicView `json:"topics"`
}
