package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/mail"
)

// sending returns a payload of send-message with its required members and more.
func sending(more string) string {
	return `{"to_actor":"GO","topic":"t","payload":{}` + more + `}`
}

// Rows: E-11, E-12, E-13, E-14, E-15, E-16, E-17, E-69, E-70, E-71, E-72, E-73, E-82, T-36, T-37.
func TestMailIsRead(t *testing.T) {
	with := func(change func(m *SendMessage)) *SendMessage {
		m := &SendMessage{To: mail.Global, Topic: "t", Payload: Raw(`{}`)}
		change(m)
		return m
	}
	for _, test := range []struct {
		operation, payload string
		want               any
	}{
		{"send-message", sending(``), with(func(*SendMessage) {})},
		{"send-message", sending(`,"later":1,"seq":7,"created_at":"x"`), with(func(*SendMessage) {})},
		{"send-message", sending(`,"from_actor":null,"reply_to":null,"idempotency_key":null`), with(func(*SendMessage) {})},
		{"send-message", sending(`,"from_actor":"HO:h1"`), with(func(m *SendMessage) { m.From = "HO:h1" })},
		{"send-message", sending(`,"reply_to":42`), with(func(m *SendMessage) { m.ReplyTo = 42 })},
		{"send-message", sending(`,"reply_to":4.2e1`), with(func(m *SendMessage) { m.ReplyTo = 42 })},
		{"send-message", sending(`,"reply_to":"42"`), with(func(m *SendMessage) { m.ReplyTo = 42 })},
		{"send-message", sending(`,"reply_to":"999999999999999"`), with(func(m *SendMessage) { m.ReplyTo = 999999999999999 })},
		{"send-message", sending(`,"idempotency_key":"any text"`), with(func(m *SendMessage) { m.Key = "any text" })},
		{"send-message", sending(`,"idempotency_key":"` + strings.Repeat("k", 200) + `"`), with(func(m *SendMessage) { m.Key = strings.Repeat("k", 200) })},
		{
			"send-message", `{"to_actor":"broadcast","topic":"broadcast.all","payload":{"idempotency_key":"inside", "n":1.0}}`,
			&SendMessage{To: mail.Broadcast, Topic: mail.TopicBroadcast, Payload: Raw(`{"idempotency_key":"inside", "n":1.0}`)},
		},
		{"poll-messages", `{}`, &PollMessages{}},
		{"poll-messages", `{"cursor":null,"limit":null,"actor":null}`, &PollMessages{}},
		{"poll-messages", `{"actor":"HO:h1","cursor":0,"limit":10000}`, &PollMessages{Actor: "HO:h1", Cursor: ptr(int64(0)), Limit: 10000}},
		{"poll-messages", `{"actor":"Governor","cursor":41}`, &PollMessages{Actor: mail.Governor, Cursor: ptr(int64(41))}},
		{"ack-messages", `{"seq":45}`, &AckMessages{Seq: 45}},
		{"ack-messages", `{"actor":"HO:h1","seq":0}`, &AckMessages{Actor: "HO:h1"}},
		{"heartbeat", `{}`, &Heartbeat{}},
		{"heartbeat", `{"actor":"W:1"}`, &Heartbeat{Actor: "W:1"}},
		{"list-actors", `{"x":1}`, &Nothing{}},
		{"list-topics", `{}`, &Nothing{}},
	} {
		body, wrong := readAs(t, test.operation, test.payload)
		require.Empty(t, wrong, "%s %s", test.operation, test.payload)
		require.Equal(t, test.want, body, "%s %s", test.operation, test.payload)
	}
}

