package supervisor

import (
	"errors"
	"sync"
	"time"

	"orchestrator/handlers"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
)

// ErrTasksUndone is what Run returns when it ended by ExitWhenIdle, every agent
// was fine, and a task was not done.
var ErrTasksUndone = errors.New("not every task was done")

// idleCounter counts what became of tasks in this life of the orchestrator, for those
// who want to leave when there is nothing left to do.
type idleCounter struct {
	mu         sync.Mutex
	tasks      int             // that were there, or came
	undone     int             // that failed or were cancelled
	submitters map[string]bool // agents that have submitted a task, in any run
	workers    map[string]bool // agents that have been given one
	last       time.Time       // of the latest event of a task
}

// linger is how long an agent that submits tasks, and neither is a planner nor has been
// given one, may take to submit the next.
const linger = 10 * time.Second

// count takes an event in. It reports whether the work may have ended by it.
func (y *idleCounter) count(n *output.Notice) (ended bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.workers == nil {
		y.workers, y.submitters = make(map[string]bool), make(map[string]bool)
	}
	switch n.Record.Kind {
	case wire.EventStarted:
		return true // it may be the last that now only waits
	case wire.EventTaskAssigned:
		y.workers[n.Event().Agent] = true
	case wire.EventTaskCreated:
		y.tasks++
		y.last = time.Now()
		if submitter := handlers.About(&n.Record); submitter != "" {
			y.submitters[submitter] = true
		}
	case wire.EventTaskFailed, wire.EventTaskCancelled:
		y.undone++
		y.last = time.Now()
		return true
	case wire.EventTaskDone:
		y.last = time.Now()
		return true
	case wire.EventQuestionAnswered, wire.EventQuestionExpired:
		return true
	}
	return false
}

// lingers returns for how long an agent may still submit a task of its own accord; 0: it
// only waits for work. What an agent submits that has been given tasks is a part of them.
func (y *idleCounter) lingers(agent string) time.Duration {
	y.mu.Lock()
	defer y.mu.Unlock()
	if !y.submitters[agent] || y.workers[agent] {
		return 0
	}
	return max(0, time.Until(y.last.Add(linger)))
}

// awaited is an agent that ExitWhenIdle waits for although no task is open.
type awaited struct {
	agent *agent
	why   string
}

// awaits returns which agents may still bring work, and for how long they may: 0 where
// only an event will tell.
func (s *Supervisor) awaits() (all []awaited, again time.Duration) {
	for _, a := range s.order {
		why := ""
		switch left := s.tally.lingers(a.Name); {
		case !a.wanted, a.state == wire.StateWaiting && s.hopeless(a):
		case a.state != wire.StateRunning && a.state != wire.StateStalled:
			why = "is in the state " + string(a.state)
		case a.Role == wire.RolePlanner:
			why = "is a planner and still runs"
		case s.designs(a.Name):
			why = "is the architect of a session and still runs"
		case left > 0:
			why, again = "has submitted tasks and may submit more", max(again, left)
		}
		if why != "" {
			all = append(all, awaited{a, why})
		}
	}
	return all, again
}

func (y *idleCounter) some() bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.tasks > 0
}

func (y *idleCounter) allDone() bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.undone == 0
}

// workDone reports whether all work has ended: there was some, or no agent is left that
// would bring any, none is open that could still be done, no question waits, and the agents that
// still run only wait for more.
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
	all, again := s.awaits()
	if again > 0 && s.lingering == nil {
		s.lingering = s.deadlines.add(time.Now().Add(again), func() {
			s.lingering = nil
			s.checkIdle()
		})
	}
	return len(all) == 0
}

// planless reports whether there were agents that give tasks, as planners and the
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

// designs reports whether an agent is the architect of a session of the configuration.
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

// undone reports whether a task of this life was not done.
func (s *Supervisor) undone() bool {
	open := 0
	s.dispatcher.look(func(state *handlers.State) { open = state.Open() })
	return open > 0 || !s.tally.allDone()
}
