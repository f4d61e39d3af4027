package state

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
type DelegatedWork struct {
	StoredDelegation
	Task    *Task
	Given   time.Time // when the response was written to the stdin of that run; zero: not yet
	Next    time.Time // when it is retried
	Asked   time.Time // when a status request is answered without the agent
	Due     time.Time // the first of the two
	Awaited *Task     // the task of the source that waits for it
}

// A StoredDelegation is the part of a DelegatedWork that a snapshot copies.
type StoredDelegation struct {
	Request   wire.Raw `json:"request,omitzero"`   // the request without its target; nil when the task has ended
	Target    string   `json:"target,omitzero"`    // the named agent; "": any capable one
	Chain     []string `json:"chain"`              // every agent that has had it, the source last
	Sum       uint64   `json:"sum"`                // of the request
	Number    int64    `json:"number"`             // of the record that made it
	Retries   int      `json:"retries,omitzero"`   // after failures
	Forwarded string   `json:"forwarded,omitzero"` // when it was
	Out       string   `json:"out,omitzero"`       // the run that received it; "": none
	Said      string   `json:"said,omitzero"`      // the status of the latest response; "": none, or outdated
	Latest    int64    `json:"latest,omitzero"`    // the record of that
	Owed      bool     `json:"owed,omitzero"`      // its source may not have read it
	Sent      string   `json:"sent,omitzero"`      // the run of the source that it was sent to
	Returned  []int64  `json:"returned,omitzero"`  // records of inputs that could not be sent

	Context delegation.Context `json:"context"` // the context of the task
}

// Date implements byTime.
func (d *DelegatedWork) Date() (time.Time, int64) { return d.Due, d.Number }

// delegations holds all delegations by their next steps.
type delegations struct {
	Due   queue.Timeline[*DelegatedWork]
	Look  []*KnownAgent // agents that may have room for waiting tasks
	Fresh []reply       // that this turn has sent on their way
}

// A reply is a response that is sent to its source.
type reply struct {
	Of   *DelegatedWork
	Said int64    // its record
	Line wire.Raw // nil: it is only in the record
}

// Delegation returns the delegation of a task, or nil.
func (t *Task) Delegation() *DelegatedWork {
	if t.Extra == nil {
		return nil
	}
	return t.Extra.Delegation
}

// Waits reports whether a task waits to be forwarded to its agent.
func (d *DelegatedWork) Waits() bool { return d.Out == "" && d.Task.View.State == wire.TaskAssigned }

// When sets the times at which a delegation is due. A zero time means never.
func (ds *delegations) When(d *DelegatedWork, next, asked time.Time) {
	ds.Due.Drop(d)
	d.Next, d.Asked, d.Due = next, asked, next
	if next.IsZero() || !asked.IsZero() && asked.Before(next) {
		d.Due = asked
	}
	if !d.Due.IsZero() {
		ds.Due.Add(d)
	}
}

// RecheckCapacity marks an agent that may have room for waiting tasks.
func (ds *delegations) RecheckCapacity(a *KnownAgent) {
	if a != nil && !slices.Contains(ds.Look, a) {
		ds.Look = append(ds.Look, a)
	}
}

// ResetChanged drops the pending work of a turn that was replayed.
func (ds *delegations) ResetChanged() {
	ds.Forwarded()
	ds.Answered()
}

// Forwarded forgets the agents that may have had room.
func (ds *delegations) Forwarded() {
	clear(ds.Look)
	ds.Look = ds.Look[:0]
}

// Answered forgets the responses of the turn.
func (ds *delegations) Answered() {
	clear(ds.Fresh)
	ds.Fresh = ds.Fresh[:0]
}

// handOn adds the delegation of a new task.
func (t *TaskCreated) handOn(s *State, k *Task, seq int64) {
	q := t.Decoded
	d := &DelegatedWork{Task: k, StoredDelegation: StoredDelegation{
		Request: t.Delegated.Document, Target: q.Routing.Target, Chain: q.Routing.Chain, Sum: t.Delegated.Sum, Number: seq, Context: q.Context,
	}}
	k.EnsureExtra().Delegation = d
	s.Agents.HandsOn(k, +1)
	if parent := s.Tasks.ByID[q.Context.ParentTaskID]; parent != nil {
		d.awaitEnd(s, parent)
	}
}

