package handlers

import (
	"cmp"
	"slices"

	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
)

// A taskQueue matches waiting tasks with free agents.
//
// After each turn no waiting task fits a free agent. The next turn therefore checks only what
// has changed: buckets that have become non-empty, and agents that have become free. If nothing
// has changed, nothing is checked.
type taskQueue struct {
	waiting queue.Queue[*task, demand]
	free    []*agent  // agents that can get a task, by patience
	fresh   []*bucket // those that became non-empty in this round
	freed   []*agent  // those that became free in this round, by patience
	round   int64     // grows when all has been given out
	key     []byte    // buffer for a key
	index   *match.Index
}

// A bucket holds the waiting tasks of one demand.
type bucket = queue.Bucket[*task, demand]

// A demand is what a task asks of an agent. The submitter is part of it, since an agent never
// gets its own tasks.
type demand struct {
	role         string
	capabilities []string
	submitter    string
	wants        *requirements // further requirements
	round        int64         // in which its bucket was last empty and then not
}

// spareDemands is the number of empty buckets that are kept for later tasks. There are few
// different ones, even with many tasks.
const spareDemands = 1024

func newTaskQueue(index *match.Index) taskQueue {
	return taskQueue{index: index, waiting: queue.New[*task, demand](spareDemands), round: 1}
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
	t.queue.add(k)
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

// add lets a task wait in the bucket of its demand.
func (t *taskQueue) add(k *task) {
	k.demand = t.bucketOf(k)
	if t.waiting.Add(k.demand, k) && k.demand.Asks.round != t.round {
		k.demand.Asks.round = t.round
		t.fresh = append(t.fresh, k.demand)
	}
}

// bucketOf returns the bucket for a task.
func (t *taskQueue) bucketOf(k *task) *bucket {
	capabilities := k.view.RequiredCapabilities
	if !slices.IsSorted(capabilities) {
		capabilities = slices.Sorted(slices.Values(capabilities))
	}
	t.key = queue.AppendKey(queue.AppendKey(t.key[:0], k.view.RequiredRole), k.view.SubmittedBy)
	for _, c := range capabilities {
		t.key = queue.AppendKey(t.key, c)
	}
	if w := k.wants(); w != nil {
		t.key = append(append(t.key, 0xff), w.key...) // no length begins like this
	}
	if b := t.waiting.Find(t.key); b != nil {
		return b
	}
	return t.waiting.Open(t.key, capabilities, demand{
		role: k.view.RequiredRole, capabilities: capabilities, submitter: k.view.SubmittedBy, wants: k.wants(),
	})
}

// drop takes a task out of its bucket.
func (t *taskQueue) drop(k *task) {
	t.waiting.Remove(k.demand, k)
	k.demand = nil
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
	if a.remote != nil && !s.access.HasKey(a.ID) || !a.limited.IsZero() {
		capacity = 0 // it has no key to fetch its tasks, or its vendor limits the use
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
