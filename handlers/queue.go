package handlers

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
	if k.view.State != wire.TaskPending || t.graph.Open(k.node) > 0 || k.demand != nil || k.delegation() != nil || k.postponed() {
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

// postponed reports whether a task is not given out yet, because its agent has given it back
// until a time.
func (t *task) postponed() bool { return t.more != nil && !t.more.after.IsZero() }

// Date implements queue.Timed.
func (t *task) Date() (time.Time, int64) { return t.more.after, t.created }

// postpone sets the time before which a task is not given out. The zero time ends that.
func (t *tasks) postpone(k *task, after time.Time) {
	if k.postponed() {
		t.later.Drop(k)
	} else if after.IsZero() {
		return
	}
	t.beforeChange(k)
	d := k.view.Details.Copy()
	k.needsMore().after, d.After = after, stamped(after)
	k.view.Details = d.Filled()
	if !after.IsZero() {
		t.later.Add(k)
	}
}

// afterOnly returns the details of a postponed task in short form, or nil.
func (t *task) afterOnly() *wire.Details {
	if !t.postponed() {
		return nil
	}
	return &wire.Details{After: t.view.After}
}

// taskDue records that the time has come before which a task was not given out.
type taskDue struct {
	ID   string `json:"task"`
	Name string `json:"name"`
}

func (*taskDue) kind() string { return events.TaskDue }

func (t *taskDue) apply(s *core, _ *wire.Record) {
	k := s.tasks.byID[t.ID]
	s.tasks.postpone(k, time.Time{})
	s.tasks.enqueue(k)
}

// resumePostponed gives out the postponed tasks whose time has come.
func (td taskDecision) resumePostponed() {
	for later := &td.state.tasks.later; len(*later) > 0 && !td.state.stopping; {
		k := (*later)[0]
		if k.more.after.After(td.at) {
			return
		}
		td.own.fact("", k.view.ID, &taskDue{ID: k.view.ID, Name: k.view.Name})
		td.lostTasks = append(td.lostTasks, lostTask{task: k})
	}
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
func (s *core) addIdle(a *agent) {
	s.updateStanding(a)
	if a.offered || !a.takes() {
		return
	}
	a.offered = true
	s.tasks.queue.free = with(s.tasks.queue.free, a)
	s.tasks.queue.freed = with(s.tasks.queue.freed, a)
}

// updateStanding updates the state of an agent in the index.
func (s *core) updateStanding(a *agent) {
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

// requirements is what the requirements document of a task asks of an agent.
type requirements struct {
	match.Demand
	key   []byte   // equal for equal requirements
	under []string // what an agent must have, as keys of the index
}

func newWants(r *hub.Requirements) *requirements {
	return wantsOf(&match.Demand{
		Repo: r.Repo, Languages: r.Languages, Environments: r.Environments, Tools: r.Tools, Tags: r.Tags, Prefer: r.Prefer,
	})
}

func wantsOf(d *match.Demand) *requirements {
	w := &requirements{Demand: *d}
	w.key = queue.AppendKey(queue.AppendKey(nil, d.Repo), d.Prefer)
	for _, texts := range [][]string{d.Languages, d.Environments, d.Tools, d.Tags} {
		w.key = queue.AppendKey(w.key, "")
		for _, text := range texts {
			w.key = queue.AppendKey(w.key, text)
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
	waiting queue.Queue[*task, *requirements]
	order   []*agent // agents that have gained something in this turn
}

// A requirementBucket holds the waiting tasks with the same requirements.
type requirementBucket = queue.Bucket[*task, *requirements]

func newRequirementQueue() requirementQueue {
	return requirementQueue{waiting: queue.New[*task, *requirements](0)}
}

// add lets a task wait.
func (r *requirementQueue) add(k *task) {
	b := r.waiting.Find(k.wants().key)
	if b == nil {
		b = r.waiting.Open(k.wants().key, k.wants().under, k.wants())
	}
	r.waiting.Add(b, k)
	k.more.bucket = b
}

// drop takes a task out.
func (r *requirementQueue) drop(k *task) {
	r.waiting.Remove(k.more.bucket, k)
	k.more.bucket = nil
}

// gain marks an agent that has appeared, has room again or has new capabilities.
func (r *requirementQueue) gain(a *agent) {
	if r.waiting.Len() > 0 && !slices.Contains(r.order, a) {
		r.order = append(r.order, a)
	}
}

// looked clears the marks after everything was assigned.
func (r *requirementQueue) looked() {
	clear(r.order)
	r.order = r.order[:0]
}

// rematch assigns waiting tasks with requirements as long as an agent that was marked has room.
// The most urgent task comes first, then the oldest; each goes to the agent that fits it best.
// Tasks that are not started count as load, since otherwise a new agent would get all of them.
func (td taskDecision) rematch() {
	w := &td.state.tasks.required
	defer w.looked()
	if td.state.stopping || td.state.rules.IgnoreArrivals || w.waiting.Len() == 0 {
		return
	}
	for i := 0; i < len(w.order); i++ { // assigning one may free another
		for a := w.order[i]; td.state.agents.byID[a.ID] == a; {
			k := td.nextFor(a)
			if k == nil || !td.own.tasks().place(k, match.Conditions{Online: true, Free: true}) {
				break
			}
		}
	}
}

// nextFor returns the first waiting task that an agent fits.
func (td taskDecision) nextFor(a *agent) *task {
	if len(a.holds) >= a.Capacity || a.stale {
		return nil
	}
	var first *task
	look := func(under string) {
		for _, h := range td.state.tasks.required.waiting.Under(under) {
			if k := h.Head(); (first == nil || queue.Before(k, first)) &&
				td.state.agents.index.Fits(&h.Asks.Demand, a.ID, match.Conditions{Online: true, Free: true}) {
				first = k
			}
		}
	}
	look("")
	for _, under := range a.under {
		look(under)
	}
	return first
}

// place assigns a task to the agent that fits it best. It reports false if none fits.
func (td taskDecision) place(k *task, c match.Conditions) bool {
	name, score, ok := td.state.agents.index.Best(&k.wants().Demand, c)
	if ok {
		td.assignBy(k, td.state.agents.byID[name], &taskAssigned{Way: matched, Score: score})
	}
	return ok
}

// free reports whether a task with requirements can be assigned now.
func (td taskDecision) free(k *task) bool {
	return k.view.State == wire.TaskPending && k.wants() != nil && !k.asks() && k.delegation() == nil && !k.postponed() &&
		td.state.tasks.graph.Open(k.node) == 0 && !td.state.stopping
}

// asks reports whether a task is dispatched by its role and its capabilities.
func (t *task) asks() bool { return t.view.RequiredRole != "" || len(t.view.RequiredCapabilities) > 0 }
