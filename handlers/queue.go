package handlers

import (
	"cmp"
	"encoding/binary"
	"slices"

	"orchestrator/handlers/match"
	"orchestrator/wire"
)

// taskQueue is where tasks that wait and agents that are free meet.
//
// Each turn ends with nothing left that fits, so the next one need only look at
// what has changed since: demands in which a task waits again, and agents that
// are free again. With nothing new, however much waits, nothing is looked at.
type taskQueue struct {
	byKey map[string]*bucket
	// Demands in which a task waits, each under one capability that it asks for,
	// the one under which there are the fewest; those that ask for none are
	// under "". An agent looks only under what it has.
	under map[string][]*bucket
	free  []*agent  // that can be given a task, by patience
	fresh []*bucket // of this round
	freed []*agent  // those that became free in this round, by patience
	round int64     // grows when all has been given out
	key   []byte    // room to spell one
	index *match.Index
}

// bucket is what tasks ask of an agent, and those that ask it. It includes who
// submitted them, for an agent is never given its own: the tasks of a demand
// differ in nothing but whose turn it is.
type bucket struct {
	role         string
	capabilities []string
	submitter    string
	wants        *requirements // what it requires besides
	waiting      [urgencies]taskList
	size         int
	key          string
	filed        string // under this capability
	at           int    // in this place
	round        int64  // in which it was last empty and then not
}

// spareDemands are how many demands are kept for the next task that asks for
// the same: there are few different ones, however many tasks there are.
const spareDemands = 1024

func newTaskQueue(index *match.Index) taskQueue {
	return taskQueue{index: index, byKey: make(map[string]*bucket), under: make(map[string][]*bucket), round: 1}
}

// enqueue lets a task wait for an agent, if it goes by itself and nothing holds
// it back: in the queue, or, when all that it says is what it requires, among
// the requirements.
func (s *State) enqueue(k *task) {
	if k.view.State != wire.TaskPending || s.tasks.graph.Open(k.node) > 0 || k.demand != nil || k.delegation() != nil {
		return
	}
	if !k.asks() {
		if k.wants() != nil && k.more.bucket == nil {
			s.tasks.required.add(k)
		}
		return
	}
	d := s.tasks.queue.demand(k)
	if d.size == 0 {
		s.tasks.queue.file(d)
	}
	d.waiting[k.urgency] = d.waiting[k.urgency].with(k)
	d.size++
	k.demand = d
}

// unqueue takes a task from wherever it waits.
func (s *State) unqueue(k *task) {
	if k.demand != nil {
		s.tasks.queue.drop(k)
	}
	if k.more != nil && k.more.bucket != nil {
		s.tasks.required.drop(k)
	}
}

// demand finds the demand of a task.
func (m *taskQueue) demand(k *task) *bucket {
	capabilities := k.view.RequiredCapabilities
	if !slices.IsSorted(capabilities) {
		capabilities = slices.Sorted(slices.Values(capabilities))
	}
	m.key = appendPart(appendPart(m.key[:0], k.view.RequiredRole), k.view.SubmittedBy)
	for _, c := range capabilities {
		m.key = appendPart(m.key, c)
	}
	if w := k.wants(); w != nil {
		m.key = append(append(m.key, 0xff), w.key...) // no length begins like this
	}
	d := m.byKey[string(m.key)]
	if d == nil {
		d = &bucket{
			role: k.view.RequiredRole, capabilities: capabilities, submitter: k.view.SubmittedBy, wants: k.wants(), key: string(m.key),
		}
		m.byKey[d.key] = d
	}
	return d
}

// appendPart appends a text to a key, so that it does not run into the next.
func appendPart(key []byte, text string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(text))), text...)
}

// file puts a demand where agents find it.
func (m *taskQueue) file(d *bucket) {
	d.filed = ""
	for i, c := range d.capabilities {
		if i == 0 || len(m.under[c]) < len(m.under[d.filed]) {
			d.filed = c
		}
	}
	d.at = len(m.under[d.filed])
	m.under[d.filed] = append(m.under[d.filed], d)
	if d.round != m.round {
		d.round = m.round
		m.fresh = append(m.fresh, d)
	}
}

// unfile takes out a demand in which nothing waits any more.
func (m *taskQueue) unfile(d *bucket) {
	beside := m.under[d.filed]
	last := len(beside) - 1
	beside[d.at], beside[last].at = beside[last], d.at
	beside[last] = nil
	if last > 0 {
		m.under[d.filed] = beside[:last]
	} else {
		delete(m.under, d.filed)
	}
	if len(m.byKey) > spareDemands {
		delete(m.byKey, d.key)
	}
}

// drop takes a task out of its demand.
func (m *taskQueue) drop(k *task) {
	d := k.demand
	k.demand = nil
	d.waiting[k.urgency] = d.waiting[k.urgency].without(k)
	d.size--
	if d.size == 0 {
		m.unfile(d)
	}
}

// head is the task whose turn it is, nil if none waits.
func (d *bucket) head() *task {
	for _, line := range d.waiting {
		if len(line) > 0 {
			return line[0]
		}
	}
	return nil
}

// removeIdle takes an agent from those that are free. It is for before anything
// about it changes, and offer for after.
func (m *taskQueue) removeIdle(a *agent) {
	if !a.offered {
		return
	}
	a.offered = false
	m.free = without(m.free, a)
	m.freed = without(m.freed, a)
}

// addIdle puts an agent among those that are free, if it can be given a task, and
// notes where it stands.
func (s *State) addIdle(a *agent) {
	s.updateStanding(a)
	if a.offered || !a.takes() {
		return
	}
	a.offered = true
	s.tasks.queue.free = with(s.tasks.queue.free, a)
	s.tasks.queue.freed = with(s.tasks.queue.freed, a)
}

// updateStanding notes for the matching how an agent stands.
func (s *State) updateStanding(a *agent) {
	if a == nil || s.agents.byID[a.ID] != a {
		return
	}
	running := a.running
	if s.rules.CountAssigned {
		running = len(a.holds)
	}
	capacity := a.Capacity
	if a.remote != nil && !s.access.letsIn(a.ID) {
		capacity = 0 // no agent could fetch what it is given
	}
	s.agents.index.Stand(a.ID, match.Standing{Online: a.online(), Running: running, Capacity: capacity, Load: len(a.holds)})
}

func with(agents []*agent, a *agent) []*agent {
	at, _ := slices.BinarySearchFunc(agents, a, byPatience)
	return slices.Insert(agents, at, a)
}

func without(agents []*agent, a *agent) []*agent {
	if at, there := slices.BinarySearchFunc(agents, a, byPatience); there {
		return slices.Delete(agents, at, at+1)
	}
	return agents
}

// byPatience puts the agent first that has the fewest tasks, of those the one
// that has waited longest, and of those that never had a task the one that was
// known first.
func byPatience(a, b *agent) int {
	if c := cmp.Compare(len(a.holds), len(b.holds)); c != 0 {
		return c
	}
	if c := cmp.Compare(a.given, b.given); c != 0 {
		return c
	}
	return cmp.Compare(a.number, b.number)
}
