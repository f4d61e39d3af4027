package handlers

import (
	"fmt"
	"slices"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// loseHolder decides about a delegated task whose agent has ended. A task that was not yet
// forwarded waits for the next run of the agent. Any other is requeued, unless on_exit is "fail"
// or too many agents crashed with it. An ordered stop, or the loss of the orchestrator, is not
// counted.
func (dd delegationDecision) loseHolder(k *task, a *agent, how string, ordered bool) {
	begun := k.view.State != wire.TaskAssigned
	d := k.delegation()
	switch {
	case begun || a.remote == nil && d.out != "" && d.out == a.run:
	case a.remote != nil && d.target == "": // it does not come for it
		dd.tasks().requeue(k, &taskRequeued{Why: "its agent ended: " + how, Blameless: true})
		return
	default:
		return
	}
	fault := &delegation.Fault{Code: delegation.FaultAgentUnavailable, Recoverable: true}
	switch {
	case ordered:
		dd.tasks().requeue(k, &taskRequeued{Why: "its agent ended: " + how, Blameless: true})
		return
	case a.OnExit == "fail":
		fault.Message = fmt.Sprintf("agent %s ended while it had the task: %s", a.ID, how)
	case k.deaths+1 >= poison:
		fault.Message = fmt.Sprintf("poison: %d agents ended with it in their hands: %s", k.deaths+1, k.fates(a, how))
		fault.Recoverable = false // the next agent would die with it, too
	default:
		dd.tasks().requeue(k, &taskRequeued{Why: "its agent ended: " + how, Death: true})
		return
	}
	dd.failHanded(k, fault)
}

// failHanded fails a delegated task that no agent can do.
func (dd delegationDecision) failHanded(k *task, fault *delegation.Fault) {
	dd.tasks().resume(k)
	dd.tasks().fail(k, failure{why: fault.Code + ": " + fault.Message, fault: fault})
}

// handOver assigns a task that has lost its agent or is retried: to the agent that the request
// named, or to another capable one.
func (dd delegationDecision) handOver(k *task, last string, gone departures) {
	d := k.delegation()
	if k.view.State != wire.TaskPending || d.next.After(dd.at) {
		return // it has ended meanwhile, or its retry is not due
	}
	a, err := dd.chooseTarget(k.view.Type, d.target, d.chain, last, gone)
	if err != nil {
		dd.failHanded(k, delegation.FaultOf(err))
		return
	}
	dd.assignDelegated(k, a)
}

// departures holds the agents that have departed and do not come back by themselves, with the
// reason.
type departures map[*agent]string

// takeBack requeues the delegated tasks of an agent that is not restarted automatically.
func (dd delegationDecision) takeBack(a *agent, why string) {
	if dd.departed == nil {
		dd.departed = make(departures)
	}
	dd.departed[a] = why
	for _, k := range slices.Clone(a.holds) {
		if k.way == assignedDelegated && !k.view.State.Final() {
			dd.tasks().requeue(k, &taskRequeued{Why: why, Blameless: true})
		}
	}
}

// retries schedules a retry of a failed task, if its agent reported that this may succeed and
// the limit is not reached. It reports whether it did.
func (dd delegationDecision) retries(k *task, fault *delegation.Fault) bool {
	d := k.delegation()
	if d == nil || !fault.Recoverable || d.retries >= dd.state.rules.DelegationRetries {
		return false
	}
	parts := k.parts()
	dd.questions().cancelQuestions(k)
	next := dd.at.Add(retryDelays[min(d.retries, len(retryDelays)-1)])
	dd.fact("", k.view.ID, &taskRetried{ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Fault: fault, Next: object.Timestamp(next)})
	dd.cancelParts(parts, "")
	return true
}

// retryDelays are the delays between a failure and the next attempt.
var retryDelays = [...]time.Duration{time.Second, 2 * time.Second, 4 * time.Second}

// shift requeues tasks that a stopped agent has not begun, if another agent can do them and the
// request named none.
func (dd delegationDecision) shift(a *agent) {
	for _, k := range slices.Clone(a.holds) {
		d := k.delegation()
		if d == nil || !d.waits() || d.target != "" {
			continue
		}
		if _, err := dd.bestCapable(k.view.Type, d.chain, "", nil); err == nil {
			dd.tasks().requeue(k, &taskRequeued{Why: "its agent does not run any more", Blameless: true})
		}
	}
}

// tryAgain handles delegated tasks that are due: it retries them, or answers a status request
// that their agent did not.
func (dd delegationDecision) tryAgain() {
	for len(dd.state.delegations.due) > 0 && !dd.state.delegations.due[0].due.After(dd.at) && !dd.state.stopping {
		d := dd.state.delegations.due[0]
		if !d.asked.IsZero() && !d.asked.After(dd.at) {
			dd.tellStanding(d)
			continue
		}
		dd.handOver(d.task, "", dd.departed)
	}
}

// tellStanding sends the known status of a task to its source, because its agent does not
// answer. It repeats the latest response of the agent if that is current.
func (dd delegationDecision) tellStanding(d *delegatedWork) {
	k := d.task
	if d.said != k.view.State.Response() {
		dd.speakFor(k, dd.state.questions.response(k, nil))
		return
	}
	dd.fact(k.view.SubmittedBy, k.view.ID, &taskResponded{ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Status: d.said, Own: true, Again: true})
}

// parts returns the delegated parts of a task that its agent waits for.
func (t *task) parts() []*delegatedWork {
	if t.more == nil {
		return nil
	}
	return slices.Clone(t.more.handedOn)
}

// cancelParts cancels parts that no task waits for any more. The agent quiet is not notified.
func (dd delegationDecision) cancelParts(parts []*delegatedWork, quiet string) {
	defer func(from Actor) { dd.from = from }(dd.from)
	dd.from = Actor{}
	for _, d := range parts {
		if !d.task.view.State.Final() {
			dd.tasks().cancel(d.task, "The task that it was part of has ended", end{quiet: quiet})
			dd.links().abandon(d.task, quiet)
		}
	}
}
