package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