// Rows: E-11, E-12, E-13, E-14, E-15, E-16, E-69, E-70, E-71, E-73, E-75, T-36.
func TestMailIsRefused(t *testing.T) {
	const number = "/payload/reply_to: reply_to must be the number of a message, or null"
	const whole = "/payload/reply_to: reply_to must be a whole number from 1 to 9007199254740991"
	for _, test := range []struct{ operation, payload, want string }{
		{"send-message", `{"topic":"t","payload":{}}`, "/payload/to_actor: to_actor is missing"},
		{"send-message", `{"to_actor":"??","topic":"t","payload":{}}`, `/payload/to_actor: to_actor must be broadcast, GO, HO:host, PO:project, IO:person, W:id or S:kind:id, not "??"`},
		{"send-message", `{"to_actor":" ","topic":"t","payload":{}}`, "/payload/to_actor: to_actor must not be empty"},
		{"send-message", sending(`,"to_actor":"GO"`), "/payload/to_actor: to_actor stands twice"},
		{"send-message", sending(`,"from_actor":7`), "/payload/from_actor: from_actor must be a string"},
		{"send-message", `{"to_actor":"GO","payload":{}}`, "/payload/topic: topic is missing"},
		{"send-message", `{"to_actor":"GO","topic":"","payload":{}}`, "/payload/topic: topic must not be empty"},
		{"send-message", `{"to_actor":"GO","topic":"a..b","payload":{}}`, `/payload/topic: topic must be words with dots between them, such as build.finished, not "a..b"`},
		{"send-message", `{"to_actor":"GO","topic":"t"}`, "/payload/payload: payload is missing: it must be an object"},
		{"send-message", `{"to_actor":"GO","topic":"t","payload":null}`, "/payload/payload: payload is missing: it must be an object"},
		{"send-message", `{"to_actor":"GO","topic":"t","payload":[]}`, "/payload/payload: payload must be an object"},
		{"send-message", `{"to_actor":"GO","topic":"t","payload":"{}"}`, "/payload/payload: payload must be an object"},
		{"send-message", sending(`,"reply_to":"abc"`), number},
		{"send-message", sending(`,"reply_to":""`), number},
		{"send-message", sending(`,"reply_to":"null"`), number},
		{"send-message", sending(`,"reply_to":"+42"`), number},
		{"send-message", sending(`,"reply_to":"042"`), number},
		{"send-message", sending(`,"reply_to":"1.5"`), number},
		{"send-message", sending(`,"reply_to":"1000000000000000"`), number},
		{"send-message", sending(`,"reply_to":1.5`), whole},
		{"send-message", sending(`,"reply_to":0`), whole},
		{"send-message", sending(`,"reply_to":-1`), whole},
		{"send-message", sending(`,"reply_to":9007199254740992`), whole},
		{"send-message", sending(`,"reply_to":[42]`), "/payload/reply_to: reply_to must be a number"},
		{"send-message", sending(`,"idempotency_key":""`), "/payload/idempotency_key: idempotency_key must not be empty; leave it out, or say null"},
		{"send-message", sending(`,"idempotency_key":7`), "/payload/idempotency_key: idempotency_key must be a string"},
		{"send-message", sending(`,"idempotency_key":"` + strings.Repeat("k", 201) + `"`), "/payload/idempotency_key: idempotency_key must not be longer than 200 bytes"},
		{"send-message", sending(`,"idempotency_key":"a\u0000b"`), "/payload/idempotency_key: idempotency_key must not have control characters in it"},
		{"send-message", sending(`,"idempotency_key":"\u0085"`), "/payload/idempotency_key: idempotency_key must not have control characters in it"},
		{"poll-messages", `{"actor":"HO:"}`, `/payload/actor: actor must have visible text after each colon: "HO:"`},
		{"poll-messages", `{"cursor":-1}`, "/payload/cursor: cursor must be a whole number from 0 to 9007199254740991"},
		{"poll-messages", `{"limit":0}`, "/payload/limit: limit must be a whole number from 1 to 10000"},
		{"poll-messages", `{"limit":10001}`, "/payload/limit: limit must be a whole number from 1 to 10000"},
		{"ack-messages", `{}`, "/payload/seq: seq is missing"},
		{"ack-messages", `{"seq":null}`, "/payload/seq: seq is missing"},
		{"ack-messages", `{"seq":"45"}`, "/payload/seq: seq must be a number"},
		{"heartbeat", `{"actor":"Bus"}`, `/payload/actor: actor must not be "Bus", which is reserved for the orchestrator`},
	} {
		_, wrong := readAs(t, test.operation, test.payload)
		require.Equal(t, test.want, wrong, "%s %s", test.operation, test.payload)
	}
}

// Rows: E-14.
func TestMailThatIsTooLarge(t *testing.T) {
	received := func(size int) []byte {
		return []byte(`{"to_actor":"GO","topic":"t","payload":{"x":"` + strings.Repeat("x", size-len(`{"x":""}`)) + `"}}`)
	}
	_, err := ReadRequest("send-message", received(mail.MaxPayload), 64)
	require.Nil(t, err)
	_, err = ReadRequest("send-message", received(mail.MaxPayload+1), 64)
	require.Equal(t, CodeTooLarge, err.Code)
	require.Equal(t, "/payload/payload", err.Details["pointer"])
}

