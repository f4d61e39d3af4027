package handlers

import (
	"fmt"
	"slices"
	"strings"

	"orchestrator/handlers/match"
	"orchestrator/wire"
)

// poison is how many agents may die with a task in their hands.
const poison = 2

// requeueLost decides about a task whose agent has ended. If the agent was told to stop,
// or died with the orchestrator, the task is requeued, whatever on_exit is, and no
// attempt and no death is counted.
func (t *decision) requeueLost(k *task, a *agent, how string, code int, ordered bool) {
	switch {
	case k.way == inSession: // see bereaveWorks
	case k.way == assignedDelegated && !k.view.State.Final():
		t.loseHolder(k, a, how, ordered)
	case k.view.State.Final(): // it has come to nothing with another that the agent had
	case k.way != dispatched:
		t.retry(k, a, how, code, ordered)
	case k.view.State == wire.TaskAssigned:
		t.requeue(k, &taskRequeued{Why: "its agent ended before it was told", Blameless: true})
	case ordered:
		t.requeue(k, &taskRequeued{Why: t.stopWhy(how), Blameless: true})
	case a.OnExit == "fail", a.OnExit != "requeue" && code != 0:
		t.giveUp(k, fmt.Sprintf("agent %s ended while it had the task: %s", a.ID, how))
	case a.OnExit != "requeue":
		t.resume(k)
		t.complete(k, &succeeded, nil)
	case k.deaths+1 >= poison:
		t.giveUp(k, fmt.Sprintf("poison: %d agents ended with it in their hands, the last one with %s", k.deaths+1, how))
	default:
		t.requeue(k, &taskRequeued{Why: "its agent ended: " + how, Death: true})
	}
}

// stopWhy is why a task is requeued whose agent was stopped, or lost with the
// orchestrator.
func (t *decision) stopWhy(how string) string {
	if t.lost {
		return "its agent ended: " + how
	}
	return "its agent was stopped"
}

// retry decides about a task that was matched with an agent, or given to it by
// hand, and whose agent has ended or is not heard of any more. Only the
// agent says that such a task is done. What the agent had not begun waits for
// it, unless only agents that are online are given anything.
func (t *decision) retry(k *task, a *agent, how string, code int, ordered bool) {
	begun := k.view.State == wire.TaskRunning || k.view.State == wire.TaskNeedsHuman || k.view.State == wire.TaskInReview
	counts := begun && !ordered
	death := counts && code != 0
	switch {
	case !begun && a.remote == nil && !(t.state.rules.OnlineOnly && k.wants() != nil):
		return
	case !counts:
		t.requeue(k, &taskRequeued{Why: "its agent ended: " + how, Blameless: true})
	case a.OnExit == "fail":
		t.giveUp(k, fmt.Sprintf("agent %s ended while it had the task: %s", a.ID, how))
	case death && k.deaths+1 >= poison:
		t.giveUp(k, fmt.Sprintf("poison: %d agents ended with it in their hands: %s", k.deaths+1, k.fates(a, how)))
	case k.view.Attempts >= t.state.rules.MaxAttempts:
		t.giveUp(k, fmt.Sprintf("given up after %d attempts: %s", k.view.Attempts, k.fates(a, how)))
	default:
		t.requeue(k, &taskRequeued{Why: "its agent ended: " + how, Death: death})
	}
}

// giveBack lets others have what an agent was matched with and has not begun, for
// it does not come back by itself. What was given to it by hand waits for it.
func (t *decision) giveBack(a *agent) {
	for _, k := range slices.Clone(a.holds) {
		if k.way == matched && k.view.State == wire.TaskAssigned {
			t.requeue(k, &taskRequeued{Why: "its agent does not run any more", Blameless: true})
		}
	}
	t.shift(a)
}

// lostTask is a task that has lost its agent.
type lostTask struct {
	task *task
	of   string
}

// reassignLost gives tasks with requirements, and those that were handed on, that have lost
// their agents in this turn to others. It is for its end, when all is known of who is online.
func (t *decision) reassignLost() {
	slices.SortStableFunc(t.lostTasks, func(a, b lostTask) int { return inTurn(a.task, b.task) })
	for _, o := range t.lostTasks {
		if o.task.delegation() != nil {
			t.handOver(o.task, o.of)
		} else if t.free(o.task) {
			t.place(o.task, match.Conditions{Online: true, Not: o.of})
		}
	}
}

// fates are what became of the agents that had a task, this one last.
func (k *task) fates(last *agent, how string) string {
	var all []string
	if k.more != nil {
		all = append(all, k.more.history...)
	}
	return strings.Join(append(all, last.ID+": "+how), "; ")
}

// giveUp fails a task that waits for a person perhaps.
func (t *decision) giveUp(k *task, why string) {
	t.resume(k)
	t.fail(k, failure{why: why})
}

// resume takes a task up again whose agent waits for a person.
func (t *decision) resume(k *task) {
	if k.view.State == wire.TaskNeedsHuman {
		t.cancelQuestions(k)
		t.start(k, nil)
	}
}
