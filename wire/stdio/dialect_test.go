package stdio

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/dialect"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// mailLine is a line of mail with a key.
const mailLine = `{"from_actor":"GO","to_actor":"HO:attic","topic":"task.assigned","payload":{"n":1.0},"reply_to":"42","idempotency_key":"k1"}`

// Rows: E-11, E-16, E-17, E-82.
func TestMailOnALine(t *testing.T) {
	require.Equal(t, &wire.Request{ID: "k1", Operation: "send-message", Payload: []byte(mailLine), Form: dialect.Mail}, reader().Parse([]byte(mailLine)))
	for line, id := range map[string]string{
		`{"from_actor":"GO","topic":"t"}`:                                                "",
		`{"from_actor":"GO","topic":"t","idempotency_key":null}`:                         "",
		`{"from_actor":"GO","topic":"t","idempotency_key":7}`:                            "",
		`{"from_actor":"GO","topic":"t","idempotency_key":"a\u0062"}`:                    "ab",
		`{"from_actor":"GO","topic":"t","idempotency_key":"a","idempotency_key":"b"}`:    "",
		` {"id":"1","timestamp":"x","from_actor":"GO","to_actor":"IO:ann","later":[1]} `: "",
	} {
		m, ok := reader().Parse([]byte(line)).(*wire.Request)
		require.True(t, ok, line)
		require.Equal(t, dialect.Mail, m.Form, line)
		require.Equal(t, id, m.ID, line)
		require.Empty(t, m.Timestamp)
	}
	m, ok := reader().Check([]byte(mailLine)).(*wire.Request)
	require.True(t, ok)
	require.Equal(t, &wire.SendMessage{From: "GO", To: "HO:attic", Topic: mail.TopicTaskAssigned, Payload: wire.Raw(`{"n":1.0}`), ReplyTo: 42, Key: "k1"}, m.Body)
}

// TestRepliesHaveTheFormOfTheQuestion checks that a reply has the same content in each form.
//
// Rows: E-10, E-22, E-84, T-48.
func TestRepliesHaveTheFormOfTheQuestion(t *testing.T) {
	sent := &mail.Sent{Message: fullMail, Duplicate: true}
	const mail = `{"seq":43,"from_actor":"GO","to_actor":"HO:attic","topic":"task.assigned","payload":{"n":1.0},"reply_to":42,"created_at":"2026-02-04T12:00:00.123Z","duplicate":true}`
	quoted, err := json.Marshal(mail)
	require.NoError(t, err)
	require.Equal(t, mail+"\n", string(noon.AppendReply(nil, dialect.Mail, "k1", sent, nil)))
	require.Equal(t, string(noon.AppendAnswer(nil, "k1", sent, nil)), string(noon.AppendReply(nil, dialect.Native, "k1", sent, nil)))
	require.Equal(t,
		`before {"jsonrpc":"2.0","id":9007199254740993,"result":{"content":[{"type":"text","text":`+string(quoted)+`}],"structuredContent":`+mail+`,"isError":false}}`+"\n",
		string(noon.AppendReply([]byte("before "), dialect.ToolCall, "9007199254740993", sent, nil)))
}

// Rows: E-11, E-12, E-19, E-20, E-84.
func TestRefusalsHaveTheFormOfTheQuestion(t *testing.T) {
	refused := &wire.Error{
		Code: wire.CodeDenied, Message: "you are W:1", Hint: "Leave it out",
		Details: map[string]any{"actor": "W:1", "pointer": "/payload/from_actor"},
	}
	const details = `{"actor":"W:1","hint":"Leave it out","pointer":"/from_actor"}`
	const spoken = `{"code":"UNAUTHORIZED","message":"you are W:1","details":`
	for key, id := range map[string]string{"k1": `"k1"`, "": "null", `"`: `"\""`} {
		line := noon.AppendReply(nil, dialect.Mail, key, nil, refused)
		require.Equal(t, `{"type":"response:error","id":"res-1","correlationId":`+id+`,"timestamp":"2026-02-04T12:00:00.123Z","error":`+spoken+details+"}}\n", string(line))
		requireValid(t, "response:error", line)
	}
	for _, id := range []string{"1", `"a\u0062"`, "12345678901234567890", "-0.50e1", ""} {
		raw := (&wire.Request{ID: id, Form: dialect.ToolCall}).RawID()
		for form := dialect.Native; form <= dialect.TaskAct; form++ {
			asked := wire.Request{ID: id, Form: form}
			want := asked.RawID()
			if want == nil {
				want = []byte("null")
			}
			require.Equal(t, string(want), string(asked.AppendRawID(nil)))
		}
		line := string(noon.AppendReply(nil, dialect.ToolCall, id, nil, refused))
		require.Equal(t, line, string(noon.AppendRefused(nil, dialect.ToolCall, raw, refused)))
		if id == "" {
			id = "null"
		}
		require.Equal(t, `{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[{"type":"text","text":"you are W:1. Leave it out"}],"structuredContent":{"error":`+
			spoken+`{"actor":"W:1","hint":"Leave it out","pointer":"/params/arguments/from_actor"}}},"isError":true}}`+"\n", line)
		keysOf(t, []byte(line))
	}
	require.Equal(t, "/payload/from_actor", refused.Details["pointer"], "it may be said again in another form")
	require.Equal(t, string(noon.AppendRefusal(nil, []byte(`7`), refused)), string(noon.AppendRefused(nil, dialect.Native, []byte(`7`), refused)))
	for _, form := range []dialect.Dialect{dialect.Native, dialect.Mail, dialect.ToolCall} {
		line := string(noon.AppendReply([]byte("before "), form, "1", func() {}, nil))
		require.Contains(t, line, `"INTERNAL_ERROR"`)
		require.Equal(t, string(noon.AppendRefused([]byte("before "), form, form.RawID("1"), unspeakable)), line)
	}
}

