package serve

import (
	"context"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
)

// exitWatch is what becomes of the one agent of run. It has ears of its own, which
// hear no lines: however slowly those are read, this is known.
type exitWatch struct {
	name     string
	follower *output.Follower
	started  chan struct{} // closed when it runs
	heard    chan struct{} // closed when all is known

	// When all is known:
	ran     bool
	exit    int   // of its last run
	refused error // why it could not be started
}

func newFate(name string, follower *output.Follower) *exitWatch {
	return &exitWatch{name: name, follower: follower, started: make(chan struct{}), heard: make(chan struct{})}
}

// hear listens until the team has ended.
func (f *exitWatch) hear() {
	defer close(f.heard)
	var spare output.Backlog
	for f.follower.Next(context.Background(), &spare, func(l output.Line) {
		if l.Event != nil {
			f.event(l.Event)
		}
	}) {
	}
}

func (f *exitWatch) event(e *wire.Event) {
	switch e.Kind {
	case wire.EventStarted:
		if !f.ran { // it may be started again, by hand
			f.ran = true
			close(f.started)
		}
	case wire.EventExited:
		f.exit = cli.ExitNo
		if e.Figures.ExitCode != nil {
			f.exit = *e.Figures.ExitCode
		} else if sig := signalOf(e.Figures.Signal); sig != 0 {
			f.exit = 128 + sig
		}
	case wire.EventGaveUp:
		if !f.ran {
			f.refused = &cli.Failure{Exit: *e.Figures.ExitCode, Code: cli.CodeFailed, Message: "cannot run " + f.name + ": " + e.Text}
		}
	}
}

// signalOf is the number of a signal as events name it: by its number where it
// has no name, as those of the real-time range.
func signalOf(name string) int {
	if number, ok := strings.CutPrefix(name, "signal "); ok {
		n, _ := strconv.Atoi(number)
		return n
	}
	return int(unix.SignalNum(name))
}
