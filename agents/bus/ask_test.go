package bus_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"orchestrator/agents/bus"
	"orchestrator/wire"

	"github.com/stretchr/testify/require"
)

// Rows: E-64.
func TestPlainCalls(t *testing.T) {
	visiting(t, func(t *visit) {
		for range 3 {
			t.has("task.assigned", delicate)
		}
		mail, err := t.client.Poll(t.Context(), wire.PollMessages{})
		require.NoError(t, err)
		require.Equal(t, t.letters("HO:h1", 0), mail)
		again, err := t.client.Poll(t.Context(), wire.PollMessages{})
		require.NoError(t, err)
		require.Equal(t, mail, again)

		acked, err := t.client.Ack(t.Context(), 20)
		require.NoError(t, err)
		require.Equal(t, wire.Acked{Actor: "HO:h1", Cursor: 20}, acked)
		mail, err = t.client.Poll(t.Context(), wire.PollMessages{})
		require.NoError(t, err)
		require.Len(t, mail, 1)
		var all int64
		mail, err = t.client.Poll(t.Context(), wire.PollMessages{Cursor: &all, Limit: 2})
		require.NoError(t, err)
		require.Equal(t, again[:2], mail)
		mail, err = t.client.Poll(t.Context(), wire.PollMessages{Actor: "broadcast"})
		require.NoError(t, err)
		require.Empty(t, mail)

		beat, err := t.client.Heartbeat(t.Context())
		require.NoError(t, err)
		require.Equal(t, wire.Beat{Actor: "HO:h1", LastSeen: "2000-01-01T00:00:00.000Z"}, beat)
	})
}

func TestPlainCallsAreMadeOnce(t *testing.T) {
	visiting(t, func(t *visit) {
		t.instead(refusing("", http.StatusServiceUnavailable))
		_, err := t.client.Poll(t.Context(), wire.PollMessages{})
		require.EqualError(t, err, "/api/bus/poll: not now (A_CODE, HTTP 503)")
		_, err = t.client.Ack(t.Context(), 7)
		require.EqualError(t, err, "/api/bus/ack: not now (A_CODE, HTTP 503)")
		_, err = t.client.Heartbeat(t.Context())
		require.EqualError(t, err, "/api/bus/heartbeat: not now (A_CODE, HTTP 503)")
		require.Equal(t, []string{"0s poll", "0s ack 7", "0s heartbeat"}, t.told(""))

		t.instead(silent)
		_, err = t.client.Heartbeat(t.Context())
		require.EqualError(t, err, "/api/bus/heartbeat: the bus cannot be reached at http://localhost: there was no answer for 30s")
		why := errors.New("lost interest")
		ctx, giveUp := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer giveUp()
		_, err = t.client.Heartbeat(ctx)
		require.ErrorIs(t, err, why)
	})
}

// Rows: E-65.
func TestHeartbeats(t *testing.T) {
	visiting(t, func(t *visit) {
		t.receiving(3*time.Minute+time.Second, nil)
		require.Equal(t, []string{"0s heartbeat", "1m0s heartbeat", "2m0s heartbeat", "3m0s heartbeat"}, t.told("heartbeat"))
	})
	visiting(t, func(t *visit) {
		t.client.BeatEvery = 10 * time.Second
		t.instead(refusing("heartbeat", http.StatusServiceUnavailable))
		ctx, stop := context.WithTimeout(t.Context(), 15*time.Second)
		defer stop()
		require.ErrorIs(t, t.client.Beat(ctx), context.DeadlineExceeded)
		require.Equal(t, []string{
			"0s heartbeat", "0s trouble: /api/bus/heartbeat: not now (A_CODE, HTTP 503)",
			"10s heartbeat", "10s trouble: /api/bus/heartbeat: not now (A_CODE, HTTP 503)",
		}, t.told(""))
	})
}

// TestHeartbeatsThatAreNotWanted checks that mail arrives although the bus refuses heartbeats.
func TestHeartbeatsThatAreNotWanted(t *testing.T) {
	visiting(t, func(t *visit) {
		t.has("task.assigned", `{}`)
		t.instead(refusing("heartbeat", http.StatusForbidden))
		t.receiving(3*time.Minute, bus.Handlers{"task.assigned": t.noting(nil)})
		require.EqualValues(t, 10, t.acked)
		require.Equal(t, []string{"0s heartbeat", "0s trouble: there are no more heartbeats: /api/bus/heartbeat: not now (A_CODE, HTTP 403)"},
			t.without("poll", "ack", "handled"))
	})
}
