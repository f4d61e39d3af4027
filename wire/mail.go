package wire

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Mail is a message from one actor to another, as it is kept: nothing of it ever
// changes.
type Mail struct {
	Seq       int64  `json:"seq"` // its number: the canonical id, and the order
	From      string `json:"from_actor"`
	To        string `json:"to_actor"`
	Topic     string `json:"topic"`
	Payload   Raw    `json:"payload"`
	ReplyTo   *int64 `json:"reply_to"` // the number of what it answers; nil: it begins something
	CreatedAt string `json:"created_at"`
}

// MailOf is the mail that a record keeps.
func MailOf(r *Record) Mail {
	m := Mail{Seq: r.Seq, From: r.From, To: r.To, Topic: r.Topic, Payload: r.Payload, CreatedAt: Timestamp(r.At)}
	switch r.Kind {
	case EventTaskAssigned, EventTaskDone, EventTaskFailed, EventTaskHelp:
		m.From, m.Payload = mailOfTask(r)
	}
	if r.ReplyTo != 0 {
		number := r.ReplyTo // mail may outlive the record, which others fill again
		m.ReplyTo = &number
	}
	return m
}

// mailOfTask returns the sender and the payload of the record of a task as mail: what the
// record says, after the id of the task as ticket_id. GO gives tasks out, and agents end
// them.
func mailOfTask(r *Record) (from string, payload Raw) {
	from = ActorGlobal
	if actor, ok := TextOf(r.Payload, "actor"); ok {
		from = actor
	}
	task, _ := TextOf(r.Payload, "task")
	payload = appendText(append(payload, `{"ticket_id":`...), task)
	if r.Kind == EventTaskHelp {
		payload = append(payload, `,"alert":"`+AlertHelp+`"`...)
	}
	if rest := bytes.TrimPrefix(r.Payload, []byte("{")); len(rest) > 1 {
		payload = append(append(payload, ','), rest...)
	} else {
		payload = append(payload, '}')
	}
	return from, payload
}

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
	TopicUnknown         = "topic.unknown" // the bus has taken mail on a topic that is not registered
)

// Bounds of mail.
const (
	MostMail     = 1 << 20 // bytes of a payload
	longestTopic = 200
	longestKey   = 200
	MostMailPage = 10_000 // letters that a poll may ask for
)

// NoticeMessage is what an actor's agent is told of its mail; its payload is a
// Mail.
const NoticeMessage = "message"

// SendMessage is the payload of send-message.
type SendMessage struct {
	From    string `json:"from_actor,omitzero"` // "": the caller
	To      string `json:"to_actor"`
	Topic   string `json:"topic"`
	Payload Raw    `json:"payload"`
	ReplyTo int64  `json:"reply_to,omitzero"`
	Key     string `json:"idempotency_key,omitzero"`

	Lookup `json:"-"` // whether there is one with the key already; Sum is of no use here
}

// ReadSendMessage reads a SendMessage.
func ReadSendMessage(o *Object) *SendMessage {
	m := &SendMessage{
		From: o.Text("from_actor"), To: o.NeedText("to_actor"), Topic: o.topic("topic"),
		ReplyTo: o.replyTo("reply_to"), Key: o.Text("idempotency_key"),
	}
	if why := CheckAddressee(m.To); m.To != "" && why != "" {
		o.Refuse("to_actor", why)
	}
	switch m.Payload = o.Document("payload"); {
	case m.Payload == nil:
		o.Refuse("payload", "is missing: it must be an object")
	case len(m.Payload) > MostMail:
		o.take(&Error{
			Code: CodeTooLarge, Message: fmt.Sprintf("payload has %d bytes, and a message takes %d", len(m.Payload), MostMail),
			Details: map[string]any{"pointer": o.below("payload")},
			Hint:    "Put what is large into a file, and say where it is",
		})
	}
	switch {
	case m.Key == "" && o.find("idempotency_key") != nil:
		o.Refuse("idempotency_key", "must not be empty; leave it out, or say null")
	case len(m.Key) > longestKey:
		o.Refuse("idempotency_key", fmt.Sprintf("must not be longer than %d bytes", longestKey))
	default:
		o.needPlain("idempotency_key", m.Key)
	}
	return m
}

// actor is an optional id of an actor.
func (o *Object) actor(key string, check func(string) string) string {
	id := o.Text(key)
	if o.find(key) == nil {
		return ""
	}
	if why := check(id); why != "" {
		o.Refuse(key, why)
	}
	return id
}

// topic is a topic: words with dots between them.
func (o *Object) topic(key string) string {
	topic := o.NeedText(key)
	if why := CheckTopic(topic); topic != "" && why != "" {
		o.Refuse(key, why)
	}
	return topic
}

