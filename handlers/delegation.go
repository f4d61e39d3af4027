package handlers

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"orchestrator/handlers/history"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// A delegatedWork holds the state of a delegated task: its source, its target, and the messages on
// their way. It is kept as long as the task; the request itself is dropped when the task ends.
type delegatedWork struct {
	task    *task
	request wire.Raw // the request without its target; nil when the task has ended
	target  string   // the named agent; "": any capable one
	chain   []string // every agent that has had it, the source last
	sum     uint64   // of the request

	context delegation.Context // the context of the task

	retries   int       // after failures
	forwarded string    // when it was
	out       string    // the run that received it; "": none
	said      string    // the status of the latest response; "": none, or outdated
	latest    int64     // the record of that
	owed      bool      // its source may not have read it
	sent      string    // the run of the source that it was sent to
	given     time.Time // when it was written to that run's stdin; zero: not yet
	returned  []int64   // records of inputs that could not be sent

	next    time.Time // when it is retried
	asked   time.Time // when a status request is answered without the agent
	due     time.Time // the first of the two
	number  int64     // of the record that made it
	awaited *task     // the task of the source that waits for it
}

// Date implements byTime.
func (d *delegatedWork) Date() (time.Time, int64) { return d.due, d.number }

// delegations holds all delegations by what must happen next.
type delegations struct {
	due   queue.Timeline[*delegatedWork]
	look  []*agent // agents that may have room for waiting tasks
	fresh []reply  // that this turn has sent on their way
}

// A reply is a response that is sent to its source.
type reply struct {
	of   *delegatedWork
	said int64    // its record
	line wire.Raw // nil: it is only in the record
}

// delegation returns the delegation of a task, or nil.
func (t *task) delegation() *delegatedWork {
	if t.more == nil {
		return nil
	}
	return t.more.delegation
}

// waits reports whether a task waits to be forwarded to its agent.
func (d *delegatedWork) waits() bool { return d.out == "" && d.task.view.State == wire.TaskAssigned }

// when sets the times at which a delegation is due. A zero time means never.
func (ds *delegations) when(d *delegatedWork, next, asked time.Time) {
	ds.due.Drop(d)
	d.next, d.asked, d.due = next, asked, next
	if next.IsZero() || !asked.IsZero() && asked.Before(next) {
		d.due = asked
	}
	if !d.due.IsZero() {
		ds.due.Add(d)
	}
}

// recheckCapacity marks an agent that may have room for waiting tasks.
func (ds *delegations) recheckCapacity(a *agent) {
	if a != nil && !slices.Contains(ds.look, a) {
		ds.look = append(ds.look, a)
	}
}

// looked drops the pending work of a turn that was replayed.
func (ds *delegations) looked() {
	ds.forwarded()
	ds.answered()
}

// forwarded forgets the agents that may have had room.
func (ds *delegations) forwarded() {
	clear(ds.look)
	ds.look = ds.look[:0]
}

// answered forgets the responses of the turn.
func (ds *delegations) answered() {
	clear(ds.fresh)
	ds.fresh = ds.fresh[:0]
}

// handOn adds the delegation of a new task.
func (t *taskCreated) handOn(s *core, k *task, seq int64) {
	q := t.decoded
	d := &delegatedWork{
		task: k, request: t.Delegated.Document, target: q.Routing.Target, chain: q.Routing.Chain,
		sum: t.Delegated.Sum, number: seq, context: q.Context,
	}
	k.needsMore().delegation = d
	s.agents.handsOn(k, +1)
	if parent := s.tasks.byID[q.Context.ParentTaskID]; parent != nil {
		d.awaitEnd(s, parent)
	}
}

// handsOn updates the number of open tasks that an agent has delegated.
func (as *agents) handsOn(k *task, by int) {
	if a := as.byID[agentOf(k.view.SubmittedBy)]; a != nil {
		a.handsOn += by
	}
}

// opened counts a task as one more or less open one of its submitter.
func (as *agents) opened(k *task, by int) {
	if a := as.byID[agentOf(k.view.SubmittedBy)]; a != nil {
		a.submitted += by
	}
}