// TestSessionMessagesAreAnsweredWhenTheyAreRefused checks that the sender of a session message
// gets the outcome if it was not delivered.
//
// Rows: C-90, K-06.
func TestSessionMessagesAreAnsweredWhenTheyAreRefused(t *testing.T) {
	refused := &wire.Error{Code: wire.CodeDenied, Message: "m", Details: map[string]any{"pointer": "/payload/task/task_id"}}
	require.Empty(t, noon.AppendReply(nil, dialect.Session, "msg-1", &session.Said{}, nil))
	require.Empty(t, noon.AppendReply(nil, dialect.Session, "", nil, nil))
	for id, raw := range map[string][]byte{"msg-1": []byte(`"msg-1"`), `"`: []byte(`"\""`), "": nil} {
		require.Equal(t, raw, (&wire.Request{ID: id, Form: dialect.Session}).RawID())
		want := string(noon.AppendDeliveryError([]byte("before "), raw, session.Undelivered(id, refused), refused))
		require.Equal(t, want, string(noon.AppendReply([]byte("before "), dialect.Session, id, nil, refused)))
		require.Equal(t, want, string(noon.AppendReply([]byte("before "), dialect.Session, id, (*session.DeliveryError)(nil), refused)))
		require.Equal(t, want, string(noon.AppendReply([]byte("before "), dialect.Session, id, &session.Said{}, refused)))
		require.Equal(t, want, string(noon.AppendRefused([]byte("before "), dialect.Session, raw, refused)))
		require.Contains(t, want, `"pointer":"/payload/task/task_id"`)
	}
	late := &session.DeliveryError{OriginalMessageID: "msg-1", ErrorType: session.DeliveryTimeout, RetryCount: 2, MaxRetries: 3, NextRetryAt: object.Timestamp(noon.At)}
	require.Equal(t,
		string(noon.AppendDeliveryError(nil, []byte(`"msg-1"`), late, refused)), string(noon.AppendReply(nil, dialect.Session, "msg-1", late, refused)))
	escaped := noon.AppendRefused(nil, dialect.Session, []byte(`"\u006dsg-1"`), refused)
	require.Contains(t, string(escaped), `"correlationId":"\u006dsg-1"`)
	require.Contains(t, string(escaped), `"original_message_id":"msg-1"`)
	number := noon.AppendRefused(nil, dialect.Session, []byte(`7`), refused)
	require.Contains(t, string(number), `"correlationId":7,`)
	require.Contains(t, string(number), `"original_message_id":""`)
}

// TestErrorsPointIntoTheLine checks that the pointer of an error is a place in the line, in
// every form.
func TestErrorsPointIntoTheLine(t *testing.T) {
	for pointer, want := range map[string][3]string{
		"/payload/topic":   {"/payload/topic", "/topic", "/params/arguments/topic"},
		"/payload/payload": {"/payload/payload", "/payload", "/params/arguments/payload"},
		"/payload":         {"/payload", "", "/params/arguments"},
		"/payloads":        {"/payloads", "/payloads", "/payloads"},
		"/id":              {"/id", "/id", "/id"},
		"":                 {"", "", ""},
	} {
		for form, there := range want {
			require.Equal(t, there, dialect.Dialect(form).Place(object.Invalid(pointer, "m")).Details["pointer"], "%s %d", pointer, form)
		}
		for _, form := range []dialect.Dialect{dialect.Session, dialect.TaskRequest, dialect.TaskAct} {
			require.Equal(t, pointer, form.Place(object.Invalid(pointer, "m")).Details["pointer"], "%s %d", pointer, form)
		}
	}
	require.Nil(t, dialect.Mail.Place(&wire.Error{}).Details)
	for line, want := range map[string]string{
		`{"from_actor":"GO","to_actor":"GO","topic":"a..b","payload":{},"idempotency_key":"k"}`:                    `"k" /topic`,
		`{"from_actor":"GO","to_actor":"GO","topic":"t","payload":{},"idempotency_key":"a","idempotency_key":"b"}`: ` /idempotency_key`,
		`{"from_actor":"GO","topic":"t"}`:                                                                                   ` /to_actor`,
		`{"from_actor":"GO","to_actor":"GO","topic":"t","payload":[]}`:                                                      ` /payload`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"bus_ack"}}`:                                        `7 /params/arguments/seq`,
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"nope"}}`:                                           `7 /params/name`,
		`{"type":"request:send-message","id":"1","timestamp":"2026-01-01","payload":{"to_actor":"GO","topic":"a..b"}}`:      `"1" /payload/topic`,
		`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"bus_poll","arguments":{"cursor":1,"cursor":2}}}`: `"x" /params/arguments/cursor`,
	} {
		refused, ok := reader().Check([]byte(line)).(*wire.Refused)
		require.True(t, ok, line)
		require.True(t, refused.Request)
		require.Equal(t, want, string(refused.ID)+" "+refused.Err.Details["pointer"].(string), line)
		m, ok := reader().Parse([]byte(line)).(*wire.Request)
		if !ok {
			continue // answered at once
		}
		_, err := wire.ReadRequest(m.Operation, m.Payload, 64)
		answer := noon.AppendRefused(nil, refused.Form, m.RawID(), err)
		keysOf(t, answer)
		require.Contains(t, string(answer), `"pointer":"`+refused.Err.Details["pointer"].(string)+`"`)
	}
}

