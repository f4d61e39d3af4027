package handlers

import (
	"fmt"
	"slices"

	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// applyLifecycle records an event of the supervisor, and decides about the tasks of agents that have
// ended.
func (ad agentDecision) applyLifecycle(e *wire.Event) {
	if !state.LifecycleKinds[e.Kind] {
		panic("no kind of happening: " + e.Kind)
	}
	to := ""
	if e.Agent != "" {
		to = state.AgentPrefix + e.Agent
	}
	if ad.starts {
		ad.lose(e) // before the agents' runs are forgotten
	}
	wrecked := ad.state.Agents.Wrecked(e.Agent)
	late := ad.state.Agents.Late(e.Agent)
	ad.fact(to, "", &state.LifecycleEvent{What: e.Kind, Agent: e.Agent, Run: e.Run, Text: e.Text, Figures: e.Figures})
	if a := ad.state.Agents.ByID[e.Agent]; a != nil && e.Kind == events.AgentStarted {
		ad.tasks().remind(a)
		ad.tasks().recheckAddressed(a)
		if a.Remote == nil {
			ad.mail().spawn(a, e, wrecked)
			for _, answer := range late {
				ad.mail().sendAnswer(a, answer)
			}
		}
	}
	if a := ad.state.Agents.ByID[e.Agent]; a != nil && a.Remote == nil && (e.Kind == events.AgentGaveUp || e.Kind == events.AgentStopped) && !ad.state.Stopping {
		ad.tasks().giveBack(a)
	}
	if a := ad.state.Agents.ByID[e.Agent]; a != nil && a.Remote == nil && e.Kind == events.AgentEnded && a.Runs(e.Run) {
		code := -1
		if e.Figures.ExitCode != nil {
			code = *e.Figures.ExitCode
		}
		ad.mail().terminate(a, e)
		for _, t := range slices.Clone(a.Holds) {
			ad.tasks().requeueLost(t, a, e.Text, code, e.Figures.Ordered)
		}
		ad.works().runEnded(a, e.Text, e.Figures.Ordered)
		if e.Figures.Ordered {
			ad.lift(a)
		}
	}
	if e.Kind == events.AgentGaveUp {
		ad.gone(e.Agent)
		if a := ad.state.Agents.ByID[e.Agent]; a != nil {
			ad.lift(a)
		}
	}
	if ad.starts {
		ad.sessions().reopenAborted()
		ad.trimServers()
	}
}

// lostWithUs describes the end of a run that was lost with the orchestrator.
const lostWithUs = "lost when the orchestrator was killed"

// stoppedWithUs describes the end of a run that the orchestrator has stopped, and could not record.
const stoppedWithUs = "stopped in order after the record could no longer be written"

// isStart reports whether an input is the start of the orchestrator.
func isStart(m wire.Message) bool {
	e, ok := m.(*wire.Event)
	return ok && e.Kind == events.OrchestratorStarted
}

// lose decides about the tasks of agents that ended together with the previous orchestrator.
func (ad agentDecision) lose(start *wire.Event) {
	how := lostWithUs
	if start.Figures.Ordered {
		how = stoppedWithUs
	}
	for _, a := range ad.state.Agents.Order {
		if a.Remote != nil || slices.Contains(start.Figures.Kept, a.ID) {
			ad.tasks().endVerifications(a, how)
			continue
		}
		if a.Alive() && !start.Figures.Ordered {
			ad.mail().crashed(a, &wire.Event{Run: a.Run, Text: lostWithUs})
		}
		for _, t := range slices.Clone(a.Holds) {
			ad.tasks().requeueLost(t, a, how, -1, true)
		}
		ad.works().runEnded(a, how, true)
	}
}

// poison is the number of agents that may crash with a task before it fails.
const poison = 2

// requeueLost decides about a task whose agent has ended. If the agent was stopped on request, or
// died with the orchestrator, the task is requeued, whatever on_exit is, and no attempt and no
// death is counted.
func (td taskDecision) requeueLost(t *state.Task, a *state.KnownAgent, how string, code int, ordered bool) {
	switch {
	case t.Way == state.InSession: // see runEnded
	case t.Way == assignedDelegated && !t.View.State.Final():
		td.delegations().loseHolder(t, a, how, ordered)
	case t.View.State.Final(): // it has failed together with another task of the agent
	case t.Way != state.Dispatched:
		td.retry(t, a, how, code, ordered)
	case t.View.State == wire.TaskAssigned:
		td.requeue(t, &state.TaskRequeued{Why: "its agent ended before it was notified", Blameless: true})
	case ordered:
		td.requeue(t, &state.TaskRequeued{Why: td.stopWhy(how), Blameless: true})
	case a.OnExit == "fail", a.OnExit != "requeue" && code != 0:
		td.giveUp(t, fmt.Sprintf("agent %s ended while it had the task: %s", a.ID, how))
	case a.OnExit != "requeue" && t.View.Details.Copy().Verify == nil && !t.IsPlanned():
		td.resume(t)
		td.complete(t, &succeeded, end{})
	case t.Deaths+1 >= poison:
		td.giveUp(t, fmt.Sprintf("poison: %d runs ended while they had it, the last one with %s", t.Deaths+1, how))
	default:
		td.requeue(t, &state.TaskRequeued{Why: "its agent ended: " + how, Death: true})
	}
}

// stopWhy returns the reason to requeue the task of a stopped agent, or of an agent lost with the
// orchestrator.
func (td taskDecision) stopWhy(how string) string {
	if td.starts {
		return "its agent ended: " + how
	}
	return "its agent was stopped"
}

// retry decides about a matched or manually assigned task of an agent that has ended or is offline.
// Only its agent can complete such a task. A task that was not begun waits for its agent, unless
// tasks are only for agents that are online.
func (td taskDecision) retry(t *state.Task, a *state.KnownAgent, how string, code int, ordered bool) {
	begun := t.Busy() || t.View.State == wire.TaskNeedsHuman
	counts := begun && !ordered
	death := counts && code != 0
	switch {
	case !begun && a.Remote == nil && !(td.state.Rules.OnlineOnly && t.Wants() != nil):
		return
	case ordered:
		td.requeue(t, &state.TaskRequeued{Why: td.stopWhy(how), Blameless: true})
	case !begun:
		td.requeue(t, &state.TaskRequeued{Why: "its agent ended: " + how, Blameless: true})
	case a.OnExit == "fail":
		td.giveUp(t, fmt.Sprintf("agent %s ended while it had the task: %s", a.ID, how))
	case death && t.Deaths+1 >= poison:
		td.giveUp(t, fmt.Sprintf("poison: %d runs ended while they had it: %s", t.Deaths+1, t.Fates(a, how)))
	case td.triedOut(t):
		td.giveUp(t, fmt.Sprintf("given up after %d attempts: %s", t.View.Attempts, t.Fates(a, how)))
	default:
		td.requeue(t, &state.TaskRequeued{Why: "its agent ended: " + how, Death: death})
	}
}

// giveBack requeues matched tasks that an agent has not begun, because it is not restarted
// automatically. Manually assigned tasks wait for the agent.
func (td taskDecision) giveBack(a *state.KnownAgent) {
	for _, t := range slices.Clone(a.Holds) {
		if t.Way == state.Matched && t.View.State == wire.TaskAssigned {
			td.requeue(t, &state.TaskRequeued{Why: "its agent is no longer running", Blameless: true})
		}
	}
	td.delegations().shift(a)
}

// A lostTask is a task that has lost its agent, or that was postponed and is due.
type lostTask struct {
	task *state.Task
	of   string // the agent that it has lost; "": it is due
}

// reassignLost reassigns tasks with requirements and delegated tasks that have lost their agents
// in this turn or are due. It runs at the end of the turn, when all changes of agents are known.
func (td taskDecision) reassignLost() {
	slices.SortStableFunc(td.lostTasks, func(a, b lostTask) int { return queue.Compare(a.task, b.task) })
	for _, o := range td.lostTasks {
		if o.task.Delegation() != nil {
			td.delegations().handOver(o.task, o.of, td.departed)
		} else if addressee(o.task) != "" {
			td.giveAgain(o.task)
		} else if td.free(o.task) {
			td.place(o.task, match.Conditions{Online: true, Not: o.of})
		}
	}
}

// giveUp fails a task, which may be waiting for a person.
func (td taskDecision) giveUp(t *state.Task, why string) {
	td.resume(t)
	td.fail(t, failure{why: why})
}

// resume continues a task that waits for a person, without the answer.
func (td taskDecision) resume(t *state.Task) {
	if t.View.State == wire.TaskNeedsHuman {
		td.questions().cancelQuestions(t)
		td.start(t, nil)
	}
}
