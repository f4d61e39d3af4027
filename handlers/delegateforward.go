package handlers

import (
	"slices"

	"orchestrator/handlers/history"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
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
	clear(dd.state.delegations.look)
	dd.state.delegations.look = dd.state.delegations.look[:0]
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
	case wire.TaskRunning, wire.TaskNeedsHuman:
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
	dd.ownFact(a.actor, k.view.ID, &taskForwarded{ID: k.view.ID, Name: k.view.Name, Agent: a.ID, Run: a.run})
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
	clear(dd.state.delegations.fresh)
	dd.state.delegations.fresh = dd.state.delegations.fresh[:0]
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
func (s *State) Given(agent, id string) bool {
	k := s.tasks.byID[id]
	return k != nil && k.view.AssignedTo == agent && agent != ""
}

// Does reports whether any agent has a capability.
func (s *State) Does(kind string) bool {
	return slices.ContainsFunc(s.agents.order, func(a *agent) bool { return slices.Contains(a.Capabilities, kind) })
}

// LineOf returns the line in a record, as it is sent to its recipient.
func LineOf(r wire.Record) (wire.Raw, error) {
	f, err := decode(&r)
	if err != nil {
		return nil, err
	}
	return history.LineOf(f, &r)
}
