package main

import (
	"context"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNearest(t *testing.T) {
	verbs := []string{"status", "start", "stop", "restart", "down"}
	for wrong, want := range map[string]string{"stauts": "status", "strat": "start", "reboot": "", "dwon": "down", "x": "", "": ""} {
		require.Equal(t, want, nearest(wrong, verbs), wrong)
	}
}

// Columns stand under one another also where characters are two wide, none
// wide, or painted.
func TestTable(t *testing.T) {
	rows := [][]cell{
		{text("A"), figure("N"), text("z")},
		{{text: "写手", ink: paint(true).good}, figure("12"), text("")},
		{text("e\u0301a"), figure("7"), text("y")},
	}
	require.Equal(t, "A      N  z\n\x1b[32m写手\x1b[0m  12\ne\u0301a     7  y\n", table(rows))
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
		at, err := when("since", text, now)
		require.NoError(t, err)
		require.True(t, want.Equal(at), "%s: %s", text, at)
	}
	_, err := when("since", "soon", now)
	require.Equal(t, exitUsage, failureOf(err).exit)
}

func TestReadable(t *testing.T) {
	page := "# Title\n\nSome `code` and **weight**\nthat goes on.\n\n| A | B |\n|---|---|\n| `a \\| b` | long text here |\n\n- one\n  two\n- three\n\n```\n  kept   as is\n```\n"
	require.Equal(t, `TITLE

Some code and weight
that goes on.

  a | b
    B: long text
      here

- one two
- three

      kept   as is
`, readable(page, false, 20), "a table that is too wide is read row by row")
	require.Contains(t, readable(page, false, 60), "\n  A      B\n  a | b  long text here\n")
}

// The tests may run as root, whom no socket refuses.
func TestASocketOfSomebodyElse(t *testing.T) {
	d := testApp().doorOf(target{socket: "/s", subject: "shop"})
	f := failureOf(d.failed(context.Background(), &fs.PathError{Op: "dial", Path: "/s", Err: fs.ErrPermission}))
	require.Equal(t, exitDenied, f.exit)
}