// HandsOn updates the number of open tasks that an agent has delegated.
func (as *agents) HandsOn(t *Task, by int) {
	if a := as.ByID[AgentOf(t.View.SubmittedBy)]; a != nil {
		a.handsOn += by
	}
}

// Opened counts a task as one more or less open one of its submitter.
func (as *agents) Opened(t *Task, by int) {
	if a := as.ByID[AgentOf(t.View.SubmittedBy)]; a != nil {
		a.submitted += by
	}
}

// directed records that a delegated task is assigned to an agent.
func (ds *delegations) directed(d *DelegatedWork, a *KnownAgent) {
	d.Task.View.Details = directed(d.Task.View.Details, d.Task.View.AssignedTo)
	ds.When(d, time.Time{}, d.Asked)
	ds.RecheckCapacity(a)
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
func (d *DelegatedWork) awaitEnd(s *State, parent *Task) {
	if !parent.View.State.Final() && parent.View.AssignedTo == AgentOf(d.Task.View.SubmittedBy) && parent.View.AssignedTo != "" {
		d.Awaited = parent
		m := parent.EnsureExtra()
		m.HandedOn = append(m.HandedOn, d)
		s.Delegations.RecheckCapacity(s.Agents.ByID[parent.View.AssignedTo])
	}
}

// close drops the parts of a delegation that only an open task needs.
func (d *DelegatedWork) close(s *State) {
	d.Request = nil
	s.Agents.HandsOn(d.Task, -1)
	s.Delegations.When(d, time.Time{}, time.Time{})
	if p := d.Awaited; p != nil {
		d.Awaited = nil
		p.Extra.HandedOn = slices.DeleteFunc(p.Extra.HandedOn, func(o *DelegatedWork) bool { return o == d })
		s.Delegations.RecheckCapacity(s.Agents.ByID[p.View.AssignedTo])
	}
}

// detachParts unlinks delegated parts from a task that was taken away. The parts keep running.
func (s *State) detachParts(t *Task) {
	if t.Extra == nil {
		return
	}
	for _, d := range t.Extra.HandedOn {
		s.Tasks.beforeChange(d.Task)
		d.Awaited = nil
	}
	t.Extra.HandedOn = nil
}

// keepResponse sends the latest response to its source, if that is an agent with a stdin: now,
// or when it has a run that reads.
func (s *State) keepResponse(d *DelegatedWork, line wire.Raw) {
	a := s.Agents.SourceAgent(d)
	if a == nil {
		return
	}
	if d.Sent, d.Given = "", (time.Time{}); !d.Owed {
		d.Owed = true
		a.Owed = append(a.Owed, d)
	}
	if a.Reachable() && !a.Unreachable {
		s.bringTo(a, d, line)
	}
}

// SourceAgent returns the agent that receives the responses of a task. It returns nil if they
// are not sent but fetched.
func (as *agents) SourceAgent(d *DelegatedWork) *KnownAgent {
	a := as.ByID[AgentOf(d.Task.View.SubmittedBy)]
	if a == nil || a.Remote != nil || a.Deaf {
		return nil
	}
	return a
}

// bringTo queues the latest response for its source. line is nil if it must be read from the
// record.
func (s *State) bringTo(a *KnownAgent, d *DelegatedWork, line wire.Raw) {
	s.Tasks.beforeChange(d.Task)
	d.Sent, d.Given = a.Run, time.Time{}
	s.Delegations.Fresh = append(s.Delegations.Fresh, reply{Of: d, Said: d.Latest, Line: line})
}

// sendKeptResponses queues the responses that an agent has not received, when it reads again.
func (s *State) sendKeptResponses(a *KnownAgent) {
	if !a.Listens() {
		return
	}
	slices.SortFunc(a.Owed, func(d, o *DelegatedWork) int { return cmp.Compare(d.Latest, o.Latest) })
	for _, d := range a.Owed {
		if d.Sent != a.Run {
			s.bringTo(a, d, nil)
		}
	}
}

// confirmRead drops responses that an agent must have read: it wrote a message well after they were
// written to it.
func (s *State) confirmRead(agent string, at time.Time) {
	a := s.Agents.ByID[agent]
	if a == nil {
		return
	}
	for _, d := range slices.Clone(a.Owed) {
		if !d.Given.IsZero() && !d.Given.Add(readWithin).After(at) {
			s.dropKeptResponse(d)
		}
	}
}

// dropKeptResponse records that the source no longer needs a response.
func (s *State) dropKeptResponse(d *DelegatedWork) {
	if !d.Owed {
		return
	}
	s.Tasks.beforeChange(d.Task)
	d.Owed, d.Sent, d.Given = false, "", time.Time{}
	s.Agents.released = append(s.Agents.released, d.Task)
	if a := s.Agents.ByID[AgentOf(d.Task.View.SubmittedBy)]; a != nil {
		a.Owed = slices.DeleteFunc(a.Owed, func(o *DelegatedWork) bool { return o == d })
	}
}

// Delegated is the part of taskCreated for a delegated task.
type Delegated struct {
	Document wire.Raw `json:"document"` // the forwarded request, without its target
	Sum      uint64   `json:"sum"`
}

// Read reads the request, which has been read before.
func (d *Delegated) Read() (*delegation.Request, error) {
	request, err := wire.ReadTaskRequest(d.Document, history.Deepest)
	if err != nil {
		return nil, fmt.Errorf("its request makes no sense: %w", err)
	}
	return request, nil
}

// TaskForwarded records that a delegated task was sent to its agent, or that an input was sent
// again.
type TaskForwarded struct {
	ID    string `json:"task"`
	Name  string `json:"name"`
	Agent string `json:"agent"`
	Run   string `json:"run"`
	Acted int64  `json:"acted,omitzero"` // the record of the input
}

func (*TaskForwarded) kind() string { return events.TaskForwarded }

func (f *TaskForwarded) apply(s *State, r *wire.Record) {
	d := s.Tasks.ByID[f.ID].Delegation()
	if f.Acted != 0 {
		d.Returned = slices.DeleteFunc(d.Returned, func(acted int64) bool { return acted == f.Acted })
		return
	}
	d.Out, d.Forwarded = f.Run, object.Timestamp(r.At)
}

// TaskReturned records that the task or the input could not be sent. It is sent again when the
// agent reads its stdin.
type TaskReturned struct {
	ID    string `json:"task"`
	Name  string `json:"name"`
	Agent string `json:"agent"`
	Run   string `json:"run"`
	Acted int64  `json:"acted,omitzero"`
}

func (*TaskReturned) kind() string { return events.TaskReturned }

func (t *TaskReturned) apply(s *State, _ *wire.Record) {
	d := s.Tasks.ByID[t.ID].Delegation()
	if t.Acted != 0 {
		d.Returned = append(d.Returned, t.Acted)
	} else {
		d.Out = ""
	}
	if a := s.Agents.ByID[t.Agent]; a != nil && a.Runs(t.Run) {
		s.Tasks.Queue.removeIdle(a)
		a.Unreachable = true
		s.AddIdle(a)
	}
}

// TaskResponded records a response to a delegated task, as its source receives it.
type TaskResponded struct {
	ID       string   `json:"task"`
	Name     string   `json:"name"`
	Agent    string   `json:"agent,omitzero"`
	Status   string   `json:"status"`
	Document wire.Raw `json:"document,omitzero"`
	Own      bool     `json:"own,omitzero"`   // from the orchestrator, not from the agent
	Again    bool     `json:"again,omitzero"` // in the words of the latest response
}

func (*TaskResponded) kind() string { return events.TaskResponded }

// Line returns the response in the form for its source.
func (t *TaskResponded) Line() wire.Raw { return t.Document }

func (t *TaskResponded) apply(s *State, r *wire.Record) {
	if !t.Own {
		s.confirmRead(t.Agent, r.At)
	}
	d := s.Tasks.ByID[t.ID].Delegation()
	if !t.Again {
		d.Said, d.Latest = t.Status, r.Seq
	}
	s.Delegations.When(d, d.Next, time.Time{})
	s.keepResponse(d, t.Document)
}

// TaskAnswered records that the source has received the latest response.
type TaskAnswered struct {
	ID   string `json:"task"`
	Name string `json:"name"`
	Said int64  `json:"said"`
}

func (*TaskAnswered) kind() string { return events.TaskAnswered }

func (t *TaskAnswered) apply(s *State, r *wire.Record) {
	d := s.Tasks.ByID[t.ID].Delegation()
	d.Given = r.At
	if a := s.Agents.SourceAgent(d); a != nil && len(a.Owed) > maxKept {
		var oldest *DelegatedWork // of the tasks that were written to it
		for _, o := range a.Owed {
			if !o.Given.IsZero() && (oldest == nil || o.Latest < oldest.Latest) {
				oldest = o
			}
		}
		s.dropKeptResponse(oldest)
	}
}

// TaskUnanswered records that the response could not be sent. It is sent again when the source
// reads its stdin.
type TaskUnanswered struct {
	ID   string `json:"task"`
	Name string `json:"name"`
	Said int64  `json:"said"`
}

func (*TaskUnanswered) kind() string { return events.TaskUnanswered }

func (t *TaskUnanswered) apply(s *State, _ *wire.Record) { s.Tasks.ByID[t.ID].Delegation().Sent = "" }

// TaskActed records an act that was sent to the agent of a task.
type TaskActed struct {
	ID      string      `json:"task"`
	Name    string      `json:"name"`
	Agent   string      `json:"agent"`
	Act     string      `json:"act"` // wire.Act…
	Input   wire.Raw    `json:"input,omitzero"`
	Payload wire.Raw    `json:"payload,omitzero"` // of an update with other members than the input
	Reason  string      `json:"reason,omitzero"`
	Until   string      `json:"until,omitzero"` // of a status request: when the source gets the known status
	Request *RequestKey `json:"request,omitzero"`
}

func (*TaskActed) kind() string { return events.TaskActed }

func (t *TaskActed) apply(s *State, r *wire.Record) {
	k := s.Tasks.ByID[t.ID]
	if until, ok := object.ParseTime(t.Until); ok {
		d := k.Delegation()
		s.Delegations.When(d, d.Next, until)
	}
	s.saveReply(AgentOf(r.From), t.Request, s.Questions.AnswerOf(k), nil)
}

// Line returns the act in the form for its agent.
func (t *TaskActed) Line() wire.Raw {
	return OneLine(delegation.AppendAct(nil, &delegation.Act{ID: t.ID, Type: t.Act, Input: t.Input, Payload: t.Payload, Reason: t.Reason}))
}

// OneLine returns a line without its end.
func OneLine(text []byte) wire.Raw { return bytes.TrimSuffix(text, []byte("\n")) }

// TaskRetried records that a failed task is retried, because its agent reported that a retry may
// succeed.
type TaskRetried struct {
	ID    string            `json:"task"`
	Name  string            `json:"name"`
	Agent string            `json:"agent"`
	Fault *delegation.Fault `json:"error"`
	Next  string            `json:"next"`
}

func (*TaskRetried) kind() string { return events.TaskRetried }

func (t *TaskRetried) apply(s *State, _ *wire.Record) {
	k := s.Tasks.ByID[t.ID]
	s.unassign(k, t.Agent, "it failed: "+t.Fault.Message, time.Time{})
	k.Delegation().Retries++
	next, _ := object.ParseTime(t.Next)
	s.Delegations.When(k.Delegation(), next, k.Delegation().Asked)
}

func (f *TaskForwarded) check(s *State) error { return s.Tasks.checkDelegated(f.ID, heldStates...) }
func (t *TaskReturned) check(s *State) error  { return s.Tasks.checkDelegated(t.ID, heldStates...) }
func (t *TaskResponded) check(s *State) error {
	return s.Tasks.checkDelegated(t.ID, wire.TaskStates...)
}
func (t *TaskAnswered) check(s *State) error { return s.Tasks.checkDelegated(t.ID, wire.TaskStates...) }
func (t *TaskUnanswered) check(s *State) error {
	return s.Tasks.checkDelegated(t.ID, wire.TaskStates...)
}
func (t *TaskActed) check(s *State) error { return s.Tasks.checkDelegated(t.ID, openStates...) }

func (t *TaskRetried) check(s *State) error {
	if t.Fault == nil {
		return errors.New("it does not say why")
	}
	return s.Tasks.checkDelegated(t.ID, heldStates...)
}

// checkDelegated is checkTask for a delegated task.
func (ts *tasks) checkDelegated(id string, states ...wire.TaskState) error {
	if err := ts.checkTask(id, states...); err != nil {
		return err
	}
	if ts.ByID[id].Delegation() == nil {
		return fmt.Errorf("task %s was not handed on", id)
	}
	return nil
}
