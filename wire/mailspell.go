package wire

import (
	"strconv"

	"orchestrator/wire/object"
)

// Mail is encoded by hand, because every message passes through here. Mail does not implement
// json.MarshalerTo: it is embedded in Sent, which would then be encoded as the mail only.

func (m *Mail) append(b []byte) []byte { return append(m.appendMembers(append(b, '{')), '}') }

// appendMembers appends all seven members, even those that are empty.
func (m *Mail) appendMembers(b []byte) []byte {
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

func (s *Sent) append(b []byte) []byte {
	b = s.Mail.appendMembers(append(b, '{'))
	if s.Duplicate {
		b = append(b, `,"duplicate":true`...)
	}
	if s.Warnings != nil {
		b = object.AppendTexts(b, "warnings", s.Warnings)
	}
	return append(b, '}')
}

func (l *MailList) append(b []byte) []byte {
	b = object.AppendText(append(b, `{"actor":`...), l.Actor)
	b = append(b, `,"messages":[`...)
	for i := range l.Messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = l.Messages[i].append(b)
	}
	b = strconv.AppendInt(append(b, `],"cursor":`...), l.Cursor, 10)
	return append(strconv.AppendBool(append(b, `,"more":`...), l.More), '}')
}
