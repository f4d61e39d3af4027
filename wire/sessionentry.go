package wire

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"orchestrator/wire/object"
)

// entryKeys are the members that the log adds to a message. Members with these keys in the
// message itself are dropped, so that a sender cannot forge them.
var entryKeys = []string{"logged_at", "processing_duration_ms", "validation_errors", "log_seq", "refused", "said_by"}

// MarshalJSONTo implements json.MarshalerTo. It writes the message as received, with the members
// of the log.
func (s *SessionEntry) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteValue(s.append(nil)) }

func (s *SessionEntry) append(b []byte) []byte {
	from := len(b)
	members, _, ok := object.Scan(s.Document, object.AnyDepth, nil)
	if ok {
		b = appendMembersBut(b, members, entryKeys)
	} else {
		b = s.appendKnown(b)
	}
	has := func(key string) bool {
		return ok && slices.ContainsFunc(members, func(m object.Member) bool { return string(m.Key) == key })
	}
	if s.Sequence != 0 && !has("sequence_number") {
		b = strconv.AppendInt(object.AppendKey(b, "sequence_number"), s.Sequence, 10)
	}
	if !has("correlation_id") {
		b = object.AppendOptional(b, "correlation_id", s.Chain)
	}
	b = append(s.appendLogged(b), '}')
	b[from] = '{' // where the first member has its comma
	return b
}

// appendMembersBut appends members unchanged, except those with the given keys.
func appendMembersBut(b []byte, members []object.Member, keys []string) []byte {
	for _, m := range members {
		if key := string(m.Key); !slices.Contains(keys, key) {
			b = append(object.AppendText(append(b, ','), key), ':')
			b = append(b, m.Value...)
		}
	}
	return b
}

// appendKnown appends what is known about a message without a document.
func (s *SessionEntry) appendKnown(b []byte) []byte {
	b = object.AppendOptional(b, "message_id", s.MessageID)
	b = object.AppendOptional(b, "message_type", s.Type)
	if s.From != "" {
		b = append(object.AppendText(append(object.AppendKey(b, "from_agent"), `{"agent_id":`...), s.From), '}')
	}
	return b
}

// appendLogged appends the members of the log.
func (s *SessionEntry) appendLogged(b []byte) []byte {
	b = object.AppendMember(b, "logged_at", s.LoggedAt)
	b = strconv.AppendFloat(object.AppendKey(b, "processing_duration_ms"), s.TookMS, 'f', -1, 64)
	if len(s.Errors) > 0 {
		b = object.AppendTexts(b, "validation_errors", s.Errors)
	}
	b = strconv.AppendInt(object.AppendKey(b, "log_seq"), s.Seq, 10)
	b = object.AppendOptional(b, "refused", s.Refused)
	return object.AppendOptional(b, "said_by", s.By)
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom, for clients. The document is then the whole
// entry. The members of the message are read as far as possible, since it may be a refused one.
func (s *SessionEntry) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	*s = SessionEntry{Document: object.Clone(value)}
	o, wrong := object.Open(s.Document, object.AnyDepth, "", nil)
	if wrong != nil {
		return wrong
	}
	s.readLogged(&o)
	s.readSaid(o.Members)
	if o.Err() != nil {
		return o.Err()
	}
	return nil
}

func (s *SessionEntry) readLogged(o *object.Reader) {
	s.Seq, s.LoggedAt, s.Refused = o.Whole("log_seq", 0), o.Text("logged_at"), o.Text("refused")
	s.By = o.Text("said_by")
	s.TookMS, _ = o.Number("processing_duration_ms")
	s.Errors = o.Texts("validation_errors")
}

func (s *SessionEntry) readSaid(members []object.Member) {
	s.MessageID, _ = object.Text(object.Once(members, "message_id"))
	s.Type, _ = object.Text(object.Once(members, "message_type"))
	s.From = agentNamed(object.Once(members, "from_agent"))
	s.Chain, _ = object.Text(object.Once(members, "correlation_id"))
	lenient := object.Reader{Members: members}
	s.Sequence = lenient.Whole("sequence_number", 0)
}
