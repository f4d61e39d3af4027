package handlers

import (
	"cmp"
	"slices"

	"orchestrator/handlers/match"
	"orchestrator/wire"
)

// requirements are what the requirements of a task ask of an agent.
type requirements struct {
	match.Demand
	key   string   // the same for those that ask for the same
	under []string // what an agent must have, as it is filed in the queue
}

func newWants(r *wire.Requirements) *requirements {
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

// What an agent has is filed under these, so that a repository is not taken for
// a language.
const (
	underRepo     = "repo "
	underLanguage = "language "
)

// requirementQueue are tasks with requirements that wait for an agent, by what they ask
// for. They are looked at when an agent has come, has room again or can do more:
// under what that agent has.
type requirementQueue struct {
	byKey map[string]*requirementBucket
	under map[string][]*requirementBucket
	order []*agent // those that have gained something in this turn
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
func (w *requirementQueue) add(k *task) {
	h := w.byKey[k.wants().key]
	if h == nil {
		h = &requirementBucket{wants: k.wants()}
		for i, u := range h.wants.under {
			if i == 0 || len(w.under[u]) < len(w.under[h.filed]) {
				h.filed = u
			}
		}
		h.at = len(w.under[h.filed])
		w.under[h.filed] = append(w.under[h.filed], h)
		w.byKey[h.wants.key] = h
	}
	h.waiting[k.urgency] = h.waiting[k.urgency].with(k)
	h.size++
	k.more.bucket = h
}

// drop takes a task out.
func (w *requirementQueue) drop(k *task) {
	h := k.more.bucket
	k.more.bucket = nil
	h.waiting[k.urgency] = h.waiting[k.urgency].without(k)
	if h.size--; h.size > 0 {
		return
	}
	delete(w.byKey, h.wants.key)
	beside := w.under[h.filed]
	last := len(beside) - 1
	beside[h.at], beside[last].at = beside[last], h.at
	beside[last] = nil
	if last > 0 {
		w.under[h.filed] = beside[:last]
	} else {
		delete(w.under, h.filed)
	}
}

// head is the task whose turn it is.
func (h *requirementBucket) head() *task {
	for _, line := range h.waiting {
		if len(line) > 0 {
			return line[0]
		}
	}
	return nil
}

// gain notes that an agent has come, has room again, or can do more than before.
func (w *requirementQueue) gain(a *agent) {
	if len(w.byKey) > 0 && !slices.Contains(w.order, a) {
		w.order = append(w.order, a)
	}
}

// looked notes that all has been given out that could be.
func (w *requirementQueue) looked() {
	clear(w.order)
	w.order = w.order[:0]
}

// rematch gives waiting tasks with requirements to agents, as long as one that
// has gained something has room: the most urgent first, then the oldest; each to
// the agent that it fits best. Here what an agent has not started counts as well, or one
// agent that comes would be given all there is.
func (t *decision) rematch() {
	w := &t.state.tasks.required
	defer w.looked()
	if t.state.stopping || t.state.rules.IgnoreArrivals || len(w.byKey) == 0 {
		return
	}
	defer func(from Actor) { t.from = from }(t.from)
	t.from = Actor{}
	for i := 0; i < len(w.order); i++ { // assigning one may free another
		for a := w.order[i]; t.state.agents.byID[a.ID] == a; {
			k := t.nextFor(a)
			if k == nil || !t.place(k, match.Conditions{Online: true, Free: true}) {
				break
			}
		}
	}
}

// nextFor is the first waiting task that an agent fits.
func (t *decision) nextFor(a *agent) *task {
	if len(a.holds) >= a.Capacity || a.stale {
		return nil
	}
	var first *task
	look := func(under string) {
		for _, h := range t.state.tasks.required.under[under] {
			if k := h.head(); (first == nil || k.before(first)) &&
				t.state.agents.index.Fits(&h.wants.Demand, a.ID, match.Conditions{Online: true, Free: true}) {
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

// inTurn puts the task first that is to be given out first.
func inTurn(a, b *task) int {
	return cmp.Or(cmp.Compare(a.urgency, b.urgency), cmp.Compare(a.created, b.created))
}

// place gives a task to the agent that fits it best; false if none fits.
func (t *decision) place(k *task, c match.Conditions) bool {
	name, score, ok := t.state.agents.index.Best(&k.wants().Demand, c)
	if ok {
		t.assignBy(k, t.state.agents.byID[name], &taskAssigned{Way: matched, Score: score})
	}
	return ok
}

// free reports whether a task with requirements could be given to an agent now.
func (t *decision) free(k *task) bool {
	return k.view.State == wire.TaskPending && k.wants() != nil && !k.asks() && k.delegation() == nil && t.state.tasks.graph.Open(k.node) == 0 && !t.state.stopping
}

// asks reports whether a task goes by its role and its capabilities.
func (k *task) asks() bool { return k.view.RequiredRole != "" || len(k.view.RequiredCapabilities) > 0 }
