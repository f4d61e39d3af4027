package handlers

import (
	"slices"
	"strings"

	"orchestrator/wire"
)

// queues are the tasks that wait for an agent, those that ask for the same in
// one: there are few different demands, however many tasks there are.
type queues struct {
	byKey map[string]*demand
	all   []*demand // in the order in which they were first met
	size  int
}

// demand is what tasks ask of an agent, and those that ask it.
type demand struct {
	role         string
	capabilities []string
	waiting      [urgencies][]*task // in the order of their creation
	queues       *queues
}

// enqueue lets a task wait for an agent, if it goes by itself and nothing holds
// it back.
func (s *State) enqueue(k *task) {
	if k.view.State != wire.TaskPending || k.open > 0 || k.demand != nil ||
		k.view.RequiredRole == "" && len(k.view.RequiredCapabilities) == 0 {
		return
	}
	d := s.ready.of(k)
	line := d.waiting[k.urgency]
	at := len(line)
	for at > 0 && line[at-1].created > k.created { // it comes back, or was held up
		at--
	}
	d.waiting[k.urgency] = slices.Insert(line, at, k)
	k.demand = d
	s.ready.size++
}

// of finds the queue of a task.
func (q *queues) of(k *task) *demand {
	capabilities := slices.Sorted(slices.Values(k.view.RequiredCapabilities))
	key := k.view.RequiredRole + "\x00" + strings.Join(capabilities, "\x00")
	d := q.byKey[key]
	if d == nil {
		if q.byKey == nil {
			q.byKey = make(map[string]*demand)
		}
		d = &demand{role: k.view.RequiredRole, capabilities: capabilities, queues: q}
		q.byKey[key] = d
		q.all = append(q.all, d)
	}
	return d
}

// drop takes a task out of its queue. It is nearly always the first.
func (d *demand) drop(k *task) {
	line := d.waiting[k.urgency]
	i := slices.Index(line, k)
	if i == 0 {
		line[0] = nil
		d.waiting[k.urgency] = line[1:]
	} else {
		d.waiting[k.urgency] = slices.Delete(line, i, i+1)
	}
	k.demand = nil
	d.queues.size--
}

// head is the task whose turn it is, nil if none waits. A task that cannot go
// to any agent but the one that submitted it does not hold up the others.
func (d *demand) head() *task {
	for _, line := range d.waiting {
		if len(line) > 0 {
			return line[0]
		}
	}
	return nil
}

// before says whether a task is to be given out before another.
func (k *task) before(o *task) bool {
	if k.urgency != o.urgency {
		return k.urgency < o.urgency
	}
	return k.created < o.created
}

// dispatch gives waiting tasks to idle agents, until there is no task or no
// agent for it.
func (t *turn) dispatch() {
	if t.ready.size == 0 || t.stopping || !slices.ContainsFunc(t.order, (*agent).takes) {
		return
	}
	for {
		k, a := t.next()
		if k == nil {
			return
		}
		t.assign(k, a)
	}
}

// next is the first task for which there is an agent, and the agent.
func (t *turn) next() (best *task, to *agent) {
	for _, d := range t.ready.all {
		k, a := t.first(d)
		if k != nil && (best == nil || k.before(best)) {
			best, to = k, a
		}
	}
	return best, to
}

// first is the first task of a queue for which there is an agent. Tasks differ
// only in who submitted them, which matters when that is the only agent.
func (t *turn) first(d *demand) (*task, *agent) {
	candidates := t.candidates(d)
	if len(candidates) == 0 {
		return nil, nil
	}
	for _, line := range d.waiting {
		for _, k := range line {
			for _, a := range candidates {
				if k.view.SubmittedBy != a.actor {
					return k, a
				}
			}
		}
	}
	return nil, nil
}

// candidates are at most two agents that a demand fits: the one that has waited
// longest, and the next, for the tasks that the first submitted itself.
func (t *turn) candidates(d *demand) []*agent {
	var found []*agent
	for _, a := range t.order {
		if !a.takes() || !a.offers(d) {
			continue
		}
		at := len(found)
		for at > 0 && a.given < found[at-1].given {
			at--
		}
		found = slices.Insert(found, at, a)
		found = found[:min(len(found), 2)]
	}
	return found
}

// assign gives a task to an agent and tells it.
func (t *turn) assign(k *task, a *agent) {
	from := t.from
	t.from = Actor{} // it is the orchestrator that decides this
	if k.view.SubmittedBy == a.actor {
		t.from = from // but for an agent that takes its own
	}
	t.fact(a.actor, k.view.ID, &taskAssigned{ID: k.view.ID, Name: k.view.Name, Agent: a.ID, Run: a.run, Attempt: k.view.Attempts + 1})
	t.from = from
	if k.view.SubmittedBy != a.actor {
		t.notice(Actor{Kind: Agent, Name: a.ID, Run: a.run}, wire.NoticeAssigned, k.view.ID,
			&wire.TaskNotice{TaskID: k.view.ID, Message: wire.AssignedMessage})
	}
}