// directed records that a delegated task is assigned to an agent.
func (ds *delegations) directed(d *delegatedWork, a *agent) {
	d.task.view.Details = directed(d.task.view.Details, d.task.view.AssignedTo)
	ds.when(d, time.Time{}, d.asked)
	ds.recheckCapacity(a)
}

// directed returns the details of a task with its agent as the target of its routing.
func directed(d *wire.Details, agent string) *wire.Details {
	if agent == "" || d == nil || d.Routing == nil {
		return d
	}
	changed, routing := d.Copy(), *d.Routing
	routing.Target = agent
	changed.Routing = &routing
	return changed
}

// awaitEnd marks a delegated task as a part of its agent's own task. While that task waits, it
// does not count against the capacity of its agent.
func (d *delegatedWork) awaitEnd(s *core, parent *task) {
	if !parent.view.State.Final() && parent.view.AssignedTo == agentOf(d.task.view.SubmittedBy) && parent.view.AssignedTo != "" {
		d.awaited = parent
		m := parent.needsMore()
		m.handedOn = append(m.handedOn, d)
		s.delegations.recheckCapacity(s.agents.byID[parent.view.AssignedTo])
	}
}

// close drops the parts of a delegation that only an open task needs.
func (d *delegatedWork) close(s *core) {
	d.request = nil
	s.agents.handsOn(d.task, -1)
	s.delegations.when(d, time.Time{}, time.Time{})
	if p := d.awaited; p != nil {
		d.awaited = nil
		p.more.handedOn = slices.DeleteFunc(p.more.handedOn, func(o *delegatedWork) bool { return o == d })
		s.delegations.recheckCapacity(s.agents.byID[p.view.AssignedTo])
	}
}

// detachParts unlinks delegated parts from a task that was taken away. The parts keep running.
func detachParts(s *core, k *task) {
	if k.more == nil {
		return
	}
	for _, d := range k.more.handedOn {
		s.tasks.beforeChange(d.task)
		d.awaited = nil
	}
	k.more.handedOn = nil
}

// keepResponse sends the latest response to its source, if that is an agent with a stdin: now,
// or when it has a run that reads.
func (s *core) keepResponse(d *delegatedWork, line wire.Raw) {
	a := s.agents.sourceAgent(d)
	if a == nil {
		return
	}
	if d.sent, d.given = "", (time.Time{}); !d.owed {
		d.owed = true
		a.owed = append(a.owed, d)
	}
	if a.reachable() && !a.deaf {
		bringTo(s, a, d, line)
	}
}

// sourceAgent returns the agent that receives the responses of a task. It returns nil if they
// are not sent but fetched.
func (as *agents) sourceAgent(d *delegatedWork) *agent {
	a := as.byID[agentOf(d.task.view.SubmittedBy)]
	if a == nil || a.remote != nil || a.Deaf {
		return nil
	}
	return a
}

// bringTo queues the latest response for its source. line is nil if it must be read from the
// record.
func bringTo(s *core, a *agent, d *delegatedWork, line wire.Raw) {
	s.tasks.beforeChange(d.task)
	d.sent, d.given = a.run, time.Time{}
	s.delegations.fresh = append(s.delegations.fresh, reply{of: d, said: d.latest, line: line})
}

// sendKeptResponses queues the responses that an agent has not received, when it reads again.
func sendKeptResponses(s *core, a *agent) {
	if !a.listens() {
		return
	}
	slices.SortFunc(a.owed, func(d, o *delegatedWork) int { return cmp.Compare(d.latest, o.latest) })
	for _, d := range a.owed {
		if d.sent != a.run {
			bringTo(s, a, d, nil)
		}
	}
}

// settleGiven drops responses that an agent must have read: it has written something well after
// they were written to it.
func settleGiven(s *core, agent string, at time.Time) {
	a := s.agents.byID[agent]
	if a == nil {
		return
	}
	for _, d := range slices.Clone(a.owed) {
		if !d.given.IsZero() && !d.given.Add(readWithin).After(at) {
			dropKeptResponse(s, d)
		}
	}
}

