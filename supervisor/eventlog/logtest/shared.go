package logtest

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/eventlog"
)

// RunShared checks that logs which several hubs share pass the rules. join returns an engine of the log with
// a name. A rule that opens a log several times at once opens it for several hubs, which are numbered from 0.
func RunShared(t *testing.T, name string, join func(log string, hub int) eventlog.Engine) {
	folder, used := t.TempDir(), make(map[string]bool) // used: the copies of logs that are open
	Run(t, Subject{Name: name, Remembers: true, KeepsAll: true, Open: func(t *testing.T) Log {
		log, hub := strings.NewReplacer("/", "-", ".", "-").Replace(t.Name()), 0
		for used[fmt.Sprint(log, hub)] {
			hub++
		}
		file := fmt.Sprint(log, hub)
		used[file] = true
		l, err := eventlog.OpenShared(t.Context(), filepath.Join(folder, file), join(log, hub))
		require.NoError(t, err)
		Follow(t, l)
		t.Cleanup(func() { require.NoError(t, l.Close()) })
		return sharedLog{l, func() { delete(used, file) }}
	}})
}

// Follow has a log read the appends of other hubs. It waits for servers that choose a leader.
func Follow(t *testing.T, l *eventlog.Shared) {
	t.Helper()
	err := l.Follow(t.Context(), nil)
	for errors.Is(err, eventlog.ErrUnanswered) {
		err = l.Follow(t.Context(), nil)
	}
	require.NoError(t, err)
}

// A sharedLog is a log of a hub. Its copy may be used again after Close.
type sharedLog struct {
	*eventlog.Shared
	free func()
}

// Close closes the log.
func (l sharedLog) Close() error {
	l.free()
	return l.Shared.Close()
}
