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
func (t *decision) loseHolder(k *task, a *agent, how string, ordered bool) {
	begun := k.view.State != wire.TaskAssigned
	d := k.delegation()
	switch {
	case begun || a.remote == nil && d.out != "" && d.out == a.run:
	case a.remote != nil && d.target == "": // it does not come for it
		t.requeue(k, &taskRequeued{Why: "its agent ended: " + how, Blameless: true})
		return
	default:
		return
	}
	fault := &delegation.Fault{Code: delegation.FaultAgentUnavailable, Recoverable: true}
	switch {
	case ordered:
		t.requeue(k, &taskRequeued{Why: "its agent ended: " + how, Blameless: true})
		return
	case a.OnExit == "fail":
		fault.Message = fmt.Sprintf("agent %s ended while it had the task: %s", a.ID, how)
	case k.deaths+1 >= poison:
		fault.Message = fmt.Sprintf("poison: %d agents ended with it in their hands: %s", k.deaths+1, k.fates(a, how))
		fault.Recoverable = false // the next agent would die with it, too
	default:
		t.requeue(k, &taskRequeued{Why: "its agent ended: " + how, Death: true})
		return
	}
	t.failHanded(k, fault)
}

// failHanded fails a delegated task that no agent can do.
func (t *decision) failHanded(k *task, fault *delegation.Fault) {
	t.resume(k)
	t.fail(k, failure{why: fault.Code + ": " + fault.Message, fault: fault})
}

// handOver assigns a task that has lost its agent or is retried: to the agent that the request
// named, or to another capable one.
func (t *decision) handOver(k *task, last string) {
	d := k.delegation()
	if k.view.State != wire.TaskPending || d.next.After(t.at) {
		return // it has ended meanwhile, or its retry is not due
	}
	a, err := t.chooseTarget(k.view.Type, d.target, d.chain, last)
	if err != nil {
		t.failHanded(k, delegation.FaultOf(err))
		return
	}
	t.assignDelegated(k, a)
}

// takeBack requeues the delegated tasks of an agent that is not restarted automatically.
func (t *decision) takeBack(a *agent, why string) {
	if t.departed == nil {
		t.departed = make(map[*agent]string)
	}
	t.departed[a] = why
	for _, k := range slices.Clone(a.holds) {
		if k.way == assignedDelegated && !k.view.State.Final() {
			t.requeue(k, &taskRequeued{Why: why, Blameless: true})
		}
	}
}

// retries schedules a retry of a failed task, if its agent reported that this may succeed and
// the limit is not reached. It reports whether it did.
func (t *decision) retries(k *task, fault *delegation.Fault) bool {
	d := k.delegation()
	if d == nil || !fault.Recoverable || d.retries >= t.state.rules.DelegationRetries {
		return false
	}
	parts := k.parts()
	t.cancelQuestions(k)
	next := t.at.Add(retryDelays[min(d.retries, len(retryDelays)-1)])
	t.fact("", k.view.ID, &taskRetried{ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Fault: fault, Next: object.Timestamp(next)})
	t.cancelParts(parts)
	return true
}

// retryDelays are the delays between a failure and the next attempt.
var retryDelays = [...]time.Duration{time.Second, 2 * time.Second, 4 * time.Second}

// shift requeues tasks that a stopped agent has not begun, if another agent can do them and the
// request named none.
func (t *decision) shift(a *agent) {
	for _, k := range slices.Clone(a.holds) {
		d := k.delegation()
		if d == nil || !d.waits() || d.target != "" {
			continue
		}
		if _, err := t.bestCapable(k.view.Type, d.chain, ""); err == nil {
			t.requeue(k, &taskRequeued{Why: "its agent does not run any more", Blameless: true})
		}
	}
}

// tryAgain handles delegated tasks that are due: it retries them, or answers a status request
// that their agent did not.
func (t *decision) tryAgain() {
	for len(t.state.delegations.due) > 0 && !t.state.delegations.due[0].due.After(t.at) && !t.state.stopping {
		d := t.state.delegations.due[0]
		if !d.asked.IsZero() && !d.asked.After(t.at) {
			t.tellStanding(d)
			continue
		}
		t.handOver(d.task, "")
	}
}

// tellStanding sends the known status of a task to its source, because its agent does not
// answer. It repeats the latest response of the agent if that is current.
func (t *decision) tellStanding(d *delegatedWork) {
	k := d.task
	if d.said != k.view.State.Response() {
		t.speakFor(k, t.state.questions.response(k, nil))
		return
	}
	t.fact(k.view.SubmittedBy, k.view.ID, &taskResponded{ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Status: d.said, Own: true, Again: true})
}

// parts returns the delegated parts of a task that its agent waits for.
func (t *task) parts() []*delegatedWork {
	if t.more == nil {
		return nil
	}
	return slices.Clone(t.more.handedOn)
}

// cancelParts cancels parts that no task waits for any more.
func (t *decision) cancelParts(parts []*delegatedWork) {
	defer func(from Actor) { t.from = from }(t.from)
	t.from = Actor{}
	for _, d := range parts {
		if !d.task.view.State.Final() {
			t.cancel(d.task, "The task that it was part of has ended", nil)
			t.abandon(d.task)
		}
	}
}
