package telemetry

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
	"orchestrator/wire/trace"
)

// openWork is the open work, as read from the record. Only the goroutine that follows the
// record uses it, except summary, which may be called concurrently.
type openWork struct {
	last  int64 // number of the last fact read
	past  int64 // last fact of an earlier run, which has sent its ended spans
	live  bool  // facts are from this run
	spans *tracing
	asks  map[askKey]span
	held  map[string][]*hop // by agent
	gone  lineage

	users     map[string]bool       // agents that report usage
	unsettled map[string]*unsettled // by task
	wake      func()                // makes the goroutine that follows the record end them

	mu       sync.Mutex // guards the fields below
	tasks    map[string]*task
	sessions map[string]bool
}

// A task is an open task.
type task struct {
	id, name, kind, by, session string
	created                     time.Time
	number                      int64
	waits                       time.Time // since when it waits for an agent; zero if it does not
	blocked                     bool      // it waits for other tasks
	place                       place
	span                        span
	hop                         *hop
	retries                     int // after recoverable errors
	spent                       spending
}

// A hop is an assignment of a task to an agent.
type hop struct {
	agent, run string
	attempt    int
	retries    int // retries of the task before this assignment
	began      time.Time
	forwarded  []time.Time // deliveries to its agent in an earlier run of the orchestrator
	place      place
	span       span
}

func (w *openWork) reset() {
	w.tasks, w.sessions = make(map[string]*task), make(map[string]bool)
	w.asks, w.held = make(map[askKey]span), make(map[string][]*hop)
	w.users, w.unsettled = make(map[string]bool), make(map[string]*unsettled)
}

// begin sets the fact after which reading begins, and the open sessions.
func (w *openWork) begin(behind int64, sessions []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = behind
	for _, id := range sessions {
		w.sessions[id] = true
	}
}

// goLive begins the spans of the work that an earlier run left open.
func (w *openWork) goLive() {
	if w.live {
		return
	}
	w.live = true
	byAge := func(a, b *task) int { return cmp.Compare(a.number, b.number) }
	for _, t := range slices.SortedFunc(maps.Values(w.tasks), byAge) {
		w.spans.begin(t)
		w.spans.hop(t)
	}
}

// learn applies a fact, unless it was applied already.
func (w *openWork) learn(r *wire.Record) {
	if r.Seq <= w.last || !matters(r.Kind) {
		return
	}
	if r.Seq > w.past {
		w.goLive()
	}
	f, ok := read(r)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch r.Kind {
	case events.SessionOpened:
		w.sessions[f.Session] = true
		return
	case events.SessionClosed:
		delete(w.sessions, f.Session)
		return
	case events.AgentEnded:
		w.forsake(f.Run, r.At)
		return
	case events.AgentUsage:
		w.used(f)
		return
	case events.TaskCreated, events.TaskReopened: // a reopened one is another piece of work
		w.create(f, r)
		return
	}
	if t := w.tasks[f.Task]; t != nil {
		w.change(t, f, r)
	}
}

// partWith ends the requests of a run if r records the end of that run.
func (w *openWork) partWith(r *wire.Record) {
	if r.Kind != events.AgentEnded {
		return
	}
	if f, ok := read(r); ok {
		w.forsake(f.Run, r.At)
	}
}

func (w *openWork) create(f *fact, r *wire.Record) {
	t := &task{
		id: f.Task, name: f.Name, kind: f.Type, by: r.From, session: f.InSession, created: r.At, number: r.Seq, waits: r.At,
	}
	for i := range f.Dependencies {
		t.blocked = t.blocked || w.holdsUp(&f.Dependencies[i])
	}
	w.tasks[t.id] = t
	if w.spans != nil {
		t.place = w.placeOf(f)
		if w.live {
			w.spans.begin(t)
		}
	}
}

// holdsUp reports whether a task must wait for a dependency.
func (w *openWork) holdsUp(d *hub.Dependency) bool {
	return w.tasks[d.On] != nil && d.Type != hub.DependsRelated
}