// TestNothingThatIsSaidBackIsHeard checks that every message of the orchestrator is log output
// if an agent prints it.
//
// Rows: B-20, T-02.
func TestNothingThatIsSaidBackIsHeard(t *testing.T) {
	sent, refused := &mail.Sent{Message: fullMail, Warnings: []string{"w"}}, object.Invalid("/payload/topic", "m")
	lines := [][]byte{noon.AppendNotice(nil, wire.NoticeMessage, &fullMail), append(fullMail.Append(nil), '\n'), append(bareMail.Append(nil), '\n')}
	for _, form := range []dialect.Dialect{dialect.Native, dialect.Mail, dialect.ToolCall, dialect.Session, dialect.TaskRequest, dialect.TaskAct} {
		for _, id := range []string{"1", ""} {
			lines = append(lines, noon.AppendReply(nil, form, id, nil, refused))
			if form < dialect.Session {
				lines = append(lines, noon.AppendReply(nil, form, id, sent, nil))
			}
		}
	}
	for _, method := range []string{"initialize", "ping", "tools/list", "nope", "tools/call"} {
		replied, ok := reader().Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"` + method + `"}`)).(*wire.Answered)
		require.True(t, ok, method)
		lines = append(lines, replied.Text)
	}
	for _, line := range lines {
		keysOf(t, line)
		require.IsType(t, wire.Log{}, reader().Parse(line[:len(line)-1]), "%s", line)
		for cut := range line { // and so is every prefix of it
			require.IsType(t, wire.Log{}, reader().ParseHead(line[:cut], "cut"), "%s", line[:cut])
		}
	}
}

// TestUnfinishedMailAndCalls checks that truncated mail and calls are answered if their
// beginning has the id for the reply.
//
// Rows: B-21, B-27, E-82.
func TestUnfinishedMailAndCalls(t *testing.T) {
	const head = `{"from_actor":"GO","to_actor":"HO:attic","idempotency_key":"k","payload":{"x":"`
	refused, ok := reader().ParseHead([]byte(head), "too long").(*wire.Refused)
	require.True(t, ok)
	require.Equal(t, &wire.Refused{
		ID: []byte(`"k"`), Type: "request:send-message", Request: true, Form: dialect.Mail, Err: object.Invalid("", "the request cannot be taken: too long"),
	}, refused)
	refused, ok = reader().Parse([]byte(`{"from_actor":"GO","topic":"t","payload":{"x":"\ud800"}}`)).(*wire.Refused)
	require.True(t, ok)
	require.Nil(t, refused.ID)
	replied, ok := reader().ParseHead([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"bus_send`), "too long").(*wire.Answered)
	require.True(t, ok)
	require.Equal(t, `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"the request cannot be taken: too long","data":{"pointer":""}}}`+"\n", string(replied.Text))
	for _, log := range []string{
		`{"seq":1,"from_actor":"GO","to_actor":"HO:attic","payload":{"x":"`,
		`{"created_at":"x","from_actor":"GO","to_actor":"HO:attic","payload":{"x":"`,
		`{"message_type":"abort","from_actor":"GO","to_actor":"HO:attic","x":"`,
		`{"from_actor":"GO","topic":"t","topic":"u","x":"`,
		`{"type":"event:log","from_actor":"GO","to_actor":"HO:attic","x":"`,
		`{"type":"request:x","from_actor":"GO","to_actor":"HO:attic","x":"`,
		`{"jsonrpc":"2.0","method":"tools/call","params":{"`,
		`{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"`,
	} {
		require.Equal(t, wire.Log{Why: "too long"}, reader().ParseHead([]byte(log), "too long"), log)
	}
}
