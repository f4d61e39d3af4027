package state

import (
	"fmt"
	"slices"
	"time"

	"orchestrator/handlers/graph"
	"orchestrator/handlers/history"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
	"orchestrator/wire/trace"
)

// A task is a task in the State. The view is for callers, without the dependencies, which are in
// the graph. Texts and lists in the view are never modified in place, so that copies can be read
// elsewhere.
type Task struct {
	View    storedTask
	urgency uint8      // 0 is first
	Node    graph.Node // in the graph
	Run     string     // of the agent that holds it
	Way     Way        // how it was assigned
	Deaths  int        // of agents that held it
	Demand  *bucket    // it waits in this one
	Number  int64      // number of its first record
	Ended   int64      // its last record
	result  int        // length of its result
	Stub    bool       // a part of it is only in the log
	Left    bool       // it has ended, and is not kept whole
	leaving bool       // it is in archive.leaving
	counted bool       // during distinct
	Saved   uint32     // the latest snapshot that spells it
	Extra   *Extra     // nil for most

	parent   *Task // nil for most
	children int   // tasks of the State that have this one as their parent
}

// A storedTask is a wire.Task without the parts that are derived for a view: its status, its
// dependencies and its inputs. The State may have many, so they must be small.
type storedTask struct {
	ID, Name, Type, Description string
	State                       wire.TaskState
	Payload, Priority, Result   wire.Raw
	RequiredRole                string
	RequiredCapabilities        []string
	*wire.Details
	SubmittedBy, AssignedTo, Message, Error, Reason string
	Progress                                        float64
	Attempts                                        int
	CreatedAt, AssignedAt, StartedAt, EndedAt       string
}

// Shown returns the task without its dependencies.
func (t *storedTask) Shown() wire.Task {
	return wire.Task{
		ID: t.ID, Name: t.Name, Type: t.Type, Status: t.State.Status(), State: t.State, Description: t.Description, Payload: t.Payload,
		RequiredRole: t.RequiredRole, RequiredCapabilities: t.RequiredCapabilities, Details: t.Details, Priority: t.Priority,
		SubmittedBy: t.SubmittedBy, AssignedTo: t.AssignedTo, Progress: t.Progress, Message: t.Message, Attempts: t.Attempts,
		Result: t.Result, Error: t.Error, Reason: t.Reason,
		CreatedAt: t.CreatedAt, AssignedAt: t.AssignedAt, StartedAt: t.StartedAt, EndedAt: t.EndedAt,
	}
}

// stored is the opposite of shown.
func stored(t *wire.Task) storedTask {
	return storedTask{
		ID: t.ID, Name: t.Name, Type: t.Type, State: t.State, Description: t.Description, Payload: t.Payload,
		RequiredRole: t.RequiredRole, RequiredCapabilities: t.RequiredCapabilities, Details: t.Details, Priority: t.Priority,
		SubmittedBy: t.SubmittedBy, AssignedTo: t.AssignedTo, Progress: t.Progress, Message: t.Message, Attempts: t.Attempts,
		Result: t.Result, Error: t.Error, Reason: t.Reason,
		CreatedAt: t.CreatedAt, AssignedAt: t.AssignedAt, StartedAt: t.StartedAt, EndedAt: t.EndedAt,
	}
}

// A taskExtra holds the parts of a task that few tasks have.
type Extra struct {
	StoredExtra
	wants     *requirements      // of its requirements; nil: none
	Bucket    *requirementBucket // it waits in this one
	delivered []delivery         // the contracts of its result
	After     time.Time          // it is not given out before; zero: it may be now
	Work      *Work              // its work in a session

	Delegation *DelegatedWork   // how it was delegated
	HandedOn   []*DelegatedWork // its delegated parts that its agent waits for
}

// A StoredExtra is the part of an Extra that a snapshot copies.
type StoredExtra struct {
	Patient   bool              `json:"patient,omitzero"`    // it stays pending if a dependency fails
	Block     *hub.TaskBlock    `json:"block,omitzero"`      // of the configuration, that it comes from
	Promises  []hub.Promise     `json:"promises,omitzero"`   // of its spec
	MaxFiles  int64             `json:"max_files,omitzero"`  // that it may touch without a warning
	PlanFirst bool              `json:"plan_first,omitzero"` // a plan is wanted before it is begun, and none is approved
	Spent     int               `json:"spent,omitzero"`      // attempts before it was reopened
	Parts     []int64           `json:"parts,omitzero"`      // later records that changed parts that a stub lacks
	Notes     []int64           `json:"notes,omitzero"`      // records of its notes
	Output    int64             `json:"output,omitzero"`     // the record of its last partial result; 0: none
	Question  string            `json:"question,omitzero"`   // its agent waits for the answer to this one
	History   []string          `json:"history,omitzero"`    // how each of its agents ended
	Used      activity.Used     `json:"used,omitzero"`       // the usage of its agents for it
	Needs     []Need            `json:"needs,omitzero"`      // its dependencies, if it has been archived
	Trace     *delegation.Trace `json:"trace,omitzero"`      // its position in a trace, if known
}