// Rows: E-13, E-41.
func TestTopics(t *testing.T) {
	standard := []string{
		mail.TopicTaskAssigned, mail.TopicTaskCompleted, mail.TopicTaskFailed, mail.TopicTaskProgress, mail.TopicAgentSpawned, mail.TopicAgentTerminated,
		mail.TopicAlertFired, mail.TopicAlertResolved, mail.TopicHeartbeat, mail.TopicDirect, mail.TopicBroadcast,
	}
	require.Equal(t, []string{
		"task.assigned", "task.completed", "task.failed", "task.progress", "agent.spawned", "agent.terminated",
		"alert.fired", "alert.resolved", "heartbeat", "message.direct", "broadcast.all",
	}, standard)
	for _, good := range append(standard, mail.TopicUnknown, "a", "a.b.c", "Größe.neu", "a-b_c/d:e", strings.Repeat("x", 200)) {
		require.Empty(t, mail.CheckTopic(good), good)
	}
	for _, bad := range []string{
		"", ".", "a..b", ".a", "a.", "a b", "a.\tb", "a.b\n", "a.*", "a.\x00", "a.\x7f", "a.\u00a0", "a.\u202eb", "a.\ufeff", strings.Repeat("x", 201),
	} {
		require.NotEmpty(t, mail.CheckTopic(bad), "%q", bad)
	}
}

// Rows: E-12, E-69, E-70, E-71, E-72, E-73, E-74, E-75.
func TestActors(t *testing.T) {
	for _, good := range []string{
		"GO", "HO:hetzner-1", "PO:paperclip", "IO:shai", "IO:größe", "IO:a/b.c\"'", "W:7b1c90de-52f4-4c1e-9a60-3d5e8f0a2100", "W:a3f9...", "S:db:1",
		"W:" + strings.Repeat("x", 198),
	} {
		require.Empty(t, mail.CheckActor(good), good)
		require.Empty(t, mail.CheckAddressee(good), good)
	}
	for _, bad := range []string{
		"", "go", "GO:", "GO:x", "G", "HO", "HO:", "PO:", "IO:", "W", "W:", "S", "S:", "S:db", "S:db:", "S::1", "S:a:b:c", "HO:a:b", "W:a:b",
		"X:1", ":", ":x", "HO: ", "HO:a b", "HO:a\n", "HO:\x00", "HO:\u00a0", "HO:\u00ad", "HO:\u202ex", "IO:\u200b", " GO", "GO ", "??", "ho:x", "broadcasts",
		"W:" + strings.Repeat("x", 199),
	} {
		require.NotEmpty(t, mail.CheckActor(bad), "%q", bad)
		require.NotEmpty(t, mail.CheckAddressee(bad), "%q", bad)
	}
	for _, reserved := range []string{mail.Broadcast, mail.Bus, mail.Governor} {
		require.NotEmpty(t, mail.CheckActor(reserved), "nobody comes as %s", reserved)
		require.Empty(t, mail.CheckAddressee(reserved), "everybody writes to %s", reserved)
	}
	require.Contains(t, mail.CheckAddressee("??"), "must be broadcast, GO, HO:host")
}

// TestActorsOfRuns checks that the actor of a worker or specialist becomes another id in each
// run.
//
// Rows: E-72, E-73, E-74.
func TestActorsOfRuns(t *testing.T) {
	const run = "7b1c90de-52f4-4c1e-9a60-3d5e8f0a2100"
	for actor, want := range map[string]string{
		"W": "W:" + run, "S:db": "S:db:" + run,
		"W:1": "W:1", "S:db:1": "S:db:1", "GO": "GO", "HO:attic": "HO:attic", "PO:shop": "PO:shop", "IO:ann": "IO:ann",
		"S:" + strings.Repeat("x", 161): "S:" + strings.Repeat("x", 161) + ":" + run,
	} {
		got := mail.ActorOfRun(actor, run)
		require.Equal(t, want, got)
		require.Equal(t, got != actor, mail.PerRun(actor))
		require.Empty(t, mail.CheckActor(got), "whatever an agent may have, it can send with it")
	}
	for _, bad := range []string{"", "S", "S:", "HO", "HO:", "W:", "S:db:", "Bus", "x", "S:" + strings.Repeat("x", 162)} {
		require.NotEmpty(t, mail.CheckActor(mail.ActorOfRun(bad, run)), bad)
	}
}
