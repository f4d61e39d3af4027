package handlers

import (
	"fmt"
	"slices"

	"orchestrator/handlers/match"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// The checks of the records of one turn.

// follow follows a task through its records, and checks each transition.
func (w *world) follow(id string, r *wire.Record) {
	next, moves := moved(r)
	before := w.states[id]
	if j := w.minutes.jobs[id]; j != nil && ofSessions(r.Kind) && !before.Final() {
		next = stateIn(j.phase)
		moves = next != "" && next != before && (next != wire.TaskPlanning || before != wire.TaskPlanReview)
	}
	if !moves {
		return
	}
	switch {
	case w.minutes.jobs[id] != nil && slices.Contains(sessionMoves[before], next):
	case r.Kind == events.TaskCreated:
		w.must(before == "", "%s is created twice", id)
	case r.Kind == events.TaskRequeued:
		w.must(before != "" && before != wire.TaskPending && !before.Final(), "%s is %s and requeued", id, before)
	default:
		w.must(slices.Contains(transitions[before], next), "%s is %s and becomes %s", id, before, next)
	}
	w.states[id] = next
	w.saw["-> "+string(next)]++
	w.lookAtPostponed(id, r)
}

// lookAtPostponed checks that a postponed task is not given out before its time, unless a request
// does that.
func (w *world) lookAtPostponed(id string, r *wire.Record) {
	if until, there := w.later[id]; there && r.Kind == events.TaskAssigned {
		early := until.After(r.At)
		w.must(!early || r.From != (Actor{}).String(), "%s is postponed until %v, and given out at %v", id, until, r.At)
		w.saw[fmt.Sprintf("postponed, given out early: %v", early)]++
	}
	delete(w.later, id)
	if after, _ := object.TextOf(r.Payload, "after"); r.Kind == events.TaskRequeued && after != "" {
		w.later[id], _ = object.ParseTime(after)
	}
}

// moved returns the new state of a task, if a record changes it.
func moved(r *wire.Record) (to wire.TaskState, moves bool) {
	f, err := state.Decode(r, new([]object.Member))
	if err != nil {
		return "", false
	}
	switch f := f.(type) {
	case *state.TaskCreated, *state.TaskRequeued, *state.TaskReopened:
		return wire.TaskPending, true
	case *state.TaskAssigned:
		if f.Plan {
			return wire.TaskPlanning, true
		}
		return wire.TaskAssigned, true
	case *state.TaskStarted:
		return wire.TaskRunning, true
	case *state.TaskPlanned:
		return wire.TaskPlanReview, true
	case *state.TaskRevise:
		return wire.TaskPlanning, true
	case *state.TaskHelp:
		return wire.TaskNeedsHuman, true
	case *state.TaskChecked:
		switch f.What {
		case events.TaskVerifying:
			return wire.TaskVerifying, true
		case events.TaskVerified, events.TaskUnverified:
			return wire.TaskRunning, true
		}
	case *state.TaskDone:
		return wire.TaskDone, true
	case *state.TaskFailed:
		return wire.TaskFailed, true
	case *state.TaskCancelled:
		return wire.TaskCancelled, true
	}
	return "", false
}

// rooms returns how many more tasks each agent could be assigned.
func (w *world) rooms() map[string]int {
	rooms := make(map[string]int, len(w.state.Agents.Order))
	for _, a := range w.state.Agents.Order {
		if a.Takes() {
			rooms[a.ID] = a.Capacity - len(a.Holds)
		}
	}
	return rooms
}

// lookAtTurn checks all records of a turn.
func (w *world) lookAtTurn(records []wire.Record, before map[string]int) {
	if len(records) == 0 {
		return
	}
	w.lookAtCascades(records)
	w.lookAtCreation(records)
	w.lookAtArrivals(records, before)
	w.lookAtMatches(records)
}

// lookAtMatches checks that an agent that arrives or has room again is assigned no more than it
// has room for.
func (w *world) lookAtMatches(records []wire.Record) {
	otherwise := make(map[string]bool) // tasks that are assigned for another reason
	for i := range records {
		r := &records[i]
		switch r.Kind {
		case events.TaskCreated, events.TaskUnblocked, events.TaskRequeued, events.TaskDue:
			otherwise[r.Correlation] = true
		case events.TaskAssigned:
			k := w.task(r.Correlation)
			if a := w.state.Agents.ByID[assignee(r)]; k.Way == state.Matched && r.From == (Actor{}).String() && !otherwise[k.View.ID] {
				w.saw["matched on arrival"]++
				w.must(len(a.Holds) <= a.Capacity, "%s has come, and has too much", a.ID)
			}
		}
	}
}

// The steps of a cascade, in their order.
const (
	isDone = iota
	isChecked
	isResolved
	isUnblocked
	isAssigned
	isAnnounced
)

// lookAtCascades checks that the consequences of the end of a task are in order, and are
// announced once.
func (w *world) lookAtCascades(records []wire.Record) {
	cascades := make(map[string]*cascade)
	freed := make(map[string]*cascade) // by the tasks that they unblocked
	var last *cascade
	for i := range records {
		r := &records[i]
		id := r.Correlation
		switch r.Kind {
		case events.TaskDone:
			last = &cascade{w: w, id: id}
			cascades[id] = last
		case events.ContractFulfilled, events.ContractMissing:
			if !w.late(r) {
				cascades[id].comes(isChecked)
				cascades[id].contract(r)
			}
		case events.DependencyResolved:
			if c := cascades[id]; c != nil {
				c.comes(isResolved)
			}
		case events.TaskUnblocked:
			if last != nil {
				last.comes(isUnblocked)
				w.must(freed[id] == nil, "%s is unblocked twice", id)
				freed[id] = last
			}
		case events.TaskAssigned:
			if c := freed[id]; c != nil {
				c.comes(isAssigned)
				w.saw["assigned when unblocked"]++
			}
		case events.TaskAnnounced:
			c := cascades[id]
			w.must(c != nil && c.step < isAnnounced, "%s is announced without an end, or twice", id)
			c.comes(isAnnounced)
		}
	}
	for id, c := range cascades {
		w.must(c.step == isDone || c.step == isAnnounced, "%s ended, something followed from it, and it was not announced", id)
	}
}

// cascade tracks the consequences of the end of a task.
type cascade struct {
	w    *world
	id   string
	step int
}

func (c *cascade) comes(step int) {
	c.w.must(c.step <= step, "step %d of what follows from the end of %s comes after step %d", step, c.id, c.step)
	c.step = step
}

// contract checks that a contract is reported as missing once.
func (c *cascade) contract(r *wire.Record) {
	f, err := state.Decode(r, new([]object.Member))
	c.w.must(err == nil, "%v", err)
	seen, _ := f.(*state.ContractSeen)
	key := c.id + " " + seen.Key
	c.w.must(!c.w.missed[key], "%s is said twice", key)
	c.w.missed[key] = true
}

// late reports whether a contract is missing for a task that needed it only later.
func (w *world) late(r *wire.Record) bool {
	f, err := state.Decode(r, new([]object.Member))
	w.must(err == nil, "%v", err)
	seen, _ := f.(*state.ContractSeen)
	if seen.NeededBy != "" {
		w.saw["missed late"]++
	}
	return seen.NeededBy != ""
}

// lookAtCreation checks that a task with only requirements is not assigned at its creation,
// unless the rules allow it.
func (w *world) lookAtCreation(records []wire.Record) {
	for _, r := range records {
		if r.Kind == events.ServerSeen {
			return // with an arrival
		}
	}
	created := ""
	for _, r := range records {
		k := w.task(r.Correlation)
		switch {
		case r.Kind == events.TaskCreated && k.Wants() != nil && !k.Asks():
			created = r.Correlation
			w.saw["created with requirements"]++
		case r.Kind == events.TaskAssigned && r.Correlation == created:
			w.must(w.rules.MatchOnCreate, "%s was given to anyRecipient when it was created", created)
			w.saw["matched on creation"]++
		}
	}
}

// lookAtArrivals checks that no task that waited before the turn fits an agent that gained
// capabilities in it and has room.
func (w *world) lookAtArrivals(records []wire.Record, before map[string]int) {
	if w.state.Stopping || w.rules.IgnoreArrivals {
		return
	}
	gained := make(map[*state.KnownAgent]bool)
	for name, room := range w.rooms() {
		if room > before[name] {
			gained[w.state.Agents.ByID[name]] = true
		}
	}
	changed := make(map[string]bool) // tasks changed by the turn
	for _, r := range records {
		switch r.Kind {
		case events.AgentCapable, events.AgentKnown, events.ServerRegistered:
			if a := w.state.Agents.ByID[state.AgentOf(r.To)]; a != nil && a.Takes() {
				gained[a] = true
			}
		case events.TaskCreated, events.TaskUpdated:
			changed[r.Correlation] = true
		}
	}
	for a := range gained {
		w.saw["gained"]++
		for h := range w.state.Tasks.Required.Waiting.Buckets() {
			if !w.state.Agents.Index.Fits(&h.Asks.Demand, a.ID, match.Conditions{Online: true, Free: true}) {
				continue
			}
			for k := range h.Items() {
				w.must(changed[k.View.ID], "%s waits, and would fit %s", k.View.ID, a.ID)
			}
		}
	}
}

// assignee returns the agent in a task.assigned record.
func assignee(r *wire.Record) string {
	name, _ := object.TextOf(r.Payload, "agent")
	return name
}
