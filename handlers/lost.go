package handlers

import (
	"fmt"
	"slices"
	"strings"

	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
)

// poison is the number of agents that may crash with a task before it fails.
const poison = 2

// requeueLost decides about a task whose agent has ended. If the agent was told to stop,
// or died with the orchestrator, the task is requeued, whatever on_exit is, and no
// attempt and no death is counted.
func (td taskDecision) requeueLost(k *task, a *agent, how string, code int, ordered bool) {
	switch {
	case k.way == inSession: // see bereaveWorks
	case k.way == assignedDelegated && !k.view.State.Final():
		td.delegations().loseHolder(k, a, how, ordered)
	case k.view.State.Final(): // it has failed together with another task of the agent
	case k.way != dispatched:
		td.retry(k, a, how, code, ordered)
	case k.view.State == wire.TaskAssigned:
		td.requeue(k, &taskRequeued{Why: "its agent ended before it was told", Blameless: true})
	case ordered:
		td.requeue(k, &taskRequeued{Why: td.stopWhy(how), Blameless: true})
	case a.OnExit == "fail", a.OnExit != "requeue" && code != 0:
		td.giveUp(k, fmt.Sprintf("agent %s ended while it had the task: %s", a.ID, how))
	case a.OnExit != "requeue":
		td.resume(k)
		td.complete(k, &succeeded, end{})
	case k.deaths+1 >= poison:
		td.giveUp(k, fmt.Sprintf("poison: %d agents ended with it in their hands, the last one with %s", k.deaths+1, how))
	default:
		td.requeue(k, &taskRequeued{Why: "its agent ended: " + how, Death: true})
	}
}

// stopWhy returns the reason to requeue a task whose agent was stopped, or lost with the
// orchestrator.
func (td taskDecision) stopWhy(how string) string {
	if td.starts {
		return "its agent ended: " + how
	}
	return "its agent was stopped"
}

// retry decides about a matched or manually assigned task whose agent has ended or is offline.
// Only its agent can complete such a task. A task that was not begun waits for its agent, unless
// tasks are only for agents that are online.
func (td taskDecision) retry(k *task, a *agent, how string, code int, ordered bool) {
	begun := k.view.State == wire.TaskRunning || k.view.State == wire.TaskNeedsHuman || k.view.State == wire.TaskInReview
	counts := begun && !ordered
	death := counts && code != 0
	switch {
	case !begun && a.remote == nil && !(td.state.rules.OnlineOnly && k.wants() != nil):
		return
	case !counts:
		td.requeue(k, &taskRequeued{Why: "its agent ended: " + how, Blameless: true})
	case a.OnExit == "fail":
		td.giveUp(k, fmt.Sprintf("agent %s ended while it had the task: %s", a.ID, how))
	case death && k.deaths+1 >= poison:
		td.giveUp(k, fmt.Sprintf("poison: %d agents ended with it in their hands: %s", k.deaths+1, k.fates(a, how)))
	case k.view.Attempts >= td.state.rules.MaxAttempts:
		td.giveUp(k, fmt.Sprintf("given up after %d attempts: %s", k.view.Attempts, k.fates(a, how)))
	default:
		td.requeue(k, &taskRequeued{Why: "its agent ended: " + how, Death: death})
	}
}

// giveBack requeues matched tasks that an agent has not begun, because it is not restarted
// automatically. Manually assigned tasks wait for the agent.
func (td taskDecision) giveBack(a *agent) {
	for _, k := range slices.Clone(a.holds) {
		if k.way == matched && k.view.State == wire.TaskAssigned {
			td.requeue(k, &taskRequeued{Why: "its agent does not run any more", Blameless: true})
		}
	}
	td.delegations().shift(a)
}

// A lostTask is a task that has lost its agent.
type lostTask struct {
	task *task
	of   string
}

// reassignLost reassigns tasks with requirements and delegated tasks that have lost their agents
// in this turn. It runs at the end of the turn, when all changes of agents are known.
func (td taskDecision) reassignLost() {
	slices.SortStableFunc(td.lostTasks, func(a, b lostTask) int { return queue.Compare(a.task, b.task) })
	for _, o := range td.lostTasks {
		if o.task.delegation() != nil {
			td.delegations().handOver(o.task, o.of, td.departed)
		} else if td.free(o.task) {
			td.place(o.task, match.Conditions{Online: true, Not: o.of})
		}
	}
}

// fates returns how each agent that had a task ended, the given one last.
func (t *task) fates(last *agent, how string) string {
	var all []string
	if t.more != nil {
		all = append(all, t.more.history...)
	}
	return strings.Join(append(all, last.ID+": "+how), "; ")
}

// giveUp fails a task, which may be waiting for a person.
func (td taskDecision) giveUp(k *task, why string) {
	td.resume(k)
	td.fail(k, failure{why: why})
}

// resume continues a task that waits for a person, without the answer.
func (td taskDecision) resume(k *task) {
	if k.view.State == wire.TaskNeedsHuman {
		td.questions().cancelQuestions(k)
		td.start(k, nil)
	}
}
