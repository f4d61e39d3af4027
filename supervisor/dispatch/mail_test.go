package dispatch

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
)

// TestMailWaitersAreRemoved checks that a waiter for mail is removed when its reader ends, for any
// reason.
func TestMailWaitersAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := begin(t, Options{Record: newLedger()})
		d.Note(&wire.AgentSet{Agents: []wire.Member{{ID: "one", Actor: "PO:one"}}})
		one := d.enter("one", stdin.Limits{Messages: 100, Bytes: 1 << 20})
		one.listen()
		waiters := func() int {
			n := &d.notifier
			n.mu.Lock()
			defer n.mu.Unlock()
			return len(n.waiters)
		}
		one.says(`{"type":"request:send-message","id":"1","timestamp":"` + noon + `","payload":{"to_actor":"PO:one","topic":"message.direct","payload":{}}}`)
		sent := 0
		require.NoError(t, d.Requests().Messages(t.Context(), MailQuery{}, func(wire.Mail) error { sent++; return nil }))
		require.Positive(t, sent)
		require.Zero(t, waiters())
		gone := errors.New("gone")
		require.ErrorIs(t, d.Requests().Messages(t.Context(), MailQuery{Follow: true}, func(wire.Mail) error { return gone }), gone)
		require.Zero(t, waiters())
		one.box.Drop()
		d.Close()
	})
}
