package handlers

import (
	"fmt"
	"slices"
	"time"

	"orchestrator/handlers/queue"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// forward sends delegated tasks to agents that have room for them: the most urgent first, then
// the oldest.
func (dd delegationDecision) forward() {
	for i := 0; i < len(dd.state.Delegations.Look); i++ { // the loop may append to the list
		a := dd.state.Delegations.Look[i]
		for d := dd.nextHanded(a); d != nil; d = dd.nextHanded(a) {
			dd.forwardTo(d, a)
		}
		dd.inputAgain(a)
	}
	dd.state.Delegations.Forwarded()
}

// nextHanded returns the next delegated task for an agent. It returns nil if none waits or the
// agent has no room.
func (dd delegationDecision) nextHanded(a *state.KnownAgent) (first *state.DelegatedWork) {
	if dd.state.Stopping || a.State != state.Up || a.Stale || !a.Listens() {
		return nil
	}
	used := 0
	for _, t := range a.Holds {
		if t.Occupies() {
			used++
		}
		if d := t.Delegation(); d != nil && d.Waits() && dd.state.Tasks.Graph.Open(t.Node) == 0 && (first == nil || queue.Before(t, first.Task)) {
			first = d
		}
	}
	if used >= a.Capacity {
		return nil
	}
	return first
}

// inputAgain sends an agent the inputs that could not be sent before, in order.
func (dd delegationDecision) inputAgain(a *state.KnownAgent) {
	for _, t := range a.Holds {
		d := t.Delegation()
		if d == nil || d.Out == "" || !a.Listens() {
			continue
		}
		for _, kept := range slices.Clone(d.Returned) {
			dd.fact(a.ActorID, t.View.ID, &state.TaskForwarded{ID: t.View.ID, Name: t.View.Name, Agent: a.ID, Run: a.Run, Acted: kept})
			dd.out.Letters = append(dd.out.Letters, Letter{
				To: Actor{Kind: Agent, Name: a.ID, Run: a.Run}, Kept: kept, Task: t.View.ID, Said: kept,
			})
		}
	}
}

// forwardTo sends a task to an agent.
func (dd delegationDecision) forwardTo(d *state.DelegatedWork, a *state.KnownAgent) {
	t := d.Task
	dd.own.fact(a.ActorID, t.View.ID, &state.TaskForwarded{ID: t.View.ID, Name: t.View.Name, Agent: a.ID, Run: a.Run})
	request := delegation.Request{Document: d.Request}
	dd.out.Letters = append(dd.out.Letters, Letter{
		To: Actor{Kind: Agent, Name: a.ID, Run: a.Run}, Line: request.Forwarded(delegation.Forwarding{Target: a.ID}), Task: t.View.ID,
	})
}

// flushResponses sends the responses of this turn to the sources of their tasks.
func (dd delegationDecision) flushResponses() {
	for _, b := range dd.state.Delegations.Fresh {
		a := dd.state.Agents.SourceAgent(b.Of)
		if a == nil || a.Run == "" || a.Run != b.Of.Sent {
			continue // that run has ended; the next one gets it
		}
		l := Letter{To: Actor{Kind: Agent, Name: a.ID, Run: a.Run}, Line: b.Line, Task: b.Of.Task.View.ID, Said: b.Said}
		if b.Line == nil {
			l.Kept = b.Said
		}
		dd.out.Letters = append(dd.out.Letters, l)
	}
	dd.state.Delegations.Answered()
}

// carried handles the delivery of a line about a delegated task. A lost line is sent again when
// its agent reads.
func (dd delegationDecision) carried(d *state.DelegatedWork, m *wire.Delivered) {
	t := d.Task
	a := dd.state.Agents.ByID[m.Agent]
	current := a != nil && a.Runs(m.Run) && a.State == state.Up // otherwise the next run gets it
	held := t.View.AssignedTo == m.Agent && !t.View.State.Final()
	switch {
	case held && (m.Said != 0 || t.View.State == wire.TaskAssigned && d.Out == m.Run):
		if m.Lost && current {
			dd.fact(a.ActorID, t.View.ID, &state.TaskReturned{ID: t.View.ID, Name: t.View.Name, Agent: m.Agent, Run: m.Run, Acted: m.Said})
		}
	case m.Said == 0 || !d.Owed || !d.Given.IsZero() || d.Latest != m.Said || d.Sent != m.Run:
	case !m.Lost:
		dd.fact(state.AgentPrefix+m.Agent, t.View.ID, &state.TaskAnswered{ID: t.View.ID, Name: t.View.Name, Said: m.Said})
	case current:
		dd.fact(state.AgentPrefix+m.Agent, t.View.ID, &state.TaskUnanswered{ID: t.View.ID, Name: t.View.Name, Said: m.Said})
	}
}

// loseHolder decides about a delegated task whose agent has ended. A task that was not yet
// forwarded waits for the next run of the agent. Any other is requeued, unless on_exit is "fail"
// or too many agents crashed with it. An ordered stop, or the loss of the orchestrator, is not
// counted.
func (dd delegationDecision) loseHolder(t *state.Task, a *state.KnownAgent, how string, ordered bool) {
	begun := t.View.State != wire.TaskAssigned
	d := t.Delegation()
	switch {
	case begun || a.Remote == nil && d.Out != "" && d.Out == a.Run:
	case a.Remote != nil && d.Target == "": // it does not come for it
		dd.tasks().requeue(t, &state.TaskRequeued{Why: "its agent ended: " + how, Blameless: true})
		return
	default:
		return
	}
	fault := &delegation.Fault{Code: delegation.FaultAgentUnavailable, Recoverable: true}
	switch {
	case ordered:
		dd.tasks().requeue(t, &state.TaskRequeued{Why: "its agent ended: " + how, Blameless: true})
		return
	case a.OnExit == "fail":
		fault.Message = fmt.Sprintf("agent %s ended while it had the task: %s", a.ID, how)
	case t.Deaths+1 >= poison:
		fault.Message = fmt.Sprintf("poison: %d runs ended while they had it: %s", t.Deaths+1, t.Fates(a, how))
		fault.Recoverable = false // the next agent would die with it, too
	default:
		dd.tasks().requeue(t, &state.TaskRequeued{Why: "its agent ended: " + how, Death: true})
		return
	}
	dd.failHanded(t, fault)
}

// failHanded fails a delegated task that no agent can do.
func (dd delegationDecision) failHanded(t *state.Task, fault *delegation.Fault) {
	dd.tasks().resume(t)
	dd.tasks().fail(t, failure{why: fault.Code + ": " + fault.Message, fault: fault})
}

// handOver assigns a task that has lost its agent or is retried: to the agent that the request
// named, or to another capable one.
func (dd delegationDecision) handOver(t *state.Task, last string, gone departures) {
	d := t.Delegation()
	if t.View.State != wire.TaskPending || d.Next.After(dd.at) || t.Postponed() {
		return // it has ended, or it or its retry is not due
	}
	a, err := dd.chooseTarget(t.View.Type, d.Target, d.Chain, last, gone)
	if err != nil {
		dd.failHanded(t, delegation.FaultOf(err))
		return
	}
	dd.assignDelegated(t, a)
}

// departures holds the agents that have departed and do not come back by themselves, with the
// reason.
type departures map[*state.KnownAgent]string

// takeBack requeues the delegated tasks of an agent that is not restarted automatically.
func (dd delegationDecision) takeBack(a *state.KnownAgent, why string) {
	if dd.departed == nil {
		dd.departed = make(departures)
	}
	dd.departed[a] = why
	for _, t := range slices.Clone(a.Holds) {
		if t.Way == assignedDelegated && !t.View.State.Final() {
			dd.tasks().requeue(t, &state.TaskRequeued{Why: why, Blameless: true})
		}
	}
}

// retries schedules a retry of a failed task, if its agent reported that this may succeed and
// the limit is not reached. It reports whether it did.
func (dd delegationDecision) retries(t *state.Task, fault *delegation.Fault) bool {
	d := t.Delegation()
	if d == nil || !fault.Recoverable || d.Retries >= dd.state.Rules.DelegationRetries {
		return false
	}
	parts := t.Parts()
	dd.questions().cancelQuestions(t)
	dd.questions().endPermissions(t)
	next := dd.at.Add(retryDelays[min(d.Retries, len(retryDelays)-1)])
	dd.fact("", t.View.ID, &state.TaskRetried{ID: t.View.ID, Name: t.View.Name, Agent: t.View.AssignedTo, Fault: fault, Next: object.Timestamp(next)})
	dd.cancelParts(parts, "")
	return true
}

// retryDelays are the delays between a failure and the next attempt.
var retryDelays = [...]time.Duration{time.Second, 2 * time.Second, 4 * time.Second}

// shift requeues tasks that a stopped agent has not begun, if another agent can do them and the
// request named none.
func (dd delegationDecision) shift(a *state.KnownAgent) {
	for _, t := range slices.Clone(a.Holds) {
		d := t.Delegation()
		if d == nil || !d.Waits() || d.Target != "" {
			continue
		}
		if _, err := dd.bestCapable(t.View.Type, d.Chain, "", nil); err == nil {
			dd.tasks().requeue(t, &state.TaskRequeued{Why: "its agent is no longer running", Blameless: true})
		}
	}
}

// tryAgain handles delegated tasks that are due: it retries them, or answers a status request
// that their agent did not.
func (dd delegationDecision) tryAgain() {
	for len(dd.state.Delegations.Due) > 0 && !dd.state.Delegations.Due[0].Due.After(dd.at) && !dd.state.Stopping {
		d := dd.state.Delegations.Due[0]
		if !d.Asked.IsZero() && !d.Asked.After(dd.at) {
			dd.tellStanding(d)
			continue
		}
		dd.handOver(d.Task, "", dd.departed)
	}
}

// tellStanding sends the known status of a task to its source, because its agent does not
// answer. It repeats the latest response of the agent if that is current.
func (dd delegationDecision) tellStanding(d *state.DelegatedWork) {
	t := d.Task
	if d.Said != t.View.State.Response() {
		dd.speakFor(t, dd.state.Questions.Response(t, nil))
		return
	}
	dd.fact(t.View.SubmittedBy, t.View.ID, &state.TaskResponded{ID: t.View.ID, Name: t.View.Name, Agent: t.View.AssignedTo, Status: d.Said, Own: true, Again: true})
}

// cancelParts cancels parts that no task waits for. The agent quiet is not notified.
func (dd delegationDecision) cancelParts(parts []*state.DelegatedWork, quiet string) {
	for _, d := range parts {
		if !d.Task.View.State.Final() {
			dd.own.tasks().cancel(d.Task, "Its parent task has ended", end{quiet: quiet})
			dd.links().abandon(d.Task, quiet)
		}
	}
}
