package eventlog_test

import (
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
	} {
		logtest.Run(t, subject)
	}
	for name, most := range map[string]int{"shared": 1 << 20, "shared in parts": 200} {
		logs := make(map[string]*logtest.Entries)
		logtest.RunShared(t, name, func(log string, _ int) eventlog.Engine {
			if logs[log] == nil {
				logs[log] = &logtest.Entries{Most: most}
			}
			return logs[log].Join()
		})
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