// dropKeptResponse records that the source needs no response any more.
func dropKeptResponse(s *core, d *delegatedWork) {
	if !d.owed {
		return
	}
	s.tasks.beforeChange(d.task)
	d.owed, d.sent, d.given = false, "", time.Time{}
	s.agents.released = append(s.agents.released, d.task)
	if a := s.agents.byID[agentOf(d.task.view.SubmittedBy)]; a != nil {
		a.owed = slices.DeleteFunc(a.owed, func(o *delegatedWork) bool { return o == d })
	}
}

// delegated is the part of taskCreated for a delegated task.
type delegated struct {
	Document wire.Raw `json:"document"` // the request as it is forwarded, without its target
	Sum      uint64   `json:"sum"`
}

// read reads the request, which has been read before.
func (d *delegated) read() (*delegation.Request, error) {
	request, err := wire.ReadTaskRequest(d.Document, history.Deepest)
	if err != nil {
		return nil, fmt.Errorf("its request makes no sense: %w", err)
	}
	return request, nil
}

// taskForwarded records that a delegated task was sent to its agent, or that an input was sent
// again.
type taskForwarded struct {
	ID    string `json:"task"`
	Name  string `json:"name"`
	Agent string `json:"agent"`
	Run   string `json:"run"`
	Acted int64  `json:"acted,omitzero"` // the record of the input
}

func (*taskForwarded) kind() string { return events.TaskForwarded }

func (f *taskForwarded) apply(s *core, r *wire.Record) {
	d := s.tasks.byID[f.ID].delegation()
	if f.Acted != 0 {
		d.returned = slices.DeleteFunc(d.returned, func(acted int64) bool { return acted == f.Acted })
		return
	}
	d.out, d.forwarded = f.Run, object.Timestamp(r.At)
}

// taskReturned records that the task or the input could not be sent. It is sent again when the
// agent reads its stdin.
type taskReturned struct {
	ID    string `json:"task"`
	Name  string `json:"name"`
	Agent string `json:"agent"`
	Run   string `json:"run"`
	Acted int64  `json:"acted,omitzero"`
}

func (*taskReturned) kind() string { return events.TaskReturned }

func (t *taskReturned) apply(s *core, _ *wire.Record) {
	d := s.tasks.byID[t.ID].delegation()
	if t.Acted != 0 {
		d.returned = append(d.returned, t.Acted)
	} else {
		d.out = ""
	}
	if a := s.agents.byID[t.Agent]; a != nil && a.runs(t.Run) {
		s.tasks.queue.removeIdle(a)
		a.deaf = true
		s.addIdle(a)
	}
}

// taskResponded records a response to a delegated task, as its source receives it.
type taskResponded struct {
	ID       string   `json:"task"`
	Name     string   `json:"name"`
	Agent    string   `json:"agent,omitzero"`
	Status   string   `json:"status"`
	Document wire.Raw `json:"document,omitzero"`
	Own      bool     `json:"own,omitzero"`   // from the orchestrator, not from the agent
	Again    bool     `json:"again,omitzero"` // in the words of the latest response
}

func (*taskResponded) kind() string { return events.TaskResponded }

// Line returns the response as it is sent to the source.
func (t *taskResponded) Line() wire.Raw { return t.Document }

func (t *taskResponded) apply(s *core, r *wire.Record) {
	if !t.Own {
		settleGiven(s, t.Agent, r.At)
	}
	d := s.tasks.byID[t.ID].delegation()
	if !t.Again {
		d.said, d.latest = t.Status, r.Seq
	}
	s.delegations.when(d, d.next, time.Time{})
	s.keepResponse(d, t.Document)
}

// taskAnswered records that the source has received the latest response.
type taskAnswered struct {
	ID   string `json:"task"`
	Name string `json:"name"`
	Said int64  `json:"said"`
}

func (*taskAnswered) kind() string { return events.TaskAnswered }

func (t *taskAnswered) apply(s *core, r *wire.Record) {
	d := s.tasks.byID[t.ID].delegation()
	d.given = r.At
	if a := s.agents.sourceAgent(d); a != nil && len(a.owed) > maxKept {
		var oldest *delegatedWork // of those that were written to it
		for _, o := range a.owed {
			if !o.given.IsZero() && (oldest == nil || o.latest < oldest.latest) {
				oldest = o
			}
		}
		dropKeptResponse(s, oldest)
	}
}