// CheckTopic returns why a text is no topic, "" if it is one.
func CheckTopic(topic string) string {
	if len(topic) > longestTopic {
		return fmt.Sprintf("must not be longer than %d bytes", longestTopic)
	}
	for word := range strings.SplitSeq(topic, ".") {
		if word == "" || strings.ContainsFunc(word, func(c rune) bool { return unreadable(c) || c == '*' }) {
			return fmt.Sprintf("must be words with dots between them, such as build.finished, not %.80q", topic)
		}
	}
	return ""
}

// mostDigits is how long a number may be that is written as text: no number so
// long is taken for a neighbour.
const mostDigits = 15

// replyTo is the number of a message, which some write as text.
func (o *Object) replyTo(key string) int64 {
	digits, quoted := text(o.find(key))
	if !quoted {
		return o.Whole(key, 1)
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || digits[0] == '0' || len(digits) > mostDigits {
		o.Refuse(key, "must be the number of a message, or null")
		return 0
	}
	return int64(n)
}

// Sent answers send-message: the message as it is kept.
type Sent struct {
	Mail      `json:",embed"`
	Duplicate bool     `json:"duplicate,omitzero"` // it was there already
	Warnings  []string `json:"warnings,omitzero"`
}

// PollMessages is the payload of poll-messages.
type PollMessages struct {
	Actor  string `json:"actor,omitzero"`  // "": the caller
	Cursor *int64 `json:"cursor,omitzero"` // messages behind this one; nil: behind the last that was acked
	Limit  int64  `json:"limit,omitzero"`  // MailPage when it is 0
}

// MailPage is how many messages a poll gets at most when it does not say.
const MailPage = 1000

// ReadPollMessages reads a PollMessages.
func ReadPollMessages(o *Object) *PollMessages {
	p := &PollMessages{Actor: o.actor("actor", CheckAddressee), Limit: o.Whole("limit", 1)}
	if o.find("cursor") != nil {
		cursor := o.Whole("cursor", 0)
		p.Cursor = &cursor
	}
	if p.Limit > MostMailPage {
		o.Refuse("limit", fmt.Sprintf("must not be more than %d", MostMailPage))
	}
	return p
}

// MailList answers poll-messages.
type MailList struct {
	Actor    string `json:"actor"`    // whose they are
	Messages []Mail `json:"messages"` // in order of their numbers
	Cursor   int64  `json:"cursor"`   // the last that was acked
	More     bool   `json:"more"`     // there are more than were asked for
}

// AckMessages is the payload of ack-messages.
type AckMessages struct {
	Actor string `json:"actor,omitzero"` // "": the caller
	Seq   int64  `json:"seq"`            // the last message that has been dealt with
}

// ReadAckMessages reads an AckMessages.
func ReadAckMessages(o *Object) *AckMessages {
	a := &AckMessages{Actor: o.actor("actor", CheckAddressee), Seq: o.Whole("seq", 0)}
	if o.find("seq") == nil {
		o.Refuse("seq", "is missing")
	}
	return a
}

// Acked answers ack-messages.
type Acked struct {
	Actor  string `json:"actor"`
	Cursor int64  `json:"cursor"`
}

// Heartbeat is the payload of heartbeat.
type Heartbeat struct {
	Actor string `json:"actor,omitzero"` // "": the caller
}

// ReadHeartbeat reads a Heartbeat.
func ReadHeartbeat(o *Object) *Heartbeat { return &Heartbeat{Actor: o.actor("actor", CheckActor)} }

// Beat answers heartbeat.
type Beat struct {
	Actor    string `json:"actor"`
	LastSeen string `json:"last_seen"`
	Every    int64  `json:"heartbeat_ms"` // how far apart heartbeats are expected to be
}

// ActorView is an actor as all may see it.
type ActorView struct {
	Actor    string `json:"actor"`
	Agent    string `json:"agent,omitzero"` // whose actor it is, if it runs here or has registered
	Status   string `json:"status"`         // Actor… below
	LastSeen string `json:"last_seen,omitzero"`
	LastBeat string `json:"last_heartbeat,omitzero"`
	Cursor   int64  `json:"cursor"`          // the last message that it acked
	Latest   int64  `json:"latest,omitzero"` // the last message that was sent to it alone, since it is known
}

// What an actor is.
const (
	ActorActive  = "active"  // its agent runs, or it was heard of lately
	ActorStale   = "stale"   // its heartbeat stays away
	ActorOffline = "offline" // its agent does not run
	ActorQuiet   = "quiet"   // not known: it has never said that it would send heartbeats
)

// ActorList answers list-actors.
type ActorList struct {
	Actors []ActorView `json:"actors"`
}

// TopicView is a topic, and who is to use it.
type TopicView struct {
	Topic    string `json:"topic"`
	Standard bool   `json:"standard"` // else it is in the configuration
	From     string `json:"from,omitzero"`
	To       string `json:"to,omitzero"`
	Summary  string `json:"summary,omitzero"`
}

// TopicList answers list-topics.
type TopicList struct {
	Topics []TopicView `json:"topics"`
}
