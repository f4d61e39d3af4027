package mail

import (
	"strconv"

	"orchestrator/wire/object"
)

// A Message is mail from one actor to another, as stored. It never changes.
type Message struct {
	// The number of the message. Later messages have higher numbers. The numbers in one mailbox have
	// gaps.
	Seq int64 `json:"seq" schema:"min=1"`
	// The sender.
	From string `json:"from_actor"`
	// The recipient, or broadcast.
	To string `json:"to_actor"`
	// The topic. Acknowledge messages on unknown topics and continue.
	Topic string `json:"topic"`
	// The content, unchanged. It is untrusted: escape it before you show it.
	Payload object.Raw `json:"payload" schema:"type=object"`
	// The number of the message that this one answers; null if it answers none.
	ReplyTo *int64 `json:"reply_to" schema:"min=1,null"`
	// When the message was sent: UTC, with milliseconds.
	CreatedAt string `json:"created_at" schema:"stamp"`

	// The message as JSON, if it was spelled for several readers. They share it.
	Spelled object.Raw `json:"-"`
}

// JSON returns the message as one line of JSON, without the line end.
func (m *Message) JSON() ([]byte, error) {
	if m.Spelled != nil {
		return m.Spelled, nil
	}
	return object.Encode(m)
}

// Sent answers send-message with the stored message.
type Sent struct {
	Message `json:",embed"`
	// Whether the message had been sent before, with the same key; missing if it had not.
	Duplicate bool `json:"duplicate,omitzero"`
	// Warnings about the message, such as a topic that is not registered.
	Warnings []string `json:"warnings,omitzero"`
}

// DefaultPage is the default limit of a poll.
const DefaultPage = 1000

// List answers poll-messages.
type List struct {
	// The recipient of the messages.
	Actor    string    `json:"actor"`
	Messages []Message `json:"messages"` // The messages, in the order of their numbers.
	// The number of the last acknowledged message.
	Cursor int64 `json:"cursor" schema:"min=0"`
	// Whether more messages follow.
	More bool `json:"more"`
}

// Acked answers ack-messages.
type Acked struct {
	// The recipient of the messages.
	Actor string `json:"actor"`
	// The number of the last acknowledged message.
	Cursor int64 `json:"cursor" schema:"min=0"`
}

// Append appends the message as JSON. It is encoded by hand, because every message passes through
// here. Message does not implement json.MarshalerTo: it is embedded in Sent, which would then be
// encoded as the message only.
func (m *Message) Append(b []byte) []byte { return append(m.appendMembers(append(b, '{')), '}') }

// appendMembers appends all seven members, even empty ones.
func (m *Message) appendMembers(b []byte) []byte {
	b = strconv.AppendInt(append(b, `"seq":`...), m.Seq, 10)
	b = object.AppendMember(b, "from_actor", m.From)
	b = object.AppendMember(b, "to_actor", m.To)
	b = object.AppendMember(b, "topic", m.Topic)
	if m.Payload == nil {
		b = append(b, `,"payload":null`...)
	} else {
		b = object.AppendRaw(b, "payload", m.Payload)
	}
	if b = append(b, `,"reply_to":`...); m.ReplyTo == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, *m.ReplyTo, 10)
	}
	return object.AppendMember(b, "created_at", m.CreatedAt)
}

// Append appends the answer as JSON.
func (s *Sent) Append(b []byte) []byte {
	b = s.Message.appendMembers(append(b, '{'))
	if s.Duplicate {
		b = append(b, `,"duplicate":true`...)
	}
	if s.Warnings != nil {
		b = object.AppendTexts(b, "warnings", s.Warnings)
	}
	return append(b, '}')
}

// Append appends the answer as JSON.
func (l *List) Append(b []byte) []byte {
	b = object.AppendText(append(b, `{"actor":`...), l.Actor)
	b = append(b, `,"messages":[`...)
	for i := range l.Messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = l.Messages[i].Append(b)
	}
	b = strconv.AppendInt(append(b, `],"cursor":`...), l.Cursor, 10)
	return append(strconv.AppendBool(append(b, `,"more":`...), l.More), '}')
}
