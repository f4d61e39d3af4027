package supervisor

import (
	"golang.org/x/sync/errgroup"

	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/output"
	"orchestrator/wire/control"
)

// A lifecycle starts, watches, restarts and stops the agents. Only the goroutine of Run uses it.
type lifecycle struct {
	options    *Options
	dispatcher *dispatch.Dispatcher
	audience   *output.Feed
	post       func(turn func())
	done       <-chan struct{} // closed when Run has ended
	starts     errgroup.Group  // the goroutines that create processes

	agents    map[string]*agent
	actors    map[string]*agent // the agent that holds each named actor
	order     []*agent
	sessions  sessionSpecs
	deadlines deadlines
	storm     stormGuard
	stopping  *stopping // nil until the stop begins
	failed    bool      // agents had failed when the stop began
	broken    error     // why recording has failed for good
	restored  int64     // the number of the last record of an earlier life

	callers callers
	stops   orderedStops
	idle    idleness
}

// newLifecycle returns the lifecycle of a Supervisor, without agents and without a dispatcher.
func (s *Supervisor) newLifecycle() *lifecycle {
	l := &lifecycle{
		options: &s.options, audience: s.audience, post: s.post, done: s.done,
		agents: make(map[string]*agent), actors: make(map[string]*agent), sessions: s.options.Sessions,
	}
	l.callers = callers{life: l, waiting: make(map[*agent]bool)}
	l.stops = orderedStops{life: l}
	l.idle = idleness{life: l}
	return l
}

func (a *agent) set(state control.State, reason string) { a.state, a.reason = state, reason }
