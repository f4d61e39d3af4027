package eventlog_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/eventlog"
	"orchestrator/supervisor/eventlog/logtest"
)

// TestConformance checks each implementation against the rules. With 200 bytes an entry, a batch of
// more than a few facts has parts.
func TestConformance(t *testing.T) {
	t.Parallel()
	memory := func(*testing.T) logtest.Log { return eventlog.NewMemory() }
	linked := func(o eventlog.Options) eventlog.Options { return o }
	for _, subject := range []logtest.Subject{
		{Name: "memory", Open: memory},
		{Name: "ncruces", Remembers: true, Open: inFile(t, linked)},
		{Name: "modernc", Remembers: true, Open: inFile(t, eventlog.WithModernc)},
		{Name: "shared", Remembers: true, KeepsAll: true, Open: sharedBy(t, 1<<20)},
		{Name: "shared in parts", Remembers: true, KeepsAll: true, Open: sharedBy(t, 200)},
	} {
		logtest.Run(t, subject)
	}
}

// inFile returns a function that opens the log of a test in a file, durable, with the library that
// the options select.
func inFile(t *testing.T, with func(eventlog.Options) eventlog.Options) func(t *testing.T) logtest.Log {
	folder := t.TempDir()
	return func(t *testing.T) logtest.Log {
		path := filepath.Join(folder, strings.ReplaceAll(t.Name(), "/", "_"))
		l, err := eventlog.Open(t.Context(), with(eventlog.Options{Path: path, Durable: true}))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		return l
	}
}

// sharedBy returns a function that opens the log of a test for a hub that is not open. An entry has
// most bytes.
func sharedBy(t *testing.T, most int) func(t *testing.T) logtest.Log {
	teams := make(map[string]*team)
	return func(t *testing.T) logtest.Log {
		m := teams[t.Name()]
		if m == nil {
			m = newTeam(t, most)
			teams[t.Name()] = m
		}
		n := 0
		for m.open[fmt.Sprint("hub-", n)] {
			n++
		}
		return m.hub(t, fmt.Sprint("hub-", n))
	}
}
