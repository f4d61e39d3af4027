package handlers

import (
	"bytes"
	"iter"
	"slices"
	"time"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// A handover is a delegated task, derived only from its records and letters.
type handover struct {
	id, kind string
	source   string // as in the log
	target   string // the named agent, or ""
	chain    []string
	trace    delegation.Trace
	within   string // the task that it is part of

	state   wire.TaskState
	holder  string
	out     string   // the run that it was forwarded to
	brought bool     // that run has the request
	inputs  []*input // sent to that run
	tries   int
	retries int
	next    time.Time // not retried before

	latest int64  // the record of the latest response
	status string // of that response
	final  int64  // the record of the final response
	owed   bool   // its source is to receive the latest response
	given  time.Time
	sent   string // the run of the source that it was sent to
	failed string // the run of the source that could not receive it
}

// An input is a message to the agent of a handover.
type input struct {
	seq  int64
	sent bool // on its way
	lost bool
}

// handovers holds all delegated tasks.
type handovers struct {
	w       *world
	byID    map[string]*handover
	order   []*handover
	open    []*handover
	owing   []*handover                    // their sources await the latest response; some have it
	parts   map[string][]*handover         // by the task that waits for them
	asked   map[string]*delegation.Request // the latest accepted requests, by id
	words   map[int64]wire.Record          // answers are completed from these
	lines   []Letter                       // on their way
	written Letter                         // the latest of them with a known outcome
	turn    handoverTurn
}

func newHandovers(w *world) *handovers {
	return &handovers{
		w: w, byID: make(map[string]*handover), parts: make(map[string][]*handover), asked: make(map[string]*delegation.Request),
		words: make(map[int64]wire.Record),
	}
}

// Record returns a record of delegated work. Record and Find make handovers an archive. Answers are
// completed from it.
func (h *handovers) Record(seq int64) (wire.Record, error) {
	r, there := h.words[seq]
	h.w.must(there, "record %d is not there", seq)
	return r, nil
}

// Find returns no task, because handovers are never searched.
func (*handovers) Find(wire.Search) iter.Seq2[wire.Record, error] {
	return func(func(wire.Record, error) bool) {}
}

func (*handovers) After(int64) iter.Seq2[wire.Record, error] {
	return func(func(wire.Record, error) bool) {}
}

// afterHandovers lists the kinds of record that may follow the end of a handover.
var afterHandovers = []string{events.TaskResponded, events.TaskAnswered, events.TaskUnanswered}

// settle notes that a source has read a response: it sends a message a while after the response was
// written to it.
func (h *handovers) settle(r *wire.Record) {
	var from string
	f, err := state.Decode(r, new([]object.Member))
	h.w.must(err == nil, "%v", err)
	switch f := f.(type) {
	case *state.TaskCreated:
		from = state.AgentOf(r.From)
	case *state.TaskDone:
		if f.Request != nil {
			from = state.AgentOf(r.From)
		}
	case *state.TaskResponded:
		if !f.Own {
			from = f.Agent
		}
	case *state.SessionSaid:
		if f.By == "" {
			from = f.From
		}
	}
	for _, e := range h.owing {
		if from != "" && state.AgentOf(e.source) == from && !e.given.IsZero() && r.At.Sub(e.given) >= time.Second {
			e.owed, e.given = false, time.Time{}
		}
	}
}

// hear follows one record. It reports whether it is about a handover.
func (h *handovers) hear(r *wire.Record) bool {
	h.settle(r)
	if r.Kind == events.TaskCreated {
		return h.hearCreated(r)
	}
	e := h.byID[r.Correlation]
	switch r.Kind {
	case events.TaskAssigned, events.TaskRequeued, events.TaskRetried, events.TaskDone, events.TaskFailed, events.TaskCancelled:
		h.losePart(r)
	case events.AgentStarted, events.AgentEnded, events.OrchestratorStarted, events.AgentRecovered, events.AgentForgotten:
		h.hearLife(r)
		return false
	}
	if e == nil {
		return false
	}
	h.w.must(e.final == 0 || slices.Contains(afterwards, r.Kind) || slices.Contains(afterHandovers, r.Kind) || ofSessions(r.Kind), "%s after %+v", r.Kind, e)
	f, err := state.Decode(r, new([]object.Member))
	h.w.must(err == nil, "%v", err)
	switch f := f.(type) {
	case *state.TaskForwarded:
		h.hearForwarded(e, f)
	case *state.TaskReturned:
		h.hearReturned(e, f)
	case *state.TaskResponded:
		h.hearResponded(e, f, r)
	case *state.TaskAnswered:
		told := h.turn.told
		h.w.must(e.owed && e.given.IsZero() && f.Said == e.latest && told != nil && !told.Lost && told.Said == f.Said && told.Run == e.sent, "%+v is answered: %+v", e, told)
		e.given = r.At
	case *state.TaskUnanswered:
		told := h.turn.told
		h.w.must(e.owed && f.Said == e.latest && told != nil && told.Lost && told.Said == f.Said && told.Run == e.sent, "%+v is unanswered: %+v", e, told)
		e.sent, e.failed = "", told.Run
	case *state.TaskActed:
		elsewhere := h.w.state.Agents.ByID[f.Agent]
		h.w.must(e.holder == f.Agent && (e.out != "" || elsewhere.Remote != nil), "%+v is acted on: %+v", e, f)
		if f.Act == delegation.ActUpdate {
			e.inputs = append(e.inputs, &input{seq: r.Seq})
		}
		h.turn.acts = append(h.turn.acts, act{e, f, r.Seq})
	case *state.TaskAssigned:
		h.hearAssigned(e, f, r)
	case *state.TaskRequeued:
		h.w.must(f.Blameless != f.Death, "%+v is counted and not counted: %+v", e, f)
		if f.Blameless {
			e.tries--
		}
		h.hearMove(e, f, r)
	default:
		h.hearMove(e, f, r)
	}
	return true
}

func (h *handovers) hearCreated(r *wire.Record) bool {
	if !bytes.Contains(r.Payload, []byte(`"delegated":`)) {
		return false
	}
	f, err := state.Decode(r, new([]object.Member))
	h.w.must(err == nil, "%v", err)
	made := f.(*state.TaskCreated)
	h.w.must(h.byID[made.ID] == nil && h.w.states[made.ID] == "", "%s is created twice", made.ID)
	q, err := made.Delegated.Read()
	h.w.must(err == nil, "%v", err)
	e := &handover{
		id: made.ID, kind: q.Type, source: r.From, target: q.Routing.Target, chain: q.Routing.Chain, trace: q.Observability,
		within: q.Context.ParentTaskID, state: wire.TaskPending,
	}
	h.byID[e.id] = e
	h.order = append(h.order, e)
	h.open = append(h.open, e)
	h.turn.created = append(h.turn.created, e)
	h.turn.requests = append(h.turn.requests, q)
	if k := h.w.task(e.within); k != nil && !k.View.State.Final() && state.AgentOf(e.source) != "" && k.View.AssignedTo == state.AgentOf(e.source) {
		h.parts[e.within] = append(h.parts[e.within], e)
		h.w.saw["handed on: a part"]++
	}
	return true
}

// losePart unlinks the parts of a task that ended or moved to another agent. Unless the task is
// done, its parts must end with it.
func (h *handovers) losePart(r *wire.Record) {
	parts := h.parts[r.Correlation]
	delete(h.parts, r.Correlation)
	if r.Kind != events.TaskDone {
		h.turn.vain = append(h.turn.vain, parts...)
	}
}

// hearLife follows the runs. Letters on their way to a run are lost when it ends.
func (h *handovers) hearLife(r *wire.Record) {
	f, err := state.Decode(r, new([]object.Member))
	h.w.must(err == nil, "%v", err)
	switch f := f.(type) {
	case *state.LifecycleEvent:
		if f.What == events.OrchestratorStarted {
			h.lines = nil // lost with all their readers
		}
		if v := h.w.state.Agents.ByID[f.Agent]; f.What == events.AgentRecovered && v != nil && v.Runs(f.Run) && v.Reachable() {
			h.turn.reads = append(h.turn.reads, f.Agent)
		}
		for _, e := range h.owing {
			if f.What == events.OrchestratorStarted || state.AgentOf(e.source) == f.Agent && f.What != events.AgentEnded {
				e.failed = ""
			}
		}
	case *state.AgentForgotten:
		for _, e := range h.owing {
			if state.AgentOf(e.source) == f.ID {
				e.owed = false
			}
		}
	}
}

func (h *handovers) hearAssigned(e *handover, f *state.TaskAssigned, r *wire.Record) {
	a := h.w.state.Agents.ByID[f.Agent]
	h.move(e, wire.TaskAssigned, r.Kind)
	h.w.must(e.out == "" && f.Way == assignedDelegated && f.Attempt == e.tries+1, "%+v is assigned: %+v", e, f)
	h.w.must(!slices.Contains(e.chain, f.Agent), "%+v is given to %s, who has had it in hand", e, f.Agent)
	h.w.must(e.target == "" || e.target == f.Agent, "%+v is given to %s", e, f.Agent)
	h.w.must(a != nil && (!a.Deaf || a.Remote != nil), "%+v is given to %s, who takes no messages", e, f.Agent)
	h.w.must(!r.At.Before(e.next), "%+v is tried again at %v", e, r.At)
	e.holder, e.tries = f.Agent, f.Attempt
}

func (h *handovers) hearForwarded(e *handover, f *state.TaskForwarded) {
	v := h.w.bus.lives[f.Agent]
	h.w.must(e.holder == f.Agent && v != nil && v.runs && v.run == f.Run, "%+v is sent to %s", e, f.Run)
	if f.Acted != 0 {
		at := slices.IndexFunc(e.inputs, func(i *input) bool { return i.seq == f.Acted })
		h.w.must(e.out == f.Run && at >= 0 && e.inputs[at].lost, "%+v gets %d again", e, f.Acted)
		e.inputs[at].lost = false
		h.turn.acts = append(h.turn.acts, act{e, nil, f.Acted})
		h.w.saw["handed on: an input is brought again"]++
		return
	}
	h.w.must(e.state == wire.TaskAssigned && e.out == "", "%+v is sent to %s", e, f.Run)
	e.out, e.brought = f.Run, false
	a := h.w.state.Agents.ByID[f.Agent]
	h.turn.forwards = append(h.turn.forwards, e)
	h.w.must(h.used(a) <= a.Capacity, "%s has room for %d, and is brought %s", a.ID, a.Capacity, e.id)
}

// used returns how much of an agent's capacity is taken.
func (h *handovers) used(a *state.KnownAgent) (n int) {
	for _, k := range a.Holds {
		e := h.byID[k.View.ID]
		switch {
		case len(h.parts[k.View.ID]) > 0:
		case k.View.State == wire.TaskRunning, k.View.State == wire.TaskVerifying, k.View.State == wire.TaskNeedsHuman, e != nil && e.out != "" && k.View.State == wire.TaskAssigned,
			e == nil && k.Way == state.Dispatched && k.View.State == wire.TaskAssigned:
			n++
		}
	}
	return n
}

func (h *handovers) hearReturned(e *handover, f *state.TaskReturned) {
	told := h.turn.told
	if at := slices.IndexFunc(h.turn.acts, func(o act) bool { return f.Acted != 0 && o.seq == f.Acted }); at >= 0 { // the rest waits before it
		h.turn.acts = slices.Delete(h.turn.acts, at, at+1)
		for _, o := range e.inputs {
			if o.seq == f.Acted {
				o.sent, o.lost = false, true
			}
		}
		return
	}
	h.w.must(told != nil && told.Lost && told.Task == e.id && told.Said == f.Acted && told.Run == f.Run && (f.Acted != 0 || e.out == f.Run), "%+v is returned: %+v", e, told)
	if f.Acted == 0 {
		h.w.must(e.state == wire.TaskAssigned, "%+v is brought back, and has been begun", e)
		h.w.must(isRequest(&h.written), "%+v is brought back, and %s was lost", e, h.written.Line)
		e.out = ""
	}
}

func (h *handovers) hearResponded(e *handover, f *state.TaskResponded, r *wire.Record) {
	h.w.must(e.final == 0, "%s is %s after the final response to %+v", e.id, f.Status, e)
	if f.Again {
		h.w.must(f.Own && f.Status == e.status && e.latest != 0, "%+v is %s again", e, f.Status)
	} else {
		h.words[r.Seq] = *r
		e.latest, e.status = r.Seq, f.Status
	}
	if isFinal(f.Status) {
		e.final = r.Seq
		h.turn.finals = append(h.turn.finals, e)
		h.w.saw["handed on: "+f.Status]++
	}
	v, a := h.w.bus.lives[state.AgentOf(e.source)], h.w.state.Agents.ByID[state.AgentOf(e.source)]
	e.owed, e.sent, e.failed, e.given = v != nil && !v.remote && (a == nil || !a.Deaf), "", "", time.Time{}
	if e.owed && !slices.Contains(h.owing, e) {
		h.owing = append(h.owing, e)
	}
}

func isFinal(status string) bool {
	return status == delegation.Completed || status == delegation.Failed || status == delegation.Cancelled
}

// hearMove follows the state of a handover.
func (h *handovers) hearMove(e *handover, f state.Fact, r *wire.Record) {
	next, moves := moved(r)
	if again, ok := f.(*state.TaskRetried); ok {
		next, moves = wire.TaskPending, true
		wait := retryDelays[min(e.retries, len(retryDelays)-1)]
		e.retries++
		e.next = r.At.Add(wait)
		h.w.must(again.Next == object.Timestamp(e.next) && e.retries <= h.w.rules.DelegationRetries, "%+v is tried again: %+v", e, again)
	}
	if f, ok := f.(*state.TaskRequeued); ok && f.After != "" {
		e.next, _ = object.ParseTime(f.After)
	}
	if !moves {
		return
	}
	h.move(e, next, r.Kind)
	if next == wire.TaskPending {
		e.holder, e.out, e.inputs, e.owed, e.given = "", "", nil, false, time.Time{} // earlier messages no longer count
	}
	if next.Final() {
		h.words[r.Seq] = *r
		h.turn.ended = append(h.turn.ended, e)
		h.open = slices.DeleteFunc(h.open, func(o *handover) bool { return o == e })
		for id, parts := range h.parts {
			if h.parts[id] = slices.DeleteFunc(parts, func(o *handover) bool { return o == e }); len(h.parts[id]) == 0 {
				delete(h.parts, id)
			}
		}
	}
}

// handoverMoves maps each state of a handover to the states that may follow.
var handoverMoves = map[wire.TaskState][]wire.TaskState{
	wire.TaskPending:    {wire.TaskAssigned, wire.TaskFailed, wire.TaskCancelled},
	wire.TaskAssigned:   {wire.TaskRunning, wire.TaskPending, wire.TaskFailed, wire.TaskCancelled},
	wire.TaskRunning:    {wire.TaskVerifying, wire.TaskNeedsHuman, wire.TaskPending, wire.TaskDone, wire.TaskFailed, wire.TaskCancelled},
	wire.TaskNeedsHuman: {wire.TaskRunning, wire.TaskPending, wire.TaskCancelled},
	wire.TaskVerifying:  {wire.TaskRunning, wire.TaskPending, wire.TaskDone, wire.TaskFailed, wire.TaskCancelled},
}

func (h *handovers) move(e *handover, to wire.TaskState, by string) {
	h.w.must(slices.Contains(handoverMoves[e.state], to), "%+v becomes %s by %s", e, to, by)
	e.state = to
	h.w.states[e.id] = to
	h.w.saw["-> "+string(to)]++
}
