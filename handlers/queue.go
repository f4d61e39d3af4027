package handlers

import (
	"cmp"
	"encoding/binary"
	"slices"

	"orchestrator/handlers/match"
	"orchestrator/wire"
)

// A taskQueue matches waiting tasks with free agents.
//
// After each turn no waiting task fits a free agent. The next turn therefore checks only what
// has changed: buckets that have become non-empty, and agents that have become free. If nothing
// has changed, nothing is checked.
type taskQueue struct {
	byKey map[string]*bucket
	// The buckets with waiting tasks, each under one of its capabilities: the one with the
	// fewest buckets. Buckets without capabilities are under "". An agent checks only its own
	// capabilities.
	under map[string][]*bucket
	free  []*agent  // agents that can get a task, by patience
	fresh []*bucket // of this round
	freed []*agent  // those that became free in this round, by patience
	round int64     // grows when all has been given out
	key   []byte    // buffer for a key
	index *match.Index
}

// A bucket holds the waiting tasks that ask the same of an agent. The submitter is part of it,
// since an agent never gets its own tasks. The tasks of a bucket differ only in their order.
type bucket struct {
	role         string
	capabilities []string
	submitter    string
	wants        *requirements // further requirements
	waiting      [urgencies]taskList
	size         int
	key          string
	filed        string // under this capability
	at           int    // its index there
	round        int64  // in which it was last empty and then not
}

// spareDemands is the number of empty buckets that are kept for later tasks. There are few
// different ones, even with many tasks.
const spareDemands = 1024

func newTaskQueue(index *match.Index) taskQueue {
	return taskQueue{index: index, byKey: make(map[string]*bucket), under: make(map[string][]*bucket), round: 1}
}

// enqueue adds a task to those that wait for an agent, unless something holds it back. A task
// with a role or capabilities goes to the queue; one with only requirements goes to the
// requirement queue.
func (t *tasks) enqueue(k *task) {
	if k.view.State != wire.TaskPending || t.graph.Open(k.node) > 0 || k.demand != nil || k.delegation() != nil {
		return
	}
	if !k.asks() {
		if k.wants() != nil && k.more.bucket == nil {
			t.required.add(k)
		}
		return
	}
	d := t.queue.demand(k)
	if d.size == 0 {
		t.queue.file(d)
	}
	d.waiting[k.urgency] = d.waiting[k.urgency].with(k)
	d.size++
	k.demand = d
}

// unqueue removes a waiting task from its queue.
func (t *tasks) unqueue(k *task) {
	if k.demand != nil {
		t.queue.drop(k)
	}
	if k.more != nil && k.more.bucket != nil {
		t.required.drop(k)
	}
}

// demand finds the demand of a task.
func (t *taskQueue) demand(k *task) *bucket {
	capabilities := k.view.RequiredCapabilities
	if !slices.IsSorted(capabilities) {
		capabilities = slices.Sorted(slices.Values(capabilities))
	}
	t.key = appendPart(appendPart(t.key[:0], k.view.RequiredRole), k.view.SubmittedBy)
	for _, c := range capabilities {
		t.key = appendPart(t.key, c)
	}
	if w := k.wants(); w != nil {
		t.key = append(append(t.key, 0xff), w.key...) // no length begins like this
	}
	d := t.byKey[string(t.key)]
	if d == nil {
		d = &bucket{
			role: k.view.RequiredRole, capabilities: capabilities, submitter: k.view.SubmittedBy, wants: k.wants(), key: string(t.key),
		}
		t.byKey[d.key] = d
	}
	return d
}

// appendPart appends a text to a key, preceded by its length.
func appendPart(key []byte, text string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(text))), text...)
}

// file adds a bucket to the index.
func (t *taskQueue) file(d *bucket) {
	d.filed = ""
	for i, c := range d.capabilities {
		if i == 0 || len(t.under[c]) < len(t.under[d.filed]) {
			d.filed = c
		}
	}
	d.at = len(t.under[d.filed])
	t.under[d.filed] = append(t.under[d.filed], d)
	if d.round != t.round {
		d.round = t.round
		t.fresh = append(t.fresh, d)
	}
}

// unfile removes an empty bucket from the index.
func (t *taskQueue) unfile(d *bucket) {
	beside := t.under[d.filed]
	last := len(beside) - 1
	beside[d.at], beside[last].at = beside[last], d.at
	beside[last] = nil
	if last > 0 {
		t.under[d.filed] = beside[:last]
	} else {
		delete(t.under, d.filed)
	}
	if len(t.byKey) > spareDemands {
		delete(t.byKey, d.key)
	}
}

// drop takes a task out of its demand.
func (t *taskQueue) drop(k *task) {
	d := k.demand
	k.demand = nil
	d.waiting[k.urgency] = d.waiting[k.urgency].without(k)
	d.size--
	if d.size == 0 {
		t.unfile(d)
	}
}

// head returns the next task of a bucket, or nil.
func (b *bucket) head() *task {
	for _, line := range b.waiting {
		if len(line) > 0 {
			return line[0]
		}
	}
	return nil
}

// removeIdle removes an agent from the free agents. It must be called before the agent changes,
// and addIdle after that.
func (t *taskQueue) removeIdle(a *agent) {
	if !a.offered {
		return
	}
	a.offered = false
	t.free = without(t.free, a)
	t.freed = without(t.freed, a)
}

// addIdle adds an agent to the free agents, if it can get a task, and updates its standing.
func (s *State) addIdle(a *agent) {
	s.updateStanding(a)
	if a.offered || !a.takes() {
		return
	}
	a.offered = true
	s.tasks.queue.free = with(s.tasks.queue.free, a)
	s.tasks.queue.freed = with(s.tasks.queue.freed, a)
}

// updateStanding updates the state of an agent in the index.
func (s *State) updateStanding(a *agent) {
	if a == nil || s.agents.byID[a.ID] != a {
		return
	}
	running := a.running
	if s.rules.CountAssigned {
		running = len(a.holds)
	}
	capacity := a.Capacity
	if a.remote != nil && !s.access.HasKey(a.ID) {
		capacity = 0 // it has no key to fetch its tasks
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

// byPatience orders agents for dispatch: by the number of their tasks, then by the time of their
// last task, then by age.
func byPatience(a, b *agent) int {
	if c := cmp.Compare(len(a.holds), len(b.holds)); c != 0 {
		return c
	}
	if c := cmp.Compare(a.given, b.given); c != 0 {
		return c
	}
	return cmp.Compare(a.number, b.number)
}
