package dispatch

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
)

// TestBellsAreTakenDown checks that a bell is removed when its last listener ends, for any
// reason.
func TestBellsAreTakenDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := begin(t, Options{Record: newLedger()})
		d.Note(&wire.AgentSet{Agents: []wire.Member{{ID: "one", Actor: "PO:one"}}})
		one := d.enter("one", stdin.Limits{Messages: 100, Bytes: 1 << 20})
		one.listen()
		hung := func() int {
			b := &d.bells
			b.mu.Lock()
			defer b.mu.Unlock()
			return len(b.hung)
		}
		one.says(`{"type":"request:send-message","id":"1","timestamp":"` + noon + `","payload":{"to_actor":"PO:one","topic":"message.direct","payload":{}}}`)
		sent := 0
		require.NoError(t, d.Requests().Messages(t.Context(), MailQuery{}, func(wire.Mail) error { sent++; return nil }))
		require.Positive(t, sent)
		require.Zero(t, hung())
		gone := errors.New("gone")
		require.ErrorIs(t, d.Requests().Messages(t.Context(), MailQuery{Follow: true}, func(wire.Mail) error { return gone }), gone)
		require.Zero(t, hung())
		one.box.Drop()
		d.Close()
	})
}
