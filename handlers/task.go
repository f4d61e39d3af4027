package handlers

import (
	"cmp"
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

// A task is a task in the State. The view is what callers see, without the dependencies, which
// are in the graph. Texts and lists in the view are never modified in place, so that copies can
// be read elsewhere.
type task struct {
	view    storedTask
	urgency uint8      // 0 is first
	node    graph.Node // in the graph
	run     string     // of the agent that holds it
	way     way        // how it was assigned
	deaths  int        // of agents that held it
	demand  *bucket    // it waits in this one
	created int64      // number of its first record
	ended   int64      // its last record
	result  int        // length of its result
	stub    bool       // a part of it is only in the log
	left    bool       // it has ended, and is not among those that are kept whole
	leaving bool       // it is in archive.leaving
	counted bool       // during distinct
	saved   uint32     // the latest snapshot in which it is spelled
	more    *taskExtra // nil for most

	parent   *task // nil for most
	children int   // tasks of the State that have this one as their parent
}

// A storedTask is a wire.Task without what is derived when it is shown: its status, its
// dependencies and its inputs. There may be many, so they must be small.
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

// shown returns the task without its dependencies.
func (t *storedTask) shown() wire.Task {
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
type taskExtra struct {
	patient   bool               // it stays pending if a dependency fails
	block     *hub.TaskBlock     // of the configuration, that it comes from
	promises  []hub.Promise      // of its spec
	maxFiles  int64              // that it may touch without a warning
	wants     *requirements      // of its requirements; nil: none
	bucket    *requirementBucket // it waits in this one
	parts     []int64            // later records that changed parts that a stub lacks
	notes     []int64            // records of its notes
	output    int64              // the record of its last partial result; 0: none
	delivered []delivery         // the contracts of its result
	question  string             // its agent waits for the answer to this one
	history   []string           // how each of its agents ended
	after     time.Time          // it is not given out before; zero: it may be now
	spent     int                // attempts before it was reopened
	planFirst bool               // a plan is wanted before it is begun, and none is approved
	used      activity.Used      // what its agents have used for it
	needs     []need             // its dependencies, if it has been archived
	work      *work              // its work in a session

	trace      *delegation.Trace // its position in a trace, if known
	delegation *delegatedWork    // how it was delegated
	handedOn   []*delegatedWork  // its delegated parts that its agent waits for
}

// needsMore returns the taskExtra of a task, and creates it if needed.
func (t *task) needsMore() *taskExtra {
	if t.more == nil {
		t.more = new(taskExtra)
	}
	return t.more
}

// wants returns the requirements of a task, or nil.
func (t *task) wants() *requirements {
	if t.more == nil {
		return nil
	}
	return t.more.wants
}

// work returns the work of a session on a task, or nil.
func (t *task) work() *work {
	if t.more == nil {
		return nil
	}
	return t.more.work
}

func (t *task) patient() bool { return t.more != nil && t.more.patient }

// A way is how a task was assigned.
type way string

const (
	dispatched        way = ""        // by its role and capabilities; it starts when the agent is notified
	matched           way = "match"   // by its requirements; the agent starts it
	byHand            way = "hand"    // by a request; the agent starts it
	inSession         way = "session" // by its architect; the assignment notifies the developer
	assignedDelegated way = "handed"  // by a task request, which is forwarded to the agent
)

// blocked counts pending tasks that wait for others, beside the states.
const blocked wire.TaskState = "blocked"

// Urgency returns the class of its priority: urgent, high, normal, low.
func (t *task) Urgency() uint8 { return t.urgency }

// Created returns the number of its first record.
func (t *task) Created() int64 { return t.created }

// label returns a task as shown to people: its short id and its name.
func label(id, name string) string { return fmt.Sprintf("%s %q", short(id), wire.Visible(name)) }

func (t *task) label() string { return label(t.view.ID, t.view.Name) }

func short(id string) string { return wire.ShortID(id) }

// submittedBy reports whether an actor submitted a task or holds it. Callers other than agents
// count as submitters.
func (t *task) submittedBy(from Actor) bool {
	return from.Kind != Agent || agentOf(t.view.SubmittedBy) == from.Name || t.view.AssignedTo == from.Name
}

// heldBy reports whether an actor may end a task: the agent that holds it, or a caller other
// than an agent.
func (t *task) heldBy(from Actor) bool { return from.Kind != Agent || t.view.AssignedTo == from.Name }

// maySteer reports whether the caller may start and end a task. This holds for its agent, for
// operators, and over protocol A for agents that manage all tasks.
func (td taskDecision) maySteer(k *task) bool {
	return k.heldBy(td.from) || td.from.ActsForOthers && td.managesAll()
}

// managesAll reports whether the caller is an agent that may manage all tasks: a planner, or one with
// manage = true.
func (td taskDecision) managesAll() bool {
	a := td.state.agents.byID[td.from.Name]
	return td.from.Kind == Agent && a != nil && (a.Role == wire.RolePlanner || a.Manage)
}

// manages reports whether the caller may manage a task like its submitter. An agent that does not manage
// all tasks may manage the tasks of people that it holds.
func (td taskDecision) manages(k *task) bool {
	a := td.state.agents.byID[td.from.Name]
	if !td.from.ActsForOthers || a == nil {
		return false
	}
	return td.managesAll() || agentOf(k.view.SubmittedBy) == "" && k.view.AssignedTo == a.ID
}

// reads reports whether the caller may read a task like its submitter: one that it manages, or one of a
// person that no agent holds.
func (td taskDecision) reads(k *task) bool {
	loose := agentOf(k.view.SubmittedBy) == "" && k.view.AssignedTo == ""
	return td.manages(k) || loose && td.from.ActsForOthers && td.state.agents.byID[td.from.Name] != nil
}

// readableTask returns a task that the caller submitted, holds or may read.
func (td taskDecision) readableTask(id string) (*task, *wire.Error) {
	k := td.state.tasks.byID[id]
	if k == nil {
		k = td.state.tasks.find(object.CanonicalID(id))
	}
	if k == nil {
		return nil, errorf(wire.CodeNotFound, details{"taskId": brief(id)}, "there is no task %q", brief(id))
	}
	if !k.submittedBy(td.from) && !td.reads(k) {
		err := errorf(wire.CodeDenied, details{"taskId": id}, "the task is not yours: you neither submitted it nor have it")
		if td.dependsOn(k) {
			err.Details["hint"] = "its result is in your own task, beside the dependency"
		}
		return nil, err
	}
	return k, nil
}

// manageableTask returns a task that the caller submitted, holds or manages.
func (td taskDecision) manageableTask(id string) (*task, *wire.Error) {
	k, err := td.readableTask(id)
	if err == nil && !k.submittedBy(td.from) && !td.manages(k) {
		err = errorf(wire.CodeDenied, details{"taskId": k.view.ID},
			"the task is not yours: you may read it, and neither submitted it nor have it")
		err.Hint = `an agent with role = "planner" or manage = true manages all tasks`
	}
	if err != nil {
		return nil, err
	}
	return k, nil
}

// dependsOn reports whether a task that the caller holds shows the result of another.
func (td taskDecision) dependsOn(up *task) bool {
	a := td.state.agents.byID[td.from.Name]
	if td.from.Kind != Agent || a == nil {
		return false
	}
	for _, k := range a.holds {
		for e := range td.state.tasks.graph.Needs(k.node) {
			if v := td.state.tasks.graph.Edge(e); td.state.tasks.nodes[v.Up] == up && !v.Private && up.view.State == wire.TaskDone {
				return true
			}
		}
	}
	return false
}

// wrongState returns the refusal of an operation that the state of a task does not allow.
func wrongState(k *task, verb string) *wire.Error {
	return errorf(wire.CodeConflict, details{"taskId": k.view.ID, "state": string(k.view.State), "status": k.view.State.Status(), "reason": "wrong_state"},
		"task %s is %s and cannot be %s", k.label(), k.view.State, verb)
}

// reply returns an answer with the current state of a task.
func (t *tasks) reply(k *task) *wire.TaskReply { return &wire.TaskReply{Task: t.shown(k)} }

// replyWith returns an answer with the current state of a task. If the last fact has saved that
// answer, it is not made again.
func (td taskDecision) replyWith(k *task) *wire.TaskReply {
	if a := td.state.agents.byID[td.from.Name]; td.from.Kind == Agent && a != nil {
		if kept := a.memories.Find(td.request.ID); kept != nil && kept.Seq == td.state.Seq() {
			if reply, ok := kept.Answer.(*wire.TaskReply); ok && reply.Task.ID == k.view.ID {
				return reply
			}
		}
	}
	reply := td.state.tasks.reply(k)
	td.personal(k, &reply.Task)
	return reply
}

// shown returns a task as callers see it, with its dependencies.
func (t *tasks) shown(k *task) wire.Task {
	v := k.view.shown()
	t.showLinks(k, &v)
	return v
}

// reviewedBy reports whether an agent is asked to review a task now.
func (k *task) reviewedBy(agent string) bool {
	return k != nil && k.work() != nil && k.work().open != nil && k.work().open.view.Reviewer == agent
}

func getTask(td taskDecision, r *wire.TaskID) (*wire.TaskReply, *wire.Error) {
	k, err := td.readableTask(r.TaskID)
	if of := td.state.tasks.byID[r.TaskID]; err != nil && td.from.Kind == Agent && of.reviewedBy(td.from.Name) {
		k, err = of, nil
	}
	if err != nil {
		return nil, err
	}
	answer := td.replyWith(k)
	answer.Task.WaitsFor = td.state.tasks.waitsFor(k)
	if k.more != nil && k.more.output != 0 {
		td.pages = append(td.pages, history.Page{Task: k.view.ID, Output: k.more.output})
	}
	td.state.tasks.showInputs(k, &answer.Task)
	td.state.tasks.showResults(k, &answer.Task)
	if k.more != nil && k.more.used != (activity.Used{}) {
		used := k.more.used
		answer.Task.Details = answer.Task.Details.Copy()
		answer.Task.Used = &used
	}
	return answer, nil
}

// waitsFor returns the tasks that must be done before this one.
func (t *tasks) waitsFor(k *task) []string {
	if t.graph.Open(k.node) == 0 || k.view.State.Final() {
		return nil
	}
	var ids queue.Set
	for e := range t.graph.Needs(k.node) {
		if v := t.graph.Edge(e); !v.Resolved && gates(v.Kind) {
			ids.Add(t.nodes[v.Up].view.ID)
		}
	}
	return ids.Texts
}

// defaultLimit is the default number of listed tasks.
const defaultLimit = 100

// unknownRole returns the roles of the team, or nil if an agent has a role or a task requires it.
// An agent with the role of a task may have left the team.
func (s *core) unknownRole(role string) []string {
	roles := s.agents.rolesWithout(role)
	for _, k := range s.tasks.list {
		if roles == nil || k.view.RequiredRole == role {
			return nil
		}
	}
	return roles
}

func queryTasks(td taskDecision, q *wire.QueryTasks) (*wire.TaskList, *wire.Error) {
	if roles := td.state.unknownRole(q.RequiredRole); roles != nil {
		return nil, wire.UnknownRole(q.RequiredRole, "/payload/requiredRole", roles)
	}
	limit := cmp.Or(int(q.Limit), defaultLimit)
	from, after := td.state.tasks.list, int64(0)
	if td.from.Kind == Agent && !td.from.ActsForOthers {
		from = td.state.tasks.owned[td.from.String()]
	}
	if q.Cursor != "" {
		last := td.state.tasks.find(q.Cursor)
		if last == nil {
			return nil, errorf(wire.CodeInvalid, details{"pointer": "/payload/cursor"}, "cursor names a task that does not exist: %.80q", q.Cursor)
		}
		from, after = from.After(last.created), last.created
	}
	most := int64(wire.MaxCounted)
	if q.Uncounted {
		most = 1
	}
	var found []*task
	var more int64
	filter, heldUp := td.filter(q), td.heldUp()
	for _, k := range from {
		if more == most {
			break
		}
		state := k.view.State
		if heldUp[k.view.ID] {
			state = wire.TaskNeedsHuman
		}
		if !filter.takes(&k.view, state, k.conversation()) {
			continue
		}
		if len(found) == limit {
			more++
			continue
		}
		found = append(found, k)
	}
	answer := &wire.TaskList{Tasks: make([]wire.Task, len(found)), More: more}
	if more > 0 {
		answer.Cursor = found[limit-1].view.ID
	}
	for i, k := range found {
		answer.Tasks[i] = td.state.tasks.brief(k)
		if heldUp[k.view.ID] {
			answer.Tasks[i].State = wire.TaskNeedsHuman
		}
	}
	if td.state.tasks.archive.size() > 0 && filter.ended() {
		page := td.state.archivedMatches(filter, after)
		page.Archived.Limit, page.Archived.Most = limit, most
		for _, k := range found {
			page.Archived.Created = append(page.Archived.Created, k.created)
		}
		td.pages = append(td.pages, page)
	}
	return answer, nil
}

// archivedMatches returns the page that adds the archived tasks that match a filter to a list. The
// page outlives the decision, and so its filter is a copy.
func (s *core) archivedMatches(filter taskFilter, after int64) history.Page {
	page, _ := s.tasks.archivedPage(after, s.seq, func(v *wire.Task, conversation string) bool {
		archived := stored(v)
		return filter.takes(&archived, archived.State, conversation)
	})
	return page
}

// brief returns a task as lists have it.
func (t *tasks) brief(k *task) wire.Task {
	v := t.shown(k)
	v.Description, v.Payload, v.Result, v.Details = "", nil, nil, v.Details.Brief()
	v.WaitsFor = t.waitsFor(k)
	return v
}

// owns adds a task to those that an actor sees, in the order of creation.
func (t *tasks) owns(actor string, k *task) {
	t.owned[actor] = t.owned[actor].With(k)
}

// disowns removes a task that an agent has lost from those that it sees, unless the agent
// submitted it.
func (t *tasks) disowns(actor string, k *task) {
	if k.view.SubmittedBy != actor {
		t.owned[actor] = t.owned[actor].Without(k)
	}
}

// move changes the state of a task and updates the counts.
func (s *core) move(k *task, to wire.TaskState) {
	s.tasks.beforeChange(k)
	s.count(k, -1)
	switch was, is := k.view.State.Final(), to.Final(); {
	case is && !was:
		s.agents.opened(k, -1)
	case was && !is:
		s.agents.opened(k, +1)
	}
	k.view.State = to
	s.count(k, +1)
	s.delegations.recheckCapacity(s.agents.byID[k.view.AssignedTo])
}

func (s *core) count(k *task, by int) {
	part := k.view.Details.IsPart()
	s.tasks.counts[k.view.State] += by
	if part {
		s.tasks.parts[k.view.State] += by
	}
	if k.view.State == wire.TaskPending && s.tasks.graph.Open(k.node) > 0 {
		s.tasks.counts[blocked] += by
		if part {
			s.tasks.parts[blocked] += by
		}
	}
	if a := s.agents.byID[k.view.AssignedTo]; a != nil && k.busy() {
		a.running += by
	}
}

// busy reports whether a task is being worked on.
func (t *task) busy() bool {
	return t.view.State == wire.TaskRunning || t.view.State == wire.TaskInReview || t.view.State == wire.TaskVerifying
}

// end puts a task in a final state and releases its agent. If too many finished tasks are kept
// whole, the oldest becomes a stub.
func (s *core) end(k *task, to wire.TaskState, r *wire.Record) {
	holder := s.agents.byID[k.view.AssignedTo]
	s.move(k, to)
	s.release(k)
	if holder != nil {
		s.updateStanding(holder)
	}
	if d := k.delegation(); d != nil {
		d.close(s)
	}
	detachParts(s, k)
	k.view.EndedAt, k.ended = object.Timestamp(r.At), r.Seq
	if w := k.work(); w != nil {
		s.endOf(w, to, r.At)
	}
	for e := range s.tasks.graph.Waiting(k.node) {
		s.tasks.leave(s.tasks.nodes[s.tasks.graph.Edge(e).Down])
	}
	s.tasks.finished = append(s.tasks.finished, k)
	for len(s.tasks.finished) > s.rules.KeepFinished {
		last := s.tasks.finished[0]
		s.tasks.finished[0] = nil
		s.tasks.finished = s.tasks.finished[1:]
		s.tasks.beforeChange(last)
		last.shrink()
		s.tasks.leave(last)
	}
}

// release removes a task from the queue and from its agent. If it was postponed, it is not any
// more.
func (s *core) release(k *task) {
	s.tasks.unqueue(k)
	s.tasks.postpone(k, time.Time{})
	a := s.agents.byID[k.view.AssignedTo]
	if a == nil {
		return
	}
	if i := slices.Index(a.holds, k); i >= 0 {
		s.tasks.queue.removeIdle(a)
		a.holds = slices.Delete(a.holds, i, i+1)
		s.addIdle(a)
		s.tasks.required.gain(a)
		s.delegations.recheckCapacity(a)
	}
}

// trace returns the position of a task in a trace, or nil if it is unknown.
func (t *task) trace() *delegation.Trace {
	if t.more == nil {
		return nil
	}
	return t.more.trace
}

// traceBelow returns the trace of a new task. If that is the trace of the parent task, missing
// members come from there. above is the given span, or "" if that is the span of the parent
// itself.
func (td taskDecision) traceBelow(parent *task, said delegation.Trace) (carried delegation.Trace, above string) {
	carried = said
	if parent == nil || parent.trace() == nil {
		return carried, carried.SpanID
	}
	up := parent.trace()
	if carried.TraceID != "" && carried.TraceID != up.TraceID {
		return carried, carried.SpanID // another trace
	}
	carried.TraceID = up.TraceID
	if carried.SpanID == "" {
		carried.SpanID = up.SpanID
	}
	if carried.Baggage == nil {
		carried.Baggage = up.Baggage
	}
	if carried.SpanID != up.SpanID {
		above = carried.SpanID
	}
	return carried, above
}

// traceIDOf returns the trace id of a task without a given trace. It is derived from the first
// task that leads to this one.
func (t *tasks) traceIDOf(parent *task, id string) string {
	for seen := 0; parent != nil && seen < len(t.list); seen++ {
		if up := parent.trace(); up != nil && up.TraceID != "" {
			return up.TraceID
		}
		id = parent.view.ID
		if parent.view.Details == nil {
			break
		}
		parent = t.find(parent.view.Details.ParentTaskID)
	}
	return trace.IDOf([]byte(id))
}

// traced sets the position of a new task in a trace. It does nothing if neither the request nor
// the parent has one.
func (td taskDecision) traced(f *taskCreated, said *delegation.Trace) {
	parent := td.state.tasks.find(f.Parent)
	if said == nil && (parent == nil || parent.trace() == nil) {
		return
	}
	if said == nil {
		said = new(delegation.Trace)
	}
	carried, above := td.traceBelow(parent, *said)
	f.Observability, f.TraceID, f.SpanID = &carried, carried.TraceID, above
}
