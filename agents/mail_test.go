package agents_test

import (
	"testing"

	"orchestrator/agents"
	"orchestrator/wire"

	"github.com/stretchr/testify/require"
)

// letter is a message as the bus stores it.
var letter = wire.Mail{
	Seq: 42, From: "GO", To: "HO:h1", Topic: "task.assigned", Payload: wire.Raw(delicate), ReplyTo: number(41),
	CreatedAt: "2026-03-30T09:15:00.123Z",
}

func number(n int64) *int64 { return &n }

// TestOperationsOnMail is TestOperations for mail.
func TestOperationsOnMail(t *testing.T) {
	received := wire.SendMessage{To: "GO", Topic: "task.completed", Payload: wire.Raw(delicate), ReplyTo: 42, Key: "k-1"}
	for operation, each := range map[string]exchange{
		"send-message": {
			ask:    func(t *talk) (any, error) { return t.agent.SendMessage(t.Context(), received) },
			want:   &received,
			answer: &wire.Sent{Mail: letter, Duplicate: true, Warnings: []string{"w"}},
			got:    wire.Sent{Mail: letter, Duplicate: true, Warnings: []string{"w"}},
		},
		"poll-messages": {
			ask: func(t *talk) (any, error) {
				return t.agent.PollMessages(t.Context(), wire.PollMessages{Cursor: number(0), Limit: 2})
			},
			want:   &wire.PollMessages{Cursor: number(0), Limit: 2},
			answer: &wire.MailList{Messages: []wire.Mail{letter}, Cursor: 41, More: true},
			got:    wire.MailList{Messages: []wire.Mail{letter}, Cursor: 41, More: true},
		},
		"ack-messages": {
			ask:    func(t *talk) (any, error) { return t.agent.AckMessages(t.Context(), 0) },
			want:   &wire.AckMessages{},
			answer: &wire.Acked{Actor: "HO:h1", Cursor: 45},
			got:    wire.Acked{Actor: "HO:h1", Cursor: 45},
		},
		"heartbeat": {
			ask:    func(t *talk) (any, error) { return t.agent.Heartbeat(t.Context()) },
			want:   &wire.Heartbeat{},
			answer: &wire.Beat{Actor: "HO:h1", LastSeen: "2026-03-30T09:15:00.123Z"},
			got:    wire.Beat{Actor: "HO:h1", LastSeen: "2026-03-30T09:15:00.123Z"},
		},
	} {
		each.require(t, operation)
	}
}

func TestMailAsANotice(t *testing.T) {
	converse(t, func(t *talk) {
		require.NoError(t, t.peer.Notify(agents.Message, letter))
		t.peer.End()
		for notice := range t.agent.News(t.Context()) {
			require.Equal(t, agents.Message, notice.Name)
			var received wire.Mail
			require.NoError(t, notice.Read(&received))
			require.Equal(t, letter, received)
		}
	})
}
