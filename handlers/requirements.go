package handlers

import (
	"cmp"
	"slices"

	"orchestrator/handlers/match"
	"orchestrator/wire"
	"orchestrator/wire/hub"
)

// requirements is what the requirements document of a task asks of an agent.
type requirements struct {
	match.Demand
	key   string   // equal for equal requirements
	under []string // what an agent must have, as keys of the index
}

func newWants(r *hub.Requirements) *requirements {
	return wantsOf(&match.Demand{
		Repo: r.Repo, Languages: r.Languages, Environments: r.Environments, Tools: r.Tools, Tags: r.Tags, Prefer: r.Prefer,
	})
}

func wantsOf(d *match.Demand) *requirements {
	w := &requirements{Demand: *d}
	key := appendPart(appendPart(nil, d.Repo), d.Prefer)
	for _, texts := range [][]string{d.Languages, d.Environments, d.Tools, d.Tags} {
		key = appendPart(key, "")
		for _, text := range texts {
			key = appendPart(key, text)
		}
	}
	w.key = string(key)
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
	byKey map[string]*requirementBucket
	under map[string][]*requirementBucket
	order []*agent // agents that have gained something in this turn
}

type requirementBucket struct {
	wants   *requirements
	waiting [urgencies]taskList
	size    int
	filed   string
	at      int
}

func newRequirementQueue() requirementQueue {
	return requirementQueue{byKey: make(map[string]*requirementBucket), under: make(map[string][]*requirementBucket)}
}

// add lets a task wait.
func (r *requirementQueue) add(k *task) {
	h := r.byKey[k.wants().key]
	if h == nil {
		h = &requirementBucket{wants: k.wants()}
		for i, u := range h.wants.under {
			if i == 0 || len(r.under[u]) < len(r.under[h.filed]) {
				h.filed = u
			}
		}
		h.at = len(r.under[h.filed])
		r.under[h.filed] = append(r.under[h.filed], h)
		r.byKey[h.wants.key] = h
	}
	h.waiting[k.urgency] = h.waiting[k.urgency].with(k)
	h.size++
	k.more.bucket = h
}

// drop takes a task out.
func (r *requirementQueue) drop(k *task) {
	h := k.more.bucket
	k.more.bucket = nil
	h.waiting[k.urgency] = h.waiting[k.urgency].without(k)
	if h.size--; h.size > 0 {
		return
	}
	delete(r.byKey, h.wants.key)
	beside := r.under[h.filed]
	last := len(beside) - 1
	beside[h.at], beside[last].at = beside[last], h.at
	beside[last] = nil
	if last > 0 {
		r.under[h.filed] = beside[:last]
	} else {
		delete(r.under, h.filed)
	}
}

// head returns the next task of a bucket, or nil.
func (r *requirementBucket) head() *task {
	for _, line := range r.waiting {
		if len(line) > 0 {
			return line[0]
		}
	}
	return nil
}

// gain marks an agent that has appeared, has room again or has new capabilities.
func (r *requirementQueue) gain(a *agent) {
	if len(r.byKey) > 0 && !slices.Contains(r.order, a) {
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
	if td.state.stopping || td.state.rules.IgnoreArrivals || len(w.byKey) == 0 {
		return
	}
	defer func(from Actor) { td.from = from }(td.from)
	td.from = Actor{}
	for i := 0; i < len(w.order); i++ { // assigning one may free another
		for a := w.order[i]; td.state.agents.byID[a.ID] == a; {
			k := td.state.nextFor(a)
			if k == nil || !td.place(k, match.Conditions{Online: true, Free: true}) {
				break
			}
		}
	}
}

// nextFor returns the first waiting task that an agent fits.
func (S *State) nextFor(a *agent) *task {
	if len(a.holds) >= a.Capacity || a.stale {
		return nil
	}
	var first *task
	look := func(under string) {
		for _, h := range S.tasks.required.under[under] {
			if k := h.head(); (first == nil || k.before(first)) &&
				S.agents.index.Fits(&h.wants.Demand, a.ID, match.Conditions{Online: true, Free: true}) {
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

// inTurn orders tasks by urgency, then by age.
func inTurn(a, b *task) int {
	return cmp.Or(cmp.Compare(a.urgency, b.urgency), cmp.Compare(a.created, b.created))
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
func (S *State) free(k *task) bool {
	return k.view.State == wire.TaskPending && k.wants() != nil && !k.asks() && k.delegation() == nil && S.tasks.graph.Open(k.node) == 0 && !S.stopping
}

// asks reports whether a task is dispatched by its role and its capabilities.
func (t *task) asks() bool { return t.view.RequiredRole != "" || len(t.view.RequiredCapabilities) > 0 }
