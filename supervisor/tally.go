package supervisor

import (
	"errors"
	"sync"

	"orchestrator/handlers"
	"orchestrator/wire"
)

// ErrTasksUndone is what Run returns when it ended by ExitWhenIdle, every agent
// was fine, and a task was not done.
var ErrTasksUndone = errors.New("not every task was done")

// tally counts what became of tasks in this life of the orchestrator, for those
// who want to leave when there is nothing left to do.
type tally struct {
	mu         sync.Mutex
	tasks      int               // that were there, or came
	undone     int               // that failed or were cancelled
	submitters map[string]string // agents that have submitted a task, and in which run
	runs       map[string]string // of agents
}

// count takes an event in. It says whether the work may have ended by it.
func (y *tally) count(n *news) (ended bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	switch n.record.Kind {
	case wire.EventStarted:
		if y.runs == nil {
			y.runs, y.submitters = make(map[string]string), make(map[string]string)
		}
		y.runs[n.Event().Agent] = n.Event().Run
		return y.submitters[n.Event().Agent] == "" // it may be the last that now only waits
	case wire.EventTaskCreated:
		y.tasks++
		submitter := handlers.About(&n.record)
		if run := y.runs[submitter]; run != "" {
			y.submitters[submitter] = run
		}
	case wire.EventTaskFailed, wire.EventTaskCancelled:
		y.undone++
		return true
	case wire.EventTaskDone, wire.EventQuestionAnswered, wire.EventQuestionExpired:
		return true
	}
	return false
}

// waits says whether an agent that runs only waits for work: those that have
// submitted some may have more to say.
func (y *tally) waits(agent, run string) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.submitters[agent] != run
}

func (y *tally) some() bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.tasks > 0
}

func (y *tally) allDone() bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.undone == 0
}

// workDone says whether all work has ended: there was some, or nobody is left who
// would bring any, none is open that could still be done, nobody asks, and the agents that still run only wait for more.
func (s *Supervisor) workDone() bool {
	if !s.options.ExitWhenIdle || !s.tally.some() && !s.planless() {
		return false
	}
	open := 0
	s.dispatcher.look(func(state *handlers.State) {
		// Where everything waits for something else, it waits for what came to nothing.
		open = state.Open() - state.Counts().Blocked + state.Questions()
	})
	if open > 0 {
		return false
	}
	for _, a := range s.order {
		if a.wanted && (a.state != wire.StateRunning && a.state != wire.StateStalled || !s.tally.waits(a.Name, a.run)) {
			return false
		}
	}
	return true
}

// planless says whether there were agents that give tasks, as planners and the
// architects of sessions do, all of them have ended for good, and one gave up. Where
// all ended well, they may have said by other means what there is to do.
func (s *Supervisor) planless() bool {
	lost := false
	for _, a := range s.order {
		if a.Role != wire.RolePlanner && !s.designs(a.Name) {
			continue
		}
		if a.wanted || a.state != wire.StateFailed && a.state != wire.StateExited {
			return false
		}
		lost = lost || a.state == wire.StateFailed
	}
	return lost
}

// designs says whether an agent is the architect of a session of the configuration.
func (s *Supervisor) designs(agent string) bool {
	for i := range s.sessions {
		for _, m := range s.sessions[i].Members {
			if m.AgentID == agent && m.AgentType == wire.AgentArchitect {
				return true
			}
		}
	}
	return false
}

// undone says whether a task of this life was not done.
func (s *Supervisor) undone() bool {
	open := 0
	s.dispatcher.look(func(state *handlers.State) { open = state.Open() })
	return open > 0 || !s.tally.allDone()
}
