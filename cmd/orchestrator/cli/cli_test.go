package cli

import (
	"context"
	"io/fs"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/client"
	"orchestrator/supervisor/api"
)

// A client does not talk to an orchestrator of another user.
func TestStrangerIsDenied(t *testing.T) {
	a := New(Env{})
	d := a.NewClient(client.Target{Socket: "/tmp/s"})
	f := FailureOf(d.Failed(t.Context(), &url.Error{Op: "Get", Err: &api.StrangerError{UID: 1001}}))
	require.Equal(t, ExitDenied, f.Exit)
	require.Contains(t, f.Message, "/tmp/s belongs to another user (1001)")
}

// The error is made here, since the tests may run as root, which can connect to every socket.
func TestASocketOfSomebodyElse(t *testing.T) {
	d := New(Env{}).NewClient(client.Target{Socket: "/s", Subject: "shop"})
	f := FailureOf(d.Failed(context.Background(), &fs.PathError{Op: "dial", Path: "/s", Err: fs.ErrPermission}))
	require.Equal(t, ExitDenied, f.Exit)
}

func TestNearest(t *testing.T) {
	verbs := []string{"status", "start", "stop", "restart", "down"}
	for wrong, want := range map[string]string{"stauts": "status", "strat": "start", "reboot": "", "dwon": "down", "x": "", "": ""} {
		require.Equal(t, want, Nearest(wrong, verbs), wrong)
	}
}

func TestWhen(t *testing.T) {
	now := time.Date(2026, 11, 20, 15, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"10m":                  now.Add(-10 * time.Minute),
		"14:33":                time.Date(2026, 11, 20, 14, 33, 0, 0, time.UTC),
		"14:33:07":             time.Date(2026, 11, 20, 14, 33, 7, 0, time.UTC),
		"2026-11-19":           time.Date(2026, 11, 19, 0, 0, 0, 0, time.UTC),
		"2026-11-19 14:33":     time.Date(2026, 11, 19, 14, 33, 0, 0, time.UTC),
		"2026-11-19T14:33:00Z": time.Date(2026, 11, 19, 14, 33, 0, 0, time.UTC),
	} {
		at, err := ParseTime("since", text, now)
		require.NoError(t, err)
		require.True(t, want.Equal(at), "%s: %s", text, at)
	}
	_, err := ParseTime("since", "soon", now)
	require.Equal(t, ExitUsage, FailureOf(err).Exit)
}
