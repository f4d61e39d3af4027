package handlers

import (
	"cmp"
	"slices"
	"time"

	"orchestrator/wire"
)

// delegation holds the state of a task that was handed on: its source, its
// target, and what of it is on its way. It goes with the task for good; the request
// itself goes when the task has ended.
type delegation struct {
	task    *task
	request wire.Raw // as it is forwarded, but for its target; nil when the task has ended
	target  string   // the agent that was named; "": any that can do it
	chain   []string // every agent that has had it in hand, its source last
	sum     uint64   // of what is asked

	context wire.TaskContext // what it belongs to

	retries   int       // after failures
	forwarded string    // when it was
	out       string    // the run that it was forwarded to; "": none
	said      string    // the status of the latest response; "": there is none, or it counts for nothing now
	latest    int64     // the record of that
	owed      bool      // its source may not have read it
	sent      string    // the run of the source that it is on its way to
	given     time.Time // when it was written to that run's stdin; zero: it was not yet
	returned  []int64   // records of inputs that it could not be brought

	next    time.Time // it is tried again then
	asked   time.Time // its source has asked how it stands, and is told then if its agent has not said
	due     time.Time // the first of the two
	number  int64     // of the record that made it
	awaited *task     // what its source does with it: that task waits for this one
}

// date implements dated.
func (d *delegation) date() (time.Time, int64) { return d.due, d.number }

// delegations are all there are.
type delegations struct {
	due   timeOrder[*delegation]
	look  []*agent // that may have room for what waits for them
	fresh []reply  // that this turn has sent on their way
}

// reply is a response that is brought to its source.
type reply struct {
	of   *delegation
	said int64    // its record
	line wire.Raw // nil: it is only in the record
}

// delegation is how a task was handed on, or nil.
func (k *task) delegation() *delegation {
	if k.more == nil {
		return nil
	}
	return k.more.delegation
}

// waits reports whether a task waits to be forwarded to its agent.
func (d *delegation) waits() bool { return d.out == "" && d.task.view.State == wire.TaskAssigned }

// when has a delegation looked at at other times; the zero time: not by itself.
func (s *State) when(d *delegation, next, asked time.Time) {
	s.delegations.due.drop(d)
	d.next, d.asked, d.due = next, asked, next
	if next.IsZero() || !asked.IsZero() && asked.Before(next) {
		d.due = asked
	}
	if !d.due.IsZero() {
		s.delegations.due.add(d)
	}
}

// recheckCapacity has an agent looked at: there may be room for what waits for it.
func (s *State) recheckCapacity(a *agent) {
	if a != nil && !slices.Contains(s.delegations.look, a) {
		s.delegations.look = append(s.delegations.look, a)
	}
}

// looked lets go of what was to be looked at and told in a turn of another life.
func (x *delegations) looked() {
	clear(x.look)
	clear(x.fresh)
	x.look, x.fresh = x.look[:0], x.fresh[:0]
}

// handOn takes in how a new task was handed on.
func (s *State) handOn(k *task, f *taskCreated, seq int64) {
	q := f.request
	d := &delegation{
		task: k, request: f.Delegated.Document, target: q.Routing.Target, chain: q.Routing.Chain,
		sum: f.Delegated.Sum, number: seq, context: q.Context,
	}
	k.needsMore().delegation = d
	s.handsOn(k, +1)
	if parent := s.tasks.byID[q.Context.ParentTaskID]; parent != nil {
		s.awaitEnd(d, parent)
	}
}

// handsOn counts the tasks that an agent has handed on and that have not ended.
func (s *State) handsOn(k *task, by int) {
	if a := s.agents.byID[agentOf(k.view.SubmittedBy)]; a != nil {
		a.handsOn += by
	}
}

// directed notes that a task that was handed on is for an agent.
func (s *State) directed(d *delegation, a *agent) {
	direct(&d.task.view)
	s.when(d, time.Time{}, d.asked)
	s.recheckCapacity(a)
}

