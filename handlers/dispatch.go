package handlers

import "orchestrator/wire"

// match is the first task for which there is an agent, and the agent.
func (m *market) match() (best *task, to *agent) {
	for _, d := range m.demands {
		k := d.head()
		if best != nil && !k.before(best) {
			continue
		}
		among := m.freed
		if d.round == m.round {
			among = m.free
		}
		if a := d.first(among); a != nil {
			best, to = k, a
		}
	}
	return best, to
}

// first is the first agent that a demand fits.
func (d *demand) first(agents []*agent) *agent {
	for _, a := range agents {
		if a.actor != d.submitter && a.offers(d.role, d.capabilities) {
			return a
		}
	}
	return nil
}

// settled notes that all was given out.
func (m *market) settled() {
	clear(m.freed)
	m.freed = m.freed[:0]
	m.round++
	m.fresh = false
}

// dispatch gives waiting tasks to free agents, until there is no task or no
// agent for it.
func (t *turn) dispatch() {
	m := &t.market
	if t.stopping || !m.fresh && len(m.freed) == 0 {
		return
	}
	for {
		k, a := m.match()
		if k == nil {
			m.settled()
			return
		}
		t.assign(k, a)
	}
}

// assign gives a task to an agent and tells it.
func (t *turn) assign(k *task, a *agent) {
	defer func(from Actor) { t.from = from }(t.from)
	t.from = Actor{} // it is the orchestrator that decides this
	t.take(k, a)
	t.notice(Actor{Kind: Agent, Name: a.ID, Run: a.run}, wire.NoticeAssigned, k.view.ID,
		&wire.TaskNotice{TaskID: k.view.ID, Message: wire.AssignedMessage})
}

// take puts a task into the hands of an agent, which knows of it.
func (t *turn) take(k *task, a *agent) {
	t.fact(a.actor, k.view.ID, &taskAssigned{ID: k.view.ID, Name: k.view.Name, Agent: a.ID, Run: a.run, Attempt: k.view.Attempts + 1})
}
