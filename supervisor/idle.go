package supervisor

import (
	"errors"
	"sync"
	"time"

	"orchestrator/handlers"
	"orchestrator/handlers/state"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// ErrTasksUndone is returned by Run when ExitWhenIdle ended it and every agent was fine, but a
// task was not done.
var ErrTasksUndone = errors.New("not every task was done")

// ErrUnmerged is returned by Run when ExitWhenIdle ended it and every task was done, but the branch of one was not
// merged.
var ErrUnmerged = errors.New("not every branch was merged")

// An idleCounter counts the results of tasks in this run of the orchestrator. ExitWhenIdle uses
// it to find the end of the work.
type idleCounter struct {
	mu         sync.Mutex
	tasks      int             // tasks that were open at the start or were created
	undone     int             // tasks that failed or were cancelled
	submitters map[string]bool // agents that have submitted a task, in any run
	workers    map[string]bool // agents that were assigned a task
	last       time.Time       // time of the latest task event
}

// idleness finds the end of all work.
type idleness struct {
	life      *lifecycle
	tally     idleCounter
	over      bool      // the end of all work was reported
	lingering *deadline // the next check whether the work has ended
}

// linger is how long ExitWhenIdle waits for the next task of an agent that submits tasks. It
// does not apply to planners, or to agents that were assigned a task.
const linger = 10 * time.Second

// count adds an event. It reports whether the event may have ended the work.
func (i *idleCounter) count(n *output.Notice) (ended bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.workers == nil {
		i.workers, i.submitters = make(map[string]bool), make(map[string]bool)
	}
	switch n.Record.Kind {
	case events.AgentStarted:
		return true // it may be the last agent to become idle
	case events.TaskAssigned:
		i.workers[n.Event().Agent] = true
	case events.TaskCreated:
		i.tasks++
		i.last = time.Now()
		if submitter := state.About(&n.Record); submitter != "" {
			i.submitters[submitter] = true
		}
	case events.TaskFailed, events.TaskCancelled:
		i.undone++
		i.last = time.Now()
		return true
	case events.TaskReopened:
		i.undone = max(0, i.undone-1)
	case events.TaskDone:
		i.last = time.Now()
		return true
	case events.TaskMerged, events.TaskUnmerged, events.TaskUnchanged:
		return true
	case events.QuestionAnswered, events.QuestionExpired:
		return true
	}
	return false
}

// lingers returns how long an agent may still submit a task by itself, or 0 if it only waits
// for work. Tasks of an agent that was assigned tasks count as parts of those.
func (i *idleCounter) lingers(agent string) time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.submitters[agent] || i.workers[agent] {
		return 0
	}
	return max(0, time.Until(i.last.Add(linger)))
}

// awaited is an agent that ExitWhenIdle waits for although no task is open.
type awaited struct {
	agent *agent
	why   string
}

// awaits returns the agents that may still submit work. again is the time after which agents
// that only may submit more no longer count, or 0 if only an event can change the result.
func (i *idleness) awaits() (all []awaited, again time.Duration) {
	for _, a := range i.life.order {
		why := ""
		switch left := i.tally.lingers(a.Name); {
		case !a.wanted, a.state == control.StateWaiting && i.life.hopeless(a):
		case a.state != control.StateRunning && a.state != control.StateStalled:
			why = "is in the state " + string(a.state)
		case a.Role == wire.RolePlanner:
			why = "is a planner and still runs"
		case i.life.sessions.hasArchitect(a.Name):
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

func (i *idleCounter) some() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.tasks > 0
}

func (i *idleCounter) allDone() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.undone == 0
}

// workDone reports whether all work has ended. There must have been a task, or no agent must be
// left that would submit one. No task that can still be done is open, no question waits, and
// the running agents only wait for work.
func (i *idleness) workDone() bool {
	if !i.life.options.ExitWhenIdle || !i.tally.some() && !i.planless() {
		return false
	}
	open := 0
	i.life.dispatcher.Look(func(state *handlers.State) {
		// Blocked tasks do not count: only failed tasks are left for them to wait for.
		open = state.Open() - state.Counts().Blocked + state.QuestionCount()
		if open == 0 {
			open, _ = state.Branches() // the queue will merge them, and then unblock other tasks
		}
	})
	if open > 0 || i.life.options.Workshop != nil && i.life.options.Workshop.Merging() {
		return false
	}
	all, again := i.awaits()
	if again > 0 && i.lingering == nil {
		i.lingering = i.life.deadlines.add(time.Now().Add(again), func() {
			i.lingering = nil
			i.check()
		})
	}
	return len(all) == 0
}

// planless reports whether all planners and session architects have ended for good, and at
// least one of them gave up. If all ended well, they may have submitted the work in another
// way.
func (i *idleness) planless() bool {
	lost := false
	for _, a := range i.life.order {
		if a.Role != wire.RolePlanner && !i.life.sessions.hasArchitect(a.Name) {
			continue
		}
		if a.wanted || a.state != control.StateFailed && a.state != control.StateExited {
			return false
		}
		lost = lost || a.state == control.StateFailed
	}
	return lost
}

// undone reports whether a task of this run of the orchestrator was not done.
func (i *idleness) undone() bool {
	return i.life.open() > 0 || !i.tally.allDone()
}

// unmerged reports whether the merge queue has not merged the branch of a task.
func (i *idleness) unmerged() (left bool) {
	i.life.dispatcher.Look(func(state *handlers.State) {
		waiting, refused := state.Branches()
		left = waiting+refused > 0
	})
	return left
}

// check detects that every agent has ended for good. An agent that waits for one that will
// not run counts as ended.
func (i *idleness) check() {
	if i.life.stopping != nil || i.over {
		return
	}
	if i.workDone() {
		i.over = true
		text := "all tasks have ended"
		if i.life.open() > 0 {
			text = "no remaining task can be done"
		} else if !i.tally.some() {
			text = "no agent is left to submit tasks"
		}
		i.life.event(nil, wire.Event{Kind: events.OrchestratorIdle, Text: text})
		i.life.stop(text)
		return
	}
	for _, a := range i.life.order {
		if a.wanted && (a.state != control.StateWaiting || !i.life.hopeless(a)) {
			return
		}
	}
	i.over = true
	i.life.event(nil, wire.Event{Kind: events.OrchestratorIdle, Text: "all agents have ended"})
	if i.life.options.ExitWhenIdle {
		i.life.stop("all agents have ended")
	}
}
