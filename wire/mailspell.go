package wire

import "strconv"

// How mail is spelled: by hand, because it is said for every message there is.
// These are no methods of the encoder's interface, for Mail is embedded in Sent,
// which would be spelled as the mail alone.

func (m *Mail) append(b []byte) []byte { return append(m.appendMembers(append(b, '{')), '}') }

// appendMembers spells all seven, always.
func (m *Mail) appendMembers(b []byte) []byte {
	b = strconv.AppendInt(append(b, `"seq":`...), m.Seq, 10)
	b = appendMember(b, "from_actor", m.From)
	b = appendMember(b, "to_actor", m.To)
	b = appendMember(b, "topic", m.Topic)
	if m.Payload == nil {
		b = append(b, `,"payload":null`...)
	} else {
		b = appendRaw(b, "payload", m.Payload)
	}
	if b = append(b, `,"reply_to":`...); m.ReplyTo == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, *m.ReplyTo, 10)
	}
	return appendMember(b, "created_at", m.CreatedAt)
}

func (s *Sent) append(b []byte) []byte {
	b = s.Mail.appendMembers(append(b, '{'))
	if s.Duplicate {
		b = append(b, `,"duplicate":true`...)
	}
	if s.Warnings != nil {
		b = appendTexts(b, "warnings", s.Warnings)
	}
	return append(b, '}')
}

func (l *MailList) append(b []byte) []byte {
	b = appendText(append(b, `{"actor":`...), l.Actor)
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