// change applies a fact to a task.
func (w *openWork) change(t *task, f *fact, r *wire.Record) {
	switch r.Kind {
	case events.TaskBlocked:
		t.blocked = true
	case events.DependencyAdded:
		t.blocked = t.blocked || w.holdsUp(&f.Dependency)
	case events.TaskUnblocked:
		if t.blocked = false; t.hop == nil {
			t.waits = r.At
		}
	case events.TaskAssigned:
		w.leave(t, r.At, "given to "+f.Agent)
		t.waits = time.Time{}
		t.hop = &hop{agent: f.Agent, run: f.Run, attempt: f.Attempt, retries: t.retries, began: r.At}
		w.held[f.Agent] = append(w.held[f.Agent], t.hop)
		if w.live {
			w.spans.hop(t)
		}
	case events.TaskRequeued:
		w.leave(t, r.At, cmp.Or(f.Why, "lost"))
		t.waits = r.At
	case events.TaskForwarded:
		w.forward(t, f.Run, r.At)
	case events.TaskRetried:
		w.leave(t, r.At, cmp.Or(string(f.Error), "failed"))
		t.waits = r.At
		t.retries++
	case events.TaskDone:
		w.over(t, wire.TaskDone, r.At, "")
	case events.TaskFailed:
		w.over(t, wire.TaskFailed, r.At, cmp.Or(string(f.Error), "failed"))
	case events.TaskCancelled:
		w.over(t, wire.TaskCancelled, r.At, cmp.Or(f.Reason, "cancelled"))
	}
}

// forward records that a task was delivered to its agent. The assignment was recorded before
// and waited for room or for a run.
func (w *openWork) forward(t *task, run string, at time.Time) {
	h := t.hop
	if h == nil {
		return
	}
	if h.run = run; w.live {
		w.spans.forwarded(h, at)
	} else {
		h.forwarded = append(h.forwarded, at)
	}
}

// leave ends the assignment of a task, if it has one.
func (w *openWork) leave(t *task, at time.Time, why string) {
	h := t.hop
	if h == nil {
		return
	}
	if w.live {
		w.spans.endHop(h, at, why)
	}
	t.hop = nil
	w.held[h.agent] = slices.DeleteFunc(w.held[h.agent], func(o *hop) bool { return o == h })
	if len(w.held[h.agent]) == 0 {
		delete(w.held, h.agent)
	}
}

// over ends a task.
func (w *openWork) over(t *task, state wire.TaskState, at time.Time, why string) {
	agent, run := "", ""
	if t.hop != nil {
		agent, run = t.hop.agent, t.hop.run
	}
	w.leave(t, at, why)
	delete(w.tasks, t.id)
	if w.spans != nil {
		w.gone.add(t.id, t.place)
		if w.live {
			w.settle(&unsettled{task: t, agent: agent, run: run, state: state, at: at, why: why})
		}
	}
}

// A summary describes the open work.
type summary struct {
	sessions int
	waiting  time.Time // since when the longest-waiting task waits for an agent; zero if none does
}

func (w *openWork) summary() *summary {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &summary{sessions: len(w.sessions)}
	for _, t := range w.tasks {
		if !t.blocked && !t.waits.IsZero() && (s.waiting.IsZero() || t.waits.Before(s.waiting)) {
			s.waiting = t.waits
		}
	}
	return s
}

// A place identifies a span: its trace, its id, and the id of its parent.
type place struct {
	trace, span string
	parent      string // "" for the first span of its trace
	sampled     bool   // the trace is sent
}

// placeOf returns the place of a new task.
func (w *openWork) placeOf(f *fact) place {
	p := place{span: spanOf(f.Task)}
	above, known := w.parentOf(f.Parent)
	switch {
	case trace.IsID(f.TraceID) && trace.IsSpanID(f.SpanID):
		p.trace, p.parent, p.sampled = f.TraceID, f.SpanID, true // the sender has a span
	case trace.IsID(f.TraceID) && f.TraceID != above.trace:
		p.trace, p.sampled = f.TraceID, w.spans.samples(f.TraceID)
	case known:
		p.trace, p.parent, p.sampled = above.trace, above.span, above.sampled
	default:
		p.trace = traceOf(f.Task)
		p.sampled = w.spans.samples(p.trace)
	}
	return p
}

// parentOf returns the place of a parent task. A parent that ended too long ago is not known;
// it is treated as the first of its trace.
func (w *openWork) parentOf(id string) (p place, known bool) {
	if id == "" {
		return place{}, false
	}
	if t := w.tasks[id]; t != nil {
		return t.place, true
	}
	if p, known = w.gone.places[id]; known {
		return p, true
	}
	trace := traceOf(id)
	return place{trace: trace, span: spanOf(id), sampled: w.spans.samples(trace)}, true
}

func traceOf(what string) string { return trace.IDOf([]byte(what)) }
func spanOf(what string) string  { return trace.SpanIDOf([]byte(what)) }

// A lineage stores the places of tasks that ended recently and may still get children.
type lineage struct {
	places map[string]place
	order  []string // a ring
	next   int
}