// EnsureExtra returns the taskExtra of a task, and creates it if needed.
func (t *Task) EnsureExtra() *Extra {
	if t.Extra == nil {
		t.Extra = new(Extra)
	}
	return t.Extra
}

// Wants returns the requirements of a task, or nil.
func (t *Task) Wants() *requirements {
	if t.Extra == nil {
		return nil
	}
	return t.Extra.wants
}

// Work returns the work of a session on a task, or nil.
func (t *Task) Work() *Work {
	if t.Extra == nil {
		return nil
	}
	return t.Extra.Work
}

func (t *Task) Patient() bool { return t.Extra != nil && t.Extra.Patient }

// A way is how a task was assigned.
type Way string

const (
	Dispatched Way = ""        // by its role and capabilities; it starts when the agent is notified
	Matched    Way = "match"   // by its requirements; the agent starts it
	ByHand     Way = "hand"    // by a request; the agent starts it
	InSession  Way = "session" // by its architect; the assignment notifies the developer
)

// Blocked counts pending tasks that wait for other tasks, beside the states.
const Blocked wire.TaskState = "blocked"

// Urgency returns the class of its priority: urgent, high, normal, low.
func (t *Task) Urgency() uint8 { return t.urgency }

// Created returns the number of its first record.
func (t *Task) Created() int64 { return t.Number }

// label returns a task as shown to people: its short id and its name.
func label(id, name string) string { return fmt.Sprintf("%s %q", Short(id), wire.Visible(name)) }

func (t *Task) Label() string { return label(t.View.ID, t.View.Name) }

func Short(id string) string { return wire.ShortID(id) }

// SubmittedBy reports whether an actor submitted a task or holds it. Callers other than agents
// count as submitters.
func (t *Task) SubmittedBy(from Actor) bool {
	return from.Kind != Agent || AgentOf(t.View.SubmittedBy) == from.Name || t.View.AssignedTo == from.Name
}

// HeldBy reports whether an actor may end a task: the agent that holds it, or a caller other
// than an agent.
func (t *Task) HeldBy(from Actor) bool { return from.Kind != Agent || t.View.AssignedTo == from.Name }

// Reply returns an answer with the current state of a task.
func (ts *tasks) Reply(t *Task) *wire.TaskReply { return &wire.TaskReply{Task: ts.Shown(t)} }

// Shown returns a task as callers see it, with its dependencies.
func (ts *tasks) Shown(t *Task) wire.Task {
	v := t.View.Shown()
	ts.showLinks(t, &v)
	return v
}

// ReviewedBy reports whether an agent is asked to review a task now.
func (t *Task) ReviewedBy(agent string) bool {
	return t != nil && t.Work() != nil && t.Work().Open != nil && t.Work().Open.View.Reviewer == agent
}

// WaitsFor returns the tasks that must be done before this one.
func (ts *tasks) WaitsFor(t *Task) []string {
	if ts.Graph.Open(t.Node) == 0 || t.View.State.Final() {
		return nil
	}
	var ids queue.Set
	for e := range ts.Graph.Needs(t.Node) {
		if v := ts.Graph.Edge(e); !v.Resolved && Gates(v.Kind) {
			ids.Add(ts.Nodes[v.Up].View.ID)
		}
	}
	return ids.Texts
}

// UnknownRole returns the roles of the team, or nil if an agent has a role or a task requires it.
// An agent with the role of a task may have left the team.
func (s *State) UnknownRole(role string) []string {
	roles := s.Agents.RolesWithout(role)
	for _, t := range s.Tasks.List {
		if roles == nil || t.View.RequiredRole == role {
			return nil
		}
	}
	return roles
}

// ArchivedMatches returns the page that adds the archived tasks that match a filter to a list. The
// page outlives the decision, and so its filter is a copy.
func (s *State) ArchivedMatches(filter TaskFilter, after int64) history.Page {
	page, _ := s.Tasks.archivedPage(after, s.LastSeq, func(v *wire.Task, conversation string) bool {
		archived := stored(v)
		return filter.Takes(&archived, archived.State, conversation)
	})
	page.Archived.Whole = filter.takesAll()
	return page
}

// Brief returns a task as lists have it.
func (ts *tasks) Brief(t *Task) wire.Task {
	v := ts.Shown(t)
	v.Description, v.Payload, v.Result, v.Details = "", nil, nil, v.Details.Brief()
	v.WaitsFor = ts.WaitsFor(t)
	return v
}

