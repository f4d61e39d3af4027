package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
)

// TestRefusedMailInTheLog checks that the log names refused mail by its key, malformed or refused by a decision: its
// agent gets the same answer for both.
func TestRefusedMailInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, Options{Record: newLedger()})
		s.Note(&wire.AgentSet{Agents: []wire.Member{{ID: "a"}}})
		a := s.enter("a", stdin.Limits{Messages: 1000, Bytes: 1 << 20})
		var log []string
		a.complain = func(_, text string, _ int64) { log = append(log, text) }
		a.listen()
		a.says(
			`{"from_actor":"HO:other","to_actor":"HO:x","topic":"message.direct","payload":{},"idempotency_key":"k-1"}`,
			`{"from_actor":"HO:a","to_actor":7,"topic":"message.direct","payload":{},"idempotency_key":"k-2"}`,
			`{"from_actor":"HO:other","to_actor":"HO:x","topic":"message.direct","payload":{}}`,
		)
		a.End(time.Now())
		require.Len(t, log, 3)
		for i, key := range []string{`mail with the idempotency_key "k-2": `, `mail with the idempotency_key "k-1": `, "mail without an idempotency_key: "} {
			require.Contains(t, log[i], "refused "+key)
		}
		s.Close()
	})
}