// remembered is the number of places that a lineage stores.
const remembered = 10_000

func (l *lineage) add(id string, p place) {
	if l.places == nil {
		l.places = make(map[string]place)
	}
	if len(l.order) < remembered {
		l.order = append(l.order, id)
	} else {
		delete(l.places, l.order[l.next])
		l.order[l.next] = id
		l.next = (l.next + 1) % remembered
	}
	l.places[id] = p
}

// Asked is the beginning of a request.
type Asked struct {
	At        time.Time
	Operation string
	From      string
	Agent     string // "" if the caller is not an agent
	Run       string
	ID        string // unique within Run
}

// Answered is the end of a request.
type Answered struct {
	At      time.Time
	Run, ID string
	Code    wire.Code // code of a refusal, or ""
}

// An askKey identifies a request that waits for its answer.
type askKey struct{ run, id string }

// maxAsks is the number of requests that are tracked at a time. When there are more, all
// earlier ones are forgotten, because some of them may never be answered.
const maxAsks = 10_000

// asked begins the span of a request.
func (w *openWork) asked(a *Asked) {
	key := askKey{run: a.Run, id: a.ID}
	if w.spans == nil {
		return
	}
	if before := w.asks[key]; before != nil {
		endAsk(before, a.At, "repeated", "") // the two answers would look the same
	}
	if len(w.asks) >= maxAsks {
		w.spans.drop(len(w.asks))
		clear(w.asks)
	}
	what := "request " + a.Run + " " + a.ID + " " + object.Timestamp(a.At)
	p := place{trace: traceOf(what), span: spanOf(what)}
	if held := w.held[a.Agent]; a.Agent != "" && len(held) == 1 && held[0].span != nil {
		h := held[0]
		p.trace, p.parent, p.sampled = h.place.trace, h.place.span, h.place.sampled
	}
	w.asks[key] = w.spans.start(p, "request "+a.Operation, a.At,
		attribute.String("request.operation", a.Operation), attribute.String("request.actor", a.From))
}

// answered ends the span of a request.
func (w *openWork) answered(a *Answered) {
	key := askKey{run: a.Run, id: a.ID}
	asked := w.asks[key]
	if asked == nil {
		return
	}
	delete(w.asks, key)
	outcome := "granted"
	if a.Code != "" {
		outcome = string(a.Code)
	}
	endAsk(asked, a.At, outcome, string(a.Code))
}

// forsake ends the requests of an ended run, which get no answer, and the tasks without a usage report of the run.
func (w *openWork) forsake(run string, at time.Time) {
	for key, asked := range w.asks {
		if key.run == run {
			delete(w.asks, key)
			endAsk(asked, at, "forsaken", "the agent has ended")
		}
	}
	w.settled(func(u *unsettled) bool { return u.run == run })
}

func endAsk(asked span, at time.Time, outcome, why string) {
	asked.SetAttributes(attribute.String("request.outcome", outcome))
	finish(asked, at, why)
}

// settling is how long the end of a task waits for the usage of its last turn. A coding agent reports the usage after
// the end of the task.
const settling = time.Minute

// An unsettled task has ended. Its span is complete when the agent reports the usage of its last
// turn, ends, or does neither for too long.
type unsettled struct {
	*task
	agent, run string
	state      wire.TaskState
	at         time.Time
	why        string
	until      time.Time
}

// settle ends the span of a task that has ended: at once, or later if its agent reports usage.
func (w *openWork) settle(u *unsettled) {
	if !w.users[u.agent] || len(w.unsettled) >= maxAsks {
		w.spans.end(u.task, u.agent, u.state, u.at, u.why)
		return
	}
	u.until = time.Now().Add(settling)
	w.unsettled[u.id] = u
	time.AfterFunc(settling, w.wake)
}

// used adds to the usage of a task.
func (w *openWork) used(f *fact) {
	if w.spans == nil {
		return
	}
	if len(w.users) < maxUsers {
		w.users[f.Agent] = true
	}
	if t := w.tasks[f.Task]; t != nil {
		t.spent.add(&f.Usage)
	}
	if u := w.unsettled[f.Task]; u != nil {
		u.spent.add(&f.Usage)
		w.settled(func(o *unsettled) bool { return o == u })
	}
}

// settled ends the spans of the unsettled tasks that fits chooses.
func (w *openWork) settled(fits func(u *unsettled) bool) {
	for id, u := range w.unsettled {
		if fits(u) {
			delete(w.unsettled, id)
			w.spans.end(u.task, u.agent, u.state, u.at, u.why)
		}
	}
}
