package handlers

import (
	"slices"

	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/hub"
)

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
	defer func(from Actor) { td.from = from }(td.from)
	td.from = Actor{}
	for i := 0; i < len(w.order); i++ { // assigning one may free another
		for a := w.order[i]; td.state.agents.byID[a.ID] == a; {
			k := td.nextFor(a)
			if k == nil || !td.place(k, match.Conditions{Online: true, Free: true}) {
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
	return k.view.State == wire.TaskPending && k.wants() != nil && !k.asks() && k.delegation() == nil && td.state.tasks.graph.Open(k.node) == 0 && !td.state.stopping
}

// asks reports whether a task is dispatched by its role and its capabilities.
func (t *task) asks() bool { return t.view.RequiredRole != "" || len(t.view.RequiredCapabilities) > 0 }