// direct has the routing of a task say who has it.
func direct(v *wire.Task) {
	if v.AssignedTo == "" || v.Details == nil || v.Details.Routing == nil {
		return
	}
	d, routing := v.Details.Copy(), *v.Details.Routing
	routing.Target = v.AssignedTo
	d.Routing = &routing
	v.Details = d
}

// awaitEnd notes that an agent does its task with what it has handed on: while it
// waits for that, it has room for something else.
func (s *State) awaitEnd(d *delegation, parent *task) {
	if !parent.view.State.Final() && parent.view.AssignedTo == agentOf(d.task.view.SubmittedBy) && parent.view.AssignedTo != "" {
		d.awaited = parent
		m := parent.needsMore()
		m.handedOn = append(m.handedOn, d)
		s.recheckCapacity(s.agents.byID[parent.view.AssignedTo])
	}
}

// closeDelegation lets go of what an open task has beside it.
func (s *State) closeDelegation(d *delegation) {
	d.request = nil
	s.handsOn(d.task, -1)
	s.when(d, time.Time{}, time.Time{})
	if p := d.awaited; p != nil {
		d.awaited = nil
		p.more.handedOn = slices.DeleteFunc(p.more.handedOn, func(o *delegation) bool { return o == d })
		s.recheckCapacity(s.agents.byID[p.view.AssignedTo])
	}
}

// detachParts unlinks delegated parts from a task that was taken away. The parts keep running.
func (k *task) detachParts() {
	if k.more == nil {
		return
	}
	for _, d := range k.more.handedOn {
		d.awaited = nil
	}
	k.more.handedOn = nil
}

// keepResponse has the latest response brought to its source, if that is an agent with a
// stdin: now, or when it has a run that reads.
func (s *State) keepResponse(d *delegation, line wire.Raw) {
	a := s.sourceAgent(d)
	if a == nil {
		return
	}
	if d.sent, d.given = "", (time.Time{}); !d.owed {
		d.owed = true
		a.owed = append(a.owed, d)
	}
	if a.reachable() && !a.deaf {
		s.bringTo(a, d, line)
	}
}

// sourceAgent is the agent that is to hear of a task; nil when none is, which does
// not ask for it.
func (s *State) sourceAgent(d *delegation) *agent {
	a := s.agents.byID[agentOf(d.task.view.SubmittedBy)]
	if a == nil || a.remote != nil || a.Deaf {
		return nil
	}
	return a
}

// bringTo sends the latest response on its way. The line is nil where it is in the
// record alone.
func (s *State) bringTo(a *agent, d *delegation, line wire.Raw) {
	d.sent, d.given = a.run, time.Time{}
	s.delegations.fresh = append(s.delegations.fresh, reply{of: d, said: d.latest, line: line})
}

// sendKeptResponses sends on their way what an agent has not got that reads now.
func (s *State) sendKeptResponses(a *agent) {
	if !a.listens() {
		return
	}
	slices.SortFunc(a.owed, func(d, o *delegation) int { return cmp.Compare(d.latest, o.latest) })
	for _, d := range a.owed {
		if d.sent != a.run {
			s.bringTo(a, d, nil)
		}
	}
}

// settleGiven notes that an agent has read the responses that were written to it a
// while before it says something.
func (s *State) settleGiven(agent string, at time.Time) {
	a := s.agents.byID[agent]
	if a == nil {
		return
	}
	for _, d := range slices.Clone(a.owed) {
		if !d.given.IsZero() && !d.given.Add(readWithin).After(at) {
			s.dropKeptResponse(d)
		}
	}
}

// dropKeptResponse notes that no response is owed any more.
func (s *State) dropKeptResponse(d *delegation) {
	if !d.owed {
		return
	}
	d.owed, d.sent, d.given = false, "", time.Time{}
	if a := s.agents.byID[agentOf(d.task.view.SubmittedBy)]; a != nil {
		a.owed = slices.DeleteFunc(a.owed, func(o *delegation) bool { return o == d })
	}
}
