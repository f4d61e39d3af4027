package handlers

import (
	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
)

// dispatch assigns waiting tasks to free agents until none match.
func (td taskDecision) dispatch() {
	td.rematch()
	m := &td.state.tasks.queue
	if td.state.stopping || len(m.fresh) == 0 && len(m.freed) == 0 {
		return
	}
	for {
		k, a := m.match()
		if k == nil {
			m.settled()
			return
		}
		td.assign(k, a)
	}
}

// match returns the first task that some agent fits, and the agent. One of them is new in this
// round.
func (t *taskQueue) match() (first *task, to *agent) {
	for _, d := range t.fresh {
		if k := d.Head(); k != nil && (first == nil || queue.Before(k, first)) {
			if a := t.mostPatient(d); a != nil {
				first, to = k, a
			}
		}
	}
	for _, a := range t.freed {
		first, to = t.better("", a, first, to)
		for _, c := range a.Capabilities {
			first, to = t.better(c, a, first, to)
		}
	}
	return first, to
}

// better returns the first task that fits, and its agent: one under a capability of a, or the
// best so far.
func (t *taskQueue) better(under string, a *agent, first *task, to *agent) (*task, *agent) {
	for _, d := range t.waiting.Under(under) {
		if k := d.Head(); (first == nil || queue.Before(k, first)) && t.fits(d, a) {
			first, to = k, a
		}
	}
	return first, to
}

// mostPatient returns the first free agent that fits a bucket.
func (t *taskQueue) mostPatient(d *bucket) *agent {
	for _, a := range t.free {
		if t.fits(d, a) {
			return a
		}
	}
	return nil
}

// fits reports whether an agent can get the tasks of a bucket. It must receive notices, or be a
// server that polls.
func (t *taskQueue) fits(d *bucket, a *agent) bool {
	asks := &d.Asks
	return a.actor != asks.submitter && a.hears() && a.offers(asks.role, asks.capabilities) &&
		(asks.wants == nil || t.index.Fits(&asks.wants.Demand, a.ID, match.Conditions{}))
}

// settled starts a new round after everything was dispatched.
func (t *taskQueue) settled() {
	clear(t.fresh)
	clear(t.freed)
	t.fresh, t.freed = t.fresh[:0], t.freed[:0]
	t.round++
}

// assign dispatches a task to an agent and notifies it.
func (td taskDecision) assign(k *task, a *agent) {
	defer func(from Actor) { td.from = from }(td.from)
	td.from = Actor{} // the orchestrator decides this
	td.take(k, a, &taskAssigned{})
	td.tell(a, k, wire.NoticeAssigned, wire.AssignedMessage)
}

// take assigns a task to an agent.
func (td taskDecision) take(k *task, a *agent, f *taskAssigned) {
	f.ID, f.Name, f.Agent, f.Run, f.Attempt = k.view.ID, k.view.Name, a.ID, a.run, k.view.Attempts+1
	parts := k.parts()
	td.fact(a.actor, k.view.ID, f)
	td.delegations().cancelParts(parts, "") // the new agent starts from the beginning
}
