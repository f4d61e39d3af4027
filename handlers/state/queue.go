package state

import (
	"cmp"
	"slices"
	"time"

	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

// A taskQueue matches waiting tasks with free agents.
//
// After each turn no waiting task fits a free agent. The next turn therefore checks only the
// changes: buckets that have become non-empty, and agents that have become free. Without changes it
// checks none.
type taskQueue struct {
	Waiting queue.Queue[*Task, demand]
	Free    []*KnownAgent // agents that can get a task, by patience
	Fresh   []*bucket     // buckets that became non-empty in this round
	Freed   []*KnownAgent // agents that became free in this round, by patience
	round   int64         // grows when all has been given out
	key     []byte        // buffer for a key
	index   *match.Index
}

// A bucket holds the waiting tasks of one demand.
type bucket = queue.Bucket[*Task, demand]

// A demand has the needs of a task in an agent. The submitter is part of it, since an agent never
// gets its own tasks.
type demand struct {
	role         string
	capabilities []string
	submitter    string
	wants        *requirements // further requirements
	round        int64         // of the last change of its bucket from empty to not empty
}

// SpareDemands is the number of empty buckets that are kept for later tasks. There are few
// different ones, even with many tasks.
const SpareDemands = 1024

func newTaskQueue(index *match.Index) taskQueue {
	return taskQueue{index: index, Waiting: queue.New[*Task, demand](SpareDemands), round: 1}
}

// Enqueue adds a task to the tasks that wait for an agent, unless it is held back. A task with a
// role or capabilities goes to the queue; one with only requirements goes to the requirement queue.
func (ts *tasks) Enqueue(t *Task) {
	if t.View.State != wire.TaskPending || ts.Graph.Open(t.Node) > 0 || t.Demand != nil || t.Delegation() != nil || t.Postponed() {
		return
	}
	if !t.Asks() {
		if t.Wants() != nil && t.Extra.Bucket == nil {
			ts.Required.add(t)
		}
		return
	}
	ts.Queue.add(t)
}

// Postponed reports whether a task is not given out yet, because its agent has given it back
// until a time.
func (t *Task) Postponed() bool { return t.Extra != nil && !t.Extra.After.IsZero() }

// Date implements queue.Timed.
func (t *Task) Date() (time.Time, int64) { return t.Extra.After, t.Number }

// postpone sets the time before which a task is not given out. The zero time ends that.
func (ts *tasks) postpone(t *Task, after time.Time) {
	if t.Postponed() {
		ts.Later.Drop(t)
	} else if after.IsZero() {
		return
	}
	ts.beforeChange(t)
	d := t.View.Details.Copy()
	t.EnsureExtra().After, d.After = after, Stamped(after)
	t.View.Details = d.Filled()
	if !after.IsZero() {
		ts.Later.Add(t)
	}
}

// afterOnly returns the details of a postponed task in short form, or nil.
func (t *Task) afterOnly() *wire.Details {
	if !t.Postponed() {
		return nil
	}
	return &wire.Details{After: t.View.After}
}

// TaskDue records that the time has come before which a task was not given out.
type TaskDue struct {
	ID   string `json:"task"`
	Name string `json:"name"`
}

func (*TaskDue) kind() string { return events.TaskDue }

func (t *TaskDue) apply(s *State, _ *wire.Record) {
	k := s.Tasks.ByID[t.ID]
	s.Tasks.postpone(k, time.Time{})
	s.Tasks.Enqueue(k)
}

// unqueue removes a waiting task from its queue.
func (ts *tasks) unqueue(t *Task) {
	if t.Demand != nil {
		ts.Queue.drop(t)
	}
	if t.Extra != nil && t.Extra.Bucket != nil {
		ts.Required.drop(t)
	}
}

// add lets a task wait in the bucket of its demand.
func (tq *taskQueue) add(t *Task) {
	t.Demand = tq.bucketOf(t)
	if tq.Waiting.Add(t.Demand, t) && t.Demand.Asks.round != tq.round {
		t.Demand.Asks.round = tq.round
		tq.Fresh = append(tq.Fresh, t.Demand)
	}
}

// bucketOf returns the bucket for a task.
func (tq *taskQueue) bucketOf(t *Task) *bucket {
	capabilities := t.View.RequiredCapabilities
	if !slices.IsSorted(capabilities) {
		capabilities = slices.Sorted(slices.Values(capabilities))
	}
	tq.key = queue.AppendKey(queue.AppendKey(tq.key[:0], t.View.RequiredRole), t.View.SubmittedBy)
	for _, c := range capabilities {
		tq.key = queue.AppendKey(tq.key, c)
	}
	if w := t.Wants(); w != nil {
		tq.key = append(append(tq.key, 0xff), w.Key...) // no length begins like this
	}
	if b := tq.Waiting.Find(tq.key); b != nil {
		return b
	}
	return tq.Waiting.Open(tq.key, capabilities, demand{
		role: t.View.RequiredRole, capabilities: capabilities, submitter: t.View.SubmittedBy, wants: t.Wants(),
	})
}

// drop takes a task out of its bucket.
func (tq *taskQueue) drop(t *Task) {
	tq.Waiting.Remove(t.Demand, t)
	t.Demand = nil
}

// removeIdle removes an agent from the free agents. It must be called before the agent changes,
// and addIdle after that.
func (tq *taskQueue) removeIdle(a *KnownAgent) {
	if !a.Offered {
		return
	}
	a.Offered = false
	tq.Free = without(tq.Free, a)
	tq.Freed = without(tq.Freed, a)
}

// AddIdle adds an agent to the free agents, if it can get a task, and updates its standing.
func (s *State) AddIdle(a *KnownAgent) {
	s.updateStanding(a)
	if a.Offered || !a.Takes() {
		return
	}
	a.Offered = true
	s.Tasks.Queue.Free = with(s.Tasks.Queue.Free, a)
	s.Tasks.Queue.Freed = with(s.Tasks.Queue.Freed, a)
}

// updateStanding updates the state of an agent in the index.
func (s *State) updateStanding(a *KnownAgent) {
	if a == nil || s.Agents.ByID[a.ID] != a {
		return
	}
	running := a.Running
	if s.Rules.CountAssigned {
		running = len(a.Holds)
	}
	capacity := a.Capacity
	if a.Remote != nil && !s.Access.HasKey(a.ID) || !a.Limited.IsZero() {
		capacity = 0 // it has no key to fetch its tasks, or its vendor limits the use
	}
	s.Agents.Index.Stand(a.ID, match.Standing{Online: a.Online(), Running: running, Capacity: capacity, Load: len(a.Holds)})
}

func with(agents []*KnownAgent, a *KnownAgent) []*KnownAgent {
	at, _ := slices.BinarySearchFunc(agents, a, ByPatience)
	return slices.Insert(agents, at, a)
}

func without(agents []*KnownAgent, a *KnownAgent) []*KnownAgent {
	if at, there := slices.BinarySearchFunc(agents, a, ByPatience); there {
		return slices.Delete(agents, at, at+1)
	}
	return agents
}

// ByPatience orders agents for dispatch: by the number of their tasks, then by the time of their
// last task, then by age.
func ByPatience(a, b *KnownAgent) int {
	if c := cmp.Compare(len(a.Holds), len(b.Holds)); c != 0 {
		return c
	}
	if c := cmp.Compare(a.Given, b.Given); c != 0 {
		return c
	}
	return cmp.Compare(a.number, b.number)
}

// requirements has the demands of a task's requirements document on an agent.
type requirements struct {
	match.Demand
	Key   []byte   // equal for equal requirements
	under []string // the agent's necessary values, as keys of the index
}

func newWants(r *hub.Requirements) *requirements {
	return wantsOf(&match.Demand{
		Repo: r.Repo, Languages: r.Languages, Environments: r.Environments, Tools: r.Tools, Tags: r.Tags, Prefer: r.Prefer,
	})
}

func wantsOf(d *match.Demand) *requirements {
	w := &requirements{Demand: *d}
	w.Key = queue.AppendKey(queue.AppendKey(nil, d.Repo), d.Prefer)
	for _, texts := range [][]string{d.Languages, d.Environments, d.Tools, d.Tags} {
		w.Key = queue.AppendKey(w.Key, "")
		for _, text := range texts {
			w.Key = queue.AppendKey(w.Key, text)
		}
	}
	if d.Repo != "" {
		w.under = append(w.under, underRepo+d.Repo)
	}
	for _, l := range d.Languages {
		w.under = append(w.under, underLanguage+l)
	}
	return w
}

// The prefixes of index keys, which keep repositories and languages apart.
const (
	underRepo     = "repo "
	underLanguage = "language "
)

// A requirementQueue holds the waiting tasks with requirements, by their requirements. It is
// checked when an agent appears, gets room or gains capabilities, and only under the keys of
// that agent.
type requirementQueue struct {
	Waiting queue.Queue[*Task, *requirements]
	Order   []*KnownAgent // agents that have gained abilities or room in this turn
}

// A requirementBucket holds the waiting tasks with the same requirements.
type requirementBucket = queue.Bucket[*Task, *requirements]

func newRequirementQueue() requirementQueue {
	return requirementQueue{Waiting: queue.New[*Task, *requirements](0)}
}

// add lets a task wait.
func (r *requirementQueue) add(t *Task) {
	b := r.Waiting.Find(t.Wants().Key)
	if b == nil {
		b = r.Waiting.Open(t.Wants().Key, t.Wants().under, t.Wants())
	}
	r.Waiting.Add(b, t)
	t.Extra.Bucket = b
}

// drop takes a task out.
func (r *requirementQueue) drop(t *Task) {
	r.Waiting.Remove(t.Extra.Bucket, t)
	t.Extra.Bucket = nil
}

// markChanged marks an agent that has appeared, has room again or has new capabilities.
func (r *requirementQueue) markChanged(a *KnownAgent) {
	if r.Waiting.Len() > 0 && !slices.Contains(r.Order, a) {
		r.Order = append(r.Order, a)
	}
}

// ResetChanged clears the marks after everything was assigned.
func (r *requirementQueue) ResetChanged() {
	clear(r.Order)
	r.Order = r.Order[:0]
}

// Asks reports whether a task is dispatched by its role and its capabilities.
func (t *Task) Asks() bool { return t.View.RequiredRole != "" || len(t.View.RequiredCapabilities) > 0 }
