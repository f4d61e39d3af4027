package handlers

import (
	"fmt"
	"slices"
	"time"

	"orchestrator/handlers/history"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// forward sends delegated tasks to agents that have room for them: the most urgent first, then
// the oldest.
func (dd delegationDecision) forward() {
	for i := 0; i < len(dd.state.delegations.look); i++ { // the loop may append to the list
		a := dd.state.delegations.look[i]
		for d := dd.nextHanded(a); d != nil; d = dd.nextHanded(a) {
			dd.forwardTo(d, a)
		}
		dd.inputAgain(a)
	}
	dd.state.delegations.forwarded()
}

// nextHanded returns the next delegated task for an agent. It returns nil if none waits or the
// agent has no room.
func (dd delegationDecision) nextHanded(a *agent) (first *delegatedWork) {
	if dd.state.stopping || a.state != up || a.stale || !a.listens() {
		return nil
	}
	used := 0
	for _, k := range a.holds {
		if k.occupies() {
			used++
		}
		if d := k.delegation(); d != nil && d.waits() && dd.state.tasks.graph.Open(k.node) == 0 && (first == nil || queue.Before(k, first.task)) {
			first = d
		}
	}
	if used >= a.Capacity {
		return nil
	}
	return first
}

// listens reports whether an agent has a run that reads its stdin.
func (a *agent) listens() bool { return a.remote == nil && a.reachable() && a.hears() }

// load returns how much of the agent's capacity is in use or assigned.
func (a *agent) load() int {
	n := 0
	for _, k := range a.holds {
		if d := k.delegation(); k.occupies() || d != nil && d.waits() {
			n++
		}
	}
	return n
}

// inputAgain sends an agent the inputs that could not be sent before, in order.
func (dd delegationDecision) inputAgain(a *agent) {
	for _, k := range a.holds {
		d := k.delegation()
		if d == nil || d.out == "" || !a.listens() {
			continue
		}
		for _, kept := range slices.Clone(d.returned) {
			dd.fact(a.actor, k.view.ID, &taskForwarded{ID: k.view.ID, Name: k.view.Name, Agent: a.ID, Run: a.run, Acted: kept})
			dd.out.Letters = append(dd.out.Letters, Letter{
				To: Actor{Kind: Agent, Name: a.ID, Run: a.run}, Kept: kept, Task: k.view.ID, Said: kept,
			})
		}
	}
}

// occupies reports whether a task counts against the capacity of its agent. A task that waits
// for delegated parts does not. Otherwise two agents that wait for each other would wait
// forever.
func (t *task) occupies() bool {
	if t.more != nil && len(t.more.handedOn) > 0 {
		return false
	}
	switch t.view.State {
	case wire.TaskRunning, wire.TaskVerifying, wire.TaskNeedsHuman:
		return true
	case wire.TaskAssigned:
		d := t.delegation()
		return d == nil && t.way == dispatched || d != nil && d.out != ""
	}
	return false
}

// forwardTo sends a task to an agent.
func (dd delegationDecision) forwardTo(d *delegatedWork, a *agent) {
	k := d.task
	dd.own.fact(a.actor, k.view.ID, &taskForwarded{ID: k.view.ID, Name: k.view.Name, Agent: a.ID, Run: a.run})
	request := delegation.Request{Document: d.request}
	dd.out.Letters = append(dd.out.Letters, Letter{
		To: Actor{Kind: Agent, Name: a.ID, Run: a.run}, Line: request.Forwarded(delegation.Forwarding{Target: a.ID}), Task: k.view.ID,
	})
}

// bringResponses sends the responses of this turn to the sources of their tasks.
func (dd delegationDecision) bringResponses() {
	for _, b := range dd.state.delegations.fresh {
		a := dd.state.agents.sourceAgent(b.of)
		if a == nil || a.run == "" || a.run != b.of.sent {
			continue // that run has ended; the next one gets it
		}
		l := Letter{To: Actor{Kind: Agent, Name: a.ID, Run: a.run}, Line: b.line, Task: b.of.task.view.ID, Said: b.said}
		if b.line == nil {
			l.Kept = b.said
		}
		dd.out.Letters = append(dd.out.Letters, l)
	}
	dd.state.delegations.answered()
}

// carried handles the delivery of a line about a delegated task. A lost line is sent again when
// its agent reads.
func (dd delegationDecision) carried(d *delegatedWork, m *wire.Delivered) {
	k := d.task
	a := dd.state.agents.byID[m.Agent]
	current := a != nil && a.runs(m.Run) && a.state == up // otherwise the next run gets it
	held := k.view.AssignedTo == m.Agent && !k.view.State.Final()
	switch {
	case held && (m.Said != 0 || k.view.State == wire.TaskAssigned && d.out == m.Run):
		if m.Lost && current {
			dd.fact(a.actor, k.view.ID, &taskReturned{ID: k.view.ID, Name: k.view.Name, Agent: m.Agent, Run: m.Run, Acted: m.Said})
		}
	case m.Said == 0 || !d.owed || !d.given.IsZero() || d.latest != m.Said || d.sent != m.Run:
	case !m.Lost:
		dd.fact(agentPrefix+m.Agent, k.view.ID, &taskAnswered{ID: k.view.ID, Name: k.view.Name, Said: m.Said})
	case current:
		dd.fact(agentPrefix+m.Agent, k.view.ID, &taskUnanswered{ID: k.view.ID, Name: k.view.Name, Said: m.Said})
	}
}

// Given reports whether an agent has a task, or had it when the task ended. Only the output of
// that agent counts as a response.
func (s *core) Given(agent, id string) bool {
	k := s.tasks.byID[id]
	return k != nil && k.view.AssignedTo == agent && agent != ""
}

// Does reports whether any agent has a capability.
func (s *core) Does(kind string) bool {
	return slices.ContainsFunc(s.agents.order, func(a *agent) bool { return slices.Contains(a.Capabilities, kind) })
}

// LineOf returns the line in a record, as it is sent to its recipient.
func LineOf(r wire.Record) (wire.Raw, error) {
	f, err := decode(&r, new([]object.Member))
	if err != nil {
		return nil, err
	}
	return history.LineOf(f, &r)
}

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
		fault.Message = fmt.Sprintf("poison: %d runs ended while they had it: %s", k.deaths+1, k.fates(a, how))
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
	if k.view.State != wire.TaskPending || d.next.After(dd.at) || k.postponed() {
		return // it has ended meanwhile, or its retry or itself is not due
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
	dd.questions().endPermissions(k)
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
	for _, d := range parts {
		if !d.task.view.State.Final() {
			dd.own.tasks().cancel(d.task, "The task that it was part of has ended", end{quiet: quiet})
			dd.links().abandon(d.task, quiet)
		}
	}
}