// taskUnanswered records that the response could not be sent. It is sent again when the source
// reads its stdin.
type taskUnanswered struct {
	ID   string `json:"task"`
	Name string `json:"name"`
	Said int64  `json:"said"`
}

func (*taskUnanswered) kind() string { return events.TaskUnanswered }

func (t *taskUnanswered) apply(s *core, _ *wire.Record) { s.tasks.byID[t.ID].delegation().sent = "" }

// taskActed records an act that was sent to the agent of a task.
type taskActed struct {
	ID      string      `json:"task"`
	Name    string      `json:"name"`
	Agent   string      `json:"agent"`
	Act     string      `json:"act"` // wire.Act…
	Input   wire.Raw    `json:"input,omitzero"`
	Payload wire.Raw    `json:"payload,omitzero"` // of an update with other members than the input
	Reason  string      `json:"reason,omitzero"`
	Until   string      `json:"until,omitzero"` // of a status request: when the source gets the known status
	Request *requestKey `json:"request,omitzero"`
}

func (*taskActed) kind() string { return events.TaskActed }

func (t *taskActed) apply(s *core, r *wire.Record) {
	k := s.tasks.byID[t.ID]
	if until, ok := object.ParseTime(t.Until); ok {
		d := k.delegation()
		s.delegations.when(d, d.next, until)
	}
	s.saveReply(agentOf(r.From), t.Request, s.questions.answerOf(k), nil)
}

// Line returns the act as it is sent to the agent.
func (t *taskActed) Line() wire.Raw {
	return oneLine(delegation.AppendAct(nil, &delegation.Act{ID: t.ID, Type: t.Act, Input: t.Input, Payload: t.Payload, Reason: t.Reason}))
}

// oneLine returns a line without its end.
func oneLine(text []byte) wire.Raw { return bytes.TrimSuffix(text, []byte("\n")) }

// taskRetried records that a failed task is retried, because its agent reported that a retry may
// succeed.
type taskRetried struct {
	ID    string            `json:"task"`
	Name  string            `json:"name"`
	Agent string            `json:"agent"`
	Fault *delegation.Fault `json:"error"`
	Next  string            `json:"next"`
}

func (*taskRetried) kind() string { return events.TaskRetried }

func (t *taskRetried) apply(s *core, _ *wire.Record) {
	k := s.tasks.byID[t.ID]
	s.unassign(k, t.Agent, "it failed: "+t.Fault.Message, time.Time{})
	k.delegation().retries++
	next, _ := object.ParseTime(t.Next)
	s.delegations.when(k.delegation(), next, k.delegation().asked)
}

func (f *taskForwarded) check(s *core) error { return s.tasks.checkDelegated(f.ID, heldStates...) }
func (t *taskReturned) check(s *core) error  { return s.tasks.checkDelegated(t.ID, heldStates...) }
func (t *taskResponded) check(s *core) error {
	return s.tasks.checkDelegated(t.ID, wire.TaskStates...)
}
func (t *taskAnswered) check(s *core) error { return s.tasks.checkDelegated(t.ID, wire.TaskStates...) }
func (t *taskUnanswered) check(s *core) error {
	return s.tasks.checkDelegated(t.ID, wire.TaskStates...)
}
func (t *taskActed) check(s *core) error { return s.tasks.checkDelegated(t.ID, openStates...) }

func (t *taskRetried) check(s *core) error {
	if t.Fault == nil {
		return errors.New("it does not say why")
	}
	return s.tasks.checkDelegated(t.ID, heldStates...)
}

// checkDelegated is checkTask for a delegated task.
func (t *tasks) checkDelegated(id string, states ...wire.TaskState) error {
	if err := t.checkTask(id, states...); err != nil {
		return err
	}
	if t.byID[id].delegation() == nil {
		return fmt.Errorf("task %s was not handed on", id)
	}
	return nil
}
