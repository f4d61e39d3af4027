package wire

import (
	"bytes"
	"fmt"
	"strconv"

	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// MailOf returns the mail in a record.
func MailOf(r *Record) mail.Message {
	m := mail.Message{Seq: r.Seq, From: r.From, To: r.To, Topic: r.Topic, Payload: r.Payload, CreatedAt: object.Timestamp(r.At)}
	switch r.Kind {
	case events.TaskAssigned, events.TaskDone, events.TaskFailed, events.TaskHelpWanted:
		m.From, m.Payload = mailOfTask(r)
	}
	if r.ReplyTo != 0 {
		number := r.ReplyTo // mail may outlive the record, which is reused
		m.ReplyTo = &number
	}
	return m
}

// mailOfTask returns the sender and the payload of a task's record as mail. The payload is that
// of the record, preceded by the id of the task as ticket_id. Without an actor the sender is GO.
func mailOfTask(r *Record) (from string, payload Raw) {
	from = mail.Global
	if actor, ok := object.TextOf(r.Payload, "actor"); ok {
		from = actor
	}
	task, _ := object.TextOf(r.Payload, "task")
	payload = object.AppendText(append(payload, `{"ticket_id":`...), task)
	if r.Kind == events.TaskHelpWanted {
		payload = append(payload, `,"alert":"`+mail.AlertHelp+`"`...)
	}
	if rest := bytes.TrimPrefix(r.Payload, []byte("{")); len(rest) > 1 {
		payload = append(append(payload, ','), rest...)
	} else {
		payload = append(payload, '}')
	}
	return from, payload
}

// NoticeMessage is the notice of new mail for an actor's agent. Its payload is a Mail.
const NoticeMessage = "message"

// SendMessage is the payload of send-message.
type SendMessage struct {
	// You, as an actor; optional. A message in the name of another actor is refused.
	From string `json:"from_actor,omitzero"`
	// The recipient: GO, HO:host, PO:project, IO:person, W:id, S:kind:id, Bus or Governor; the name of
	// an agent, for its mailbox; or broadcast, which only GO may use. An actor need not exist yet. At
	// most 200 bytes, without invisible characters.
	To string `json:"to_actor" schema:"own,recipient"`
	// The topic: words with dots between them, such as task.completed, at most 200 bytes. A topic that
	// is not registered causes a warning.
	Topic string `json:"topic" schema:"own,topic"`
	// The content, at most 1 MiB. It is delivered unchanged, digit for digit.
	Payload Raw `json:"payload" schema:"own,type=object"`
	// The number of the message that this one answers, as a number or a text.
	ReplyTo int64 `json:"reply_to,omitzero" schema:"own,type=integer|string,whole=1,digits"`
	// A text that differs for each of your messages, such as a UUID, at most 200 bytes. A message that
	// is sent again with the same key is not sent twice.
	Key string `json:"idempotency_key,omitzero" schema:"own,key"`

	Lookup `json:"-"` // whether the key is already in use; Sum is not set
}

// Completes returns the task that the message reports as completed, if it does so, and its result, or nil.
func (m *SendMessage) Completes() (task string, result Raw) {
	var said object.Reader
	if m.Topic != mail.TopicTaskCompleted || m.To != mail.Global || said.Read(m.Payload, object.AnyDepth, "") != nil {
		return "", nil
	}
	return said.FirstText("ticket_id", "task_id", "taskId"), said.Value("result")
}

func (m *SendMessage) read(o *object.Reader) {
	m.To, m.Topic = o.NeedText("to_actor"), readTopic(o, "topic")
	m.ReplyTo, m.Key = readReplyTo(o, "reply_to"), o.Text("idempotency_key")
	if why := mail.CheckAddressee(m.To); m.To != "" && why != "" && !mail.IsName(m.To) {
		o.Refuse("to_actor", why)
	}
	switch m.Payload = o.Document("payload"); {
	case m.Payload == nil:
		o.Refuse("payload", "is missing: it must be an object")
	case len(m.Payload) > mail.MaxPayload:
		o.Fail(&Error{
			Code: CodeTooLarge, Message: fmt.Sprintf("payload has %d bytes, and the limit is %d", len(m.Payload), mail.MaxPayload),
			Details: map[string]any{"pointer": o.Below("payload")},
			Hint:    "Put large content into a file, and send its path",
		})
	}
	switch {
	case m.Key == "" && o.Find("idempotency_key") != nil:
		o.Refuse("idempotency_key", "must not be empty; leave it out, or say null")
	case len(m.Key) > mail.MaxKey:
		o.Refuse("idempotency_key", fmt.Sprintf("must not be longer than %d bytes", mail.MaxKey))
	default:
		o.NoControls("idempotency_key", m.Key)
	}
}

// readActor reads an optional actor id, which check must accept.
func readActor(o *object.Reader, key string, check func(string) string) string {
	id := o.Text(key)
	if o.Find(key) == nil {
		return ""
	}
	if why := check(id); why != "" {
		o.Refuse(key, why)
	}
	return id
}

// readTopic is a topic: words with dots between them.
func readTopic(o *object.Reader, key string) string {
	topic := o.NeedText(key)
	if why := mail.CheckTopic(topic); topic != "" && why != "" {
		o.Refuse(key, why)
	}
	return topic
}

// maxDigits is the maximum length of a number that is written as text. Such a number is exact
// as a float64.
const maxDigits = 15

// readReplyTo reads the number of a message, which may be written as text.
func readReplyTo(o *object.Reader, key string) int64 {
	digits, quoted := object.Text(o.Find(key))
	if !quoted {
		return o.Whole(key, 1)
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || digits[0] == '0' || len(digits) > maxDigits {
		o.Refuse(key, "must be the number of a message, or null")
		return 0
	}
	return int64(n)
}

// PollMessages is the payload of poll-messages.
type PollMessages struct {
	// You, as an actor; optional. Only operators may name another.
	Actor string `json:"actor,omitzero" schema:"addressee"`
	// Only messages with a higher number; 0 for all. The default is the last acknowledged one.
	Cursor *int64 `json:"cursor,omitzero" schema:"whole=0"`
	// The maximum number of messages; 1000 when it is missing.
	Limit int64 `json:"limit,omitzero" schema:"min=1,max=10000"`
}

// AckMessages is the payload of ack-messages.
type AckMessages struct {
	// You, as an actor; optional.
	Actor string `json:"actor,omitzero" schema:"addressee"`
	// The number of the last message that you have handled.
	Seq int64 `json:"seq" schema:"whole=0"`
}

// MessageSeq is the payload of message-status.
type MessageSeq struct {
	// The number of the message.
	Seq int64 `json:"seq" schema:"whole=1"`
}

// Heartbeat is the payload of heartbeat.
type Heartbeat struct {
	// You, as an actor; optional.
	Actor string `json:"actor,omitzero" schema:"actor"`
}

// The answers.
var (
	answerSent     = &Answer{Name: "sent", Of: mail.Sent{}, About: " with the stored message and warnings about it"}
	answerMessages = &Answer{Name: "messages", Of: mail.List{}, About: ", in the order of the numbers"}
	answerAcked    = &Answer{Name: "acked", Of: mail.Acked{}}
	answerStatus   = &Answer{Name: "status", Of: mail.Status{}, About: ", as far as the log and the orchestrator know"}
	answerSeen     = &Answer{Name: "seen", Of: mail.Beat{}}
	answerActors   = &Answer{Name: "actors", Of: mail.ActorList{}}
	answerTopics   = &Answer{Name: "topics", Of: mail.TopicList{}}
)

// mailOperations are the operations on messages between actors.
var mailOperations = []Operation{
	request[SendMessage](Operation{
		Name: "send-message", Answer: answerSent, Audience: ForActors, Writes: true,
		Summary: "Send a message to an actor, or as GO to all",
		About:   "The message is kept unchanged until the recipient reads it. An agent can print the payload as a line, with a from_actor. The answer is then only the message.",
		HTTP:    []string{"POST /api/bus/send"},
		Examples: []string{
			`{"from_actor": "W:7b1c90de-52f4-4c1e-9a60-3d5e8f0a2100", "to_actor": "GO", "topic": "task.completed", "payload": {"task_id": "task-123"}, "reply_to": 42, "idempotency_key": "5f0c7a52-6c1b-4d0e-9a4f-8b1d2c3e4f50"}`,
			`{"to_actor": "HO:attic", "topic": "message.direct", "payload": {"text": "The disk is full."}}`,
			`{"to_actor": "coder", "topic": "message.direct", "payload": {"text": "Keep the old page working."}}`,
		},
	}),
	request[PollMessages](Operation{
		Name: "poll-messages", Answer: answerMessages, Audience: ForActors,
		Summary:  "Read your messages after your cursor, or after any number, in order",
		About:    "Reading removes nothing: a message that is not acknowledged is returned again.",
		HTTP:     []string{"GET /api/bus/poll"},
		Examples: []string{`{"actor": "HO:attic", "cursor": 41, "limit": 100}`, `{}`, ""},
	}),
	request[AckMessages](Operation{
		Name: "ack-messages", Answer: answerAcked, Audience: ForActors, Writes: true,
		Summary:  "Acknowledge your messages up to a number and move your cursor there",
		About:    "poll-messages continues after that number. A lower number than before changes nothing.",
		HTTP:     []string{"POST /api/bus/ack"},
		Examples: []string{`{"actor": "HO:attic", "seq": 45}`, `{"seq": 45}`},
	}),
	request[MessageSeq](Operation{
		Name: "message-status", Answer: answerStatus, Audience: ForActors, NoSDK: "Ask sends it",
		Summary:  "Show the state of a bus message",
		About:    "Only its sender and operators may read it. When the orchestrator stops, it forgets which messages were written.",
		Examples: []string{`{"seq": 45}`},
	}),
	request[Heartbeat](Operation{
		Name: "heartbeat", Answer: answerSeen, Audience: ForActors, Writes: true,
		Summary:  "Announce that you are present for the next minute",
		About:    "An agent that has sent one heartbeat must send one each minute. GO is alerted when none comes for three minutes.",
		HTTP:     []string{"POST /api/bus/heartbeat"},
		Examples: []string{`{"actor": "HO:attic"}`, `{}`, ""},
	}),
	request[Nothing](Operation{
		Name: "list-actors", Answer: answerActors, Audience: ForActors, NoSDK: "Ask sends it",
		Summary:  "List the actors with their presence and cursors",
		Examples: []string{`{}`, ""},
	}),
	request[Nothing](Operation{
		Name: "list-topics", Answer: answerTopics, Audience: ForActors, NoSDK: "Ask sends it",
		Summary:  "List the registered topics",
		Examples: []string{`{}`, ""},
	}),
}
