package stdio

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/dialect"
	"orchestrator/wire/events"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// Rows: E-15, E-22, E-25, K-08, T-37.
func TestMailIsWhatTheRecordKeeps(t *testing.T) {
	r := &wire.Record{
		Seq: 43, At: noon.At, From: "GO", To: "HO:attic", Topic: mail.TopicTaskAssigned, Kind: events.MessageSent, Payload: []byte(`{"n": 1.0}`), ReplyTo: 42, Key: "k",
		Correlation: "c",
	}
	m := wire.MailOf(r)
	want := `{"seq":43,"from_actor":"GO","to_actor":"HO:attic","topic":"task.assigned","payload":{"n": 1.0},"reply_to":42,"created_at":"2026-02-04T12:00:00.123Z"}`
	require.Equal(t, want, string(m.Append(nil)))
	r.ReplyTo = 7
	require.Equal(t, want, string(m.Append(nil)), "a record that is filled again does not change it")
	r.ReplyTo = 0
	m = wire.MailOf(r)
	require.Contains(t, string(m.Append(nil)), `"reply_to":null,`)
	for _, at := range []time.Time{noon.At, {}, time.Date(2026, 12, 31, 23, 59, 59, 999_999_999, time.UTC)} {
		m = wire.MailOf(&wire.Record{At: at})
		require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, m.CreatedAt)
	}
}

// TestMailHasOneSpelling checks that mail has the same encoding by hand and by reflection, in
// lists and in Sent too, and that it can be decoded.
//
// Rows: E-22.
func TestMailHasOneSpelling(t *testing.T) {
	schema := validators(t)["mail"]
	requireSpelling := func(byHand []byte, value, back any) {
		text, err := object.Encode(value)
		require.NoError(t, err)
		require.Equal(t, string(byHand), string(text))
		require.NoError(t, object.Decode(text, back))
		require.Equal(t, value, back)
	}
	for _, received := range each(bareMail, fullMail) {
		text := received.Append(nil)
		require.NoError(t, schema.Validate(decoded(t, text)), "%s", text)
		require.Equal(t, []string{"created_at", "from_actor", "payload", "reply_to", "seq", "to_actor", "topic"}, slices.Sorted(maps.Keys(keysOf(t, append(text, '\n')))))
		requireSpelling(text, &received, new(mail.Message))
		for _, sent := range each(mail.Sent{Message: received}, mail.Sent{Message: received, Duplicate: true, Warnings: []string{`"w"`, "v"}}) {
			requireSpelling(sent.Append(nil), &sent, new(mail.Sent))
		}
		for _, l := range []*mail.List{{Messages: []mail.Message{received}}, {Actor: `H"O`, Messages: []mail.Message{received, bareMail}, Cursor: 42, More: true}} {
			requireSpelling(l.Append(nil), l, new(mail.List))
		}
	}
	var none mail.Message
	text, err := object.Encode(none)
	require.NoError(t, err)
	require.Equal(t, string(none.Append(nil)), string(text))
	require.Equal(t, `{"actor":"","messages":[],"cursor":0,"more":false}`, string(new(mail.List).Append(nil)))
}

// TestPayloadsOfMailLeaveAsTheyCame checks that the payload of a message is unchanged in every
// form.
//
// Rows: E-18, E-22, T-37, T-48.
func TestPayloadsOfMailLeaveAsTheyCame(t *testing.T) {
	const verbatim = `{"n": 12345678901234567890,"x":1.0,"html":"<a&b>","u":"\u00e9\/","idempotency_key":"inside"}`
	m, ok := reader().Parse([]byte(`{"from_actor":"GO","to_actor":"HO:attic","topic":"t","payload":` + verbatim + `,"idempotency_key":"k"}`)).(*wire.Request)
	require.True(t, ok)
	body, err := wire.ReadRequest(m.Operation, m.Payload, 64)
	require.Nil(t, err)
	received := wire.MailOf(&wire.Record{Seq: 1, At: noon.At, From: "GO", To: "HO:attic", Topic: "t", Payload: body.(*wire.SendMessage).Payload, Key: m.ID})
	for _, line := range [][]byte{
		noon.AppendNotice(nil, wire.NoticeMessage, &received),
		noon.AppendAnswer(nil, "1", &mail.Sent{Message: received}, nil),
		noon.AppendReply(nil, dialect.Mail, m.ID, &mail.Sent{Message: received}, nil),
		noon.AppendReply(nil, dialect.ToolCall, "1", &mail.List{Messages: []mail.Message{received}}, nil),
	} {
		keysOf(t, line)
		require.Contains(t, string(line), `"payload":`+verbatim+`,"reply_to":null,`)
	}
	require.NotContains(t, string(noon.AppendReply(nil, dialect.Mail, m.ID, &mail.Sent{Message: received}, nil)), `"k"`, "the key stays with the bus")
}

// Rows: E-22, E-25.
func TestNoticesOfMail(t *testing.T) {
	for _, received := range []mail.Message{fullMail, bareMail} {
		line := noon.AppendNotice(nil, wire.NoticeMessage, &received)
		require.Equal(t, `{"type":"notify:message","id":"res-1","timestamp":"2026-02-04T12:00:00.123Z","payload":`+string(received.Append(nil))+"}\n", string(line))
		requireValid(t, "notify:message", line)
		require.Equal(t, string(line), string(noon.AppendNotice(nil, wire.NoticeMessage, received)), "by value or not")
	}
}