// Owns adds a task to the tasks that an actor sees, in the order of creation.
func (ts *tasks) Owns(actor string, t *Task) {
	ts.Owned[actor] = ts.Owned[actor].With(t)
}

// disowns removes a task that an agent has lost from the tasks that it sees, unless the agent
// submitted it.
func (ts *tasks) disowns(actor string, t *Task) {
	if t.View.SubmittedBy != actor {
		ts.Owned[actor] = ts.Owned[actor].Without(t)
	}
}

// move changes the state of a task and updates the counts.
func (s *State) move(t *Task, to wire.TaskState) {
	s.Tasks.beforeChange(t)
	s.Count(t, -1)
	switch was, is := t.View.State.Final(), to.Final(); {
	case is && !was:
		s.Agents.Opened(t, -1)
	case was && !is:
		s.Agents.Opened(t, +1)
	}
	t.View.State = to
	s.Count(t, +1)
	s.Delegations.RecheckCapacity(s.Agents.ByID[t.View.AssignedTo])
}

func (s *State) Count(t *Task, by int) {
	part := t.View.Details.IsPart()
	s.Tasks.Counts[t.View.State] += by
	if part {
		s.Tasks.Parts[t.View.State] += by
	}
	if t.View.State == wire.TaskPending && s.Tasks.Graph.Open(t.Node) > 0 {
		s.Tasks.Counts[Blocked] += by
		if part {
			s.Tasks.Parts[Blocked] += by
		}
	}
	if a := s.Agents.ByID[t.View.AssignedTo]; a != nil && t.Busy() {
		a.Running += by
	}
}

// Busy reports whether a task is being worked on.
func (t *Task) Busy() bool {
	return t.View.State == wire.TaskRunning || t.View.State == wire.TaskInReview || t.View.State == wire.TaskVerifying
}

// end puts a task in a final state and releases its agent.
func (s *State) end(t *Task, to wire.TaskState, r *wire.Record) {
	holder := s.Agents.ByID[t.View.AssignedTo]
	s.move(t, to)
	s.release(t)
	if holder != nil {
		s.updateStanding(holder)
	}
	if d := t.Delegation(); d != nil {
		d.close(s)
	}
	s.detachParts(t)
	t.View.EndedAt, t.Ended = object.Timestamp(r.At), r.Seq
	if w := t.Work(); w != nil {
		s.endOf(w, to, r.At)
	}
	for e := range s.Tasks.Graph.Waiting(t.Node) {
		s.Tasks.Leave(s.Tasks.Nodes[s.Tasks.Graph.Edge(e).Down])
	}
	s.keepFinished(t)
}

// keepFinished adds an ended task to those that are kept whole. If there are too many, the oldest
// becomes a stub.
func (s *State) keepFinished(t *Task) {
	s.Tasks.Finished = append(s.Tasks.Finished, t)
	for len(s.Tasks.Finished) > s.Rules.KeepFinished {
		last := s.Tasks.Finished[0]
		s.Tasks.Finished[0] = nil
		s.Tasks.Finished = s.Tasks.Finished[1:]
		s.Tasks.beforeChange(last)
		last.shrink()
		s.Tasks.Leave(last)
	}
}

// release removes a task from the queue and from its agent. If it was postponed, it is not any
// more.
func (s *State) release(t *Task) {
	s.Tasks.unqueue(t)
	s.Tasks.postpone(t, time.Time{})
	a := s.Agents.ByID[t.View.AssignedTo]
	if a == nil {
		return
	}
	if i := slices.Index(a.Holds, t); i >= 0 {
		s.Tasks.Queue.removeIdle(a)
		a.Holds = slices.Delete(a.Holds, i, i+1)
		s.AddIdle(a)
		s.Tasks.Required.markChanged(a)
		s.Delegations.RecheckCapacity(a)
	}
}

// Trace returns the position of a task in a trace, or nil if it is unknown.
func (t *Task) Trace() *delegation.Trace {
	if t.Extra == nil {
		return nil
	}
	return t.Extra.Trace
}

// TraceIDOf returns the trace id of a task without a given trace. It is derived from the first
// task that leads to this one.
func (ts *tasks) TraceIDOf(parent *Task, id string) string {
	for seen := 0; parent != nil && seen < len(ts.List); seen++ {
		if up := parent.Trace(); up != nil && up.TraceID != "" {
			return up.TraceID
		}
		id = parent.View.ID
		if parent.View.Details == nil {
			break
		}
		parent = ts.Find(parent.View.Details.ParentTaskID)
	}
	return trace.IDOf([]byte(id))
}
