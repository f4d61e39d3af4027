package session

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
func (e *Entry) MarshalJSONTo(to *jsontext.Encoder) error { return to.WriteValue(e.append(nil)) }

func (e *Entry) append(b []byte) []byte {
	from := len(b)
	members, _, ok := object.Scan(e.Document, object.AnyDepth, nil)
	if ok {
		b = appendMembersBut(b, members, entryKeys)
	} else {
		b = e.appendKnown(b)
	}
	has := func(key string) bool {
		return ok && slices.ContainsFunc(members, func(m object.Member) bool { return string(m.Key) == key })
	}
	if e.Sequence != 0 && !has("sequence_number") {
		b = strconv.AppendInt(object.AppendKey(b, "sequence_number"), e.Sequence, 10)
	}
	if !has("correlation_id") {
		b = object.AppendOptional(b, "correlation_id", e.Chain)
	}
	b = append(e.appendLogged(b), '}')
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

// appendKnown appends the known members of a message without a document.
func (e *Entry) appendKnown(b []byte) []byte {
	b = object.AppendOptional(b, "message_id", e.MessageID)
	b = object.AppendOptional(b, "message_type", e.Type)
	if e.From != "" {
		b = append(object.AppendText(append(object.AppendKey(b, "from_agent"), `{"agent_id":`...), e.From), '}')
	}
	return b
}

// appendLogged appends the members of the log.
func (e *Entry) appendLogged(b []byte) []byte {
	b = object.AppendMember(b, "logged_at", e.LoggedAt)
	b = strconv.AppendFloat(object.AppendKey(b, "processing_duration_ms"), e.TookMS, 'f', -1, 64)
	if len(e.Errors) > 0 {
		b = object.AppendTexts(b, "validation_errors", e.Errors)
	}
	b = strconv.AppendInt(object.AppendKey(b, "log_seq"), e.Seq, 10)
	b = object.AppendOptional(b, "refused", e.Refused)
	return object.AppendOptional(b, "said_by", e.By)
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom, for clients. The document is then the whole
// entry. The members of the message are read as far as possible, since it may be a refused one.
func (e *Entry) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	*e = Entry{Document: object.Clone(value)}
	o, wrong := object.Open(e.Document, object.AnyDepth, "", nil)
	if wrong != nil {
		return wrong
	}
	e.readLogged(&o)
	e.readSaid(o.Members)
	if o.Err() != nil {
		return o.Err()
	}
	return nil
}

func (e *Entry) readLogged(o *object.Reader) {
	e.Seq, e.LoggedAt, e.Refused = o.Whole("log_seq", 0), o.Text("logged_at"), o.Text("refused")
	e.By = o.Text("said_by")
	e.TookMS, _ = o.Number("processing_duration_ms")
	e.Errors = o.Texts("validation_errors")
}

func (e *Entry) readSaid(members []object.Member) {
	e.MessageID, _ = object.Text(object.Once(members, "message_id"))
	e.Type, _ = object.Text(object.Once(members, "message_type"))
	e.From = AgentNamed(object.Once(members, "from_agent"))
	e.Chain, _ = object.Text(object.Once(members, "correlation_id"))
	lenient := object.Reader{Members: members}
	e.Sequence = lenient.Whole("sequence_number", 0)
}

// An Entry is a message in the log of its session.
type Entry struct {
	Document  object.Raw `json:"-"` // the message as received; nil if it could not be read completely
	MessageID string     `json:"-"` // only without a document
	Type      string     `json:"-"` // likewise
	From      string     `json:"-"` // the agent that said it
	Sequence  int64      `json:"-"` // the number that was assigned at delivery, if it had none
	Chain     string     `json:"-"` // the correlation_id that was assigned at delivery, if it had none

	// When the message was logged: UTC, with milliseconds.
	LoggedAt string `json:"logged_at" schema:"stamp"`
	// The time from the receipt of the message to the decision about it, in milliseconds.
	TookMS float64 `json:"processing_duration_ms" schema:"min=0"`
	// The tolerated errors of the message, or all errors, each with its place. It is missing if there
	// are none.
	Errors []string `json:"validation_errors,omitzero" schema:"minitems=1"`
	// The number of the message in the event log. An extension of the published protocol.
	Seq int64 `json:"log_seq" schema:"min=1"`
	// Why the message was not delivered; missing if it was. An extension of the published protocol.
	Refused string `json:"refused,omitzero" schema:"minlen=1"`
	// The real sender of a message in another name, such as the orchestrator or an operator; otherwise
	// missing. An extension of the published protocol.
	By string `json:"said_by,omitzero" schema:"minlen=1"`
}
