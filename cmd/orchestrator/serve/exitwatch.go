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
func (ew *exitWatch) hear() {
	defer close(ew.heard)
	var spare output.Backlog
	for ew.follower.Next(context.Background(), &spare, func(l output.Line) {
		if l.Event != nil {
			ew.event(l.Event)
		}
	}) {
	}
}

func (ew *exitWatch) event(e *wire.Event) {
	switch e.Kind {
	case events.AgentStarted:
		if !ew.ran { // it may be started again by an operator
			ew.ran = true
			close(ew.started)
		}
	case events.AgentExited:
		ew.exit = cli.ExitNo
		if e.Figures.ExitCode != nil {
			ew.exit = *e.Figures.ExitCode
		} else if sig := signalOf(e.Figures.Signal); sig != 0 {
			ew.exit = 128 + sig
		}
	case events.AgentGaveUp:
		if !ew.ran {
			ew.refused = &cli.Failure{Exit: *e.Figures.ExitCode, Code: cli.CodeFailed, Message: "cannot run " + ew.name + ": " + e.Text}
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
