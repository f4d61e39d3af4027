package serve

import (
	"context"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// An exitWatch records the fate of the one agent of run. It follows only events, so slow
// readers of the output do not delay it.
type exitWatch struct {
	name     string
	follower *output.Follower
	started  chan struct{} // closed when the agent runs
	heard    chan struct{} // closed when hear has ended

	// Valid when heard is closed:
	ran     bool
	exit    int   // exit code of the last run
	refused error // why the agent could not be started
}

func newFate(name string, follower *output.Follower) *exitWatch {
	return &exitWatch{name: name, follower: follower, started: make(chan struct{}), heard: make(chan struct{})}
}

// hear follows the events until the team has ended.
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
	case events.AgentStarted:
		if !f.ran { // it may be started again by an operator
			f.ran = true
			close(f.started)
		}
	case events.AgentExited:
		f.exit = cli.ExitNo
		if e.Figures.ExitCode != nil {
			f.exit = *e.Figures.ExitCode
		} else if sig := signalOf(e.Figures.Signal); sig != 0 {
			f.exit = 128 + sig
		}
	case events.AgentGaveUp:
		if !f.ran {
			f.refused = &cli.Failure{Exit: *e.Figures.ExitCode, Code: cli.CodeFailed, Message: "cannot run " + f.name + ": " + e.Text}
		}
	}
}

// signalOf returns the number of a signal that an event names. Signals without a name, such
// as real-time signals, are named by number.
func signalOf(name string) int {
	if number, ok := strings.CutPrefix(name, "signal "); ok {
		n, _ := strconv.Atoi(number)
		return n
	}
	return int(unix.SignalNum(name))
}
