package handlers

import (
	"cmp"

	"orchestrator/handlers/history"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

const (
	assignedDelegated state.Way = "handed" // by a task request, which is forwarded to the agent
)

// maySteer reports whether the caller may start and end a task. This holds for its agent, for
// operators, and over protocol A for agents that manage all tasks.
func (td taskDecision) maySteer(t *state.Task) bool {
	return t.HeldBy(td.from) || td.from.ActsForOthers && td.managesAll()
}

// managesAll reports whether the caller is an agent that may manage all tasks: a planner, or one with
// manage = true.
func (td taskDecision) managesAll() bool {
	a := td.state.Agents.ByID[td.from.Name]
	return td.from.Kind == Agent && a != nil && (a.Role == wire.RolePlanner || a.Manage)
}

// manages reports whether the caller may manage a task like its submitter. An agent that does not manage
// all tasks may manage the tasks of people that it holds.
func (td taskDecision) manages(t *state.Task) bool {
	a := td.state.Agents.ByID[td.from.Name]
	if !td.from.ActsForOthers || a == nil {
		return false
	}
	return td.managesAll() || state.AgentOf(t.View.SubmittedBy) == "" && t.View.AssignedTo == a.ID
}

// reads reports whether the caller may read a task like its submitter: one that it manages, or one of a
// person that no agent holds.
func (td taskDecision) reads(t *state.Task) bool {
	loose := state.AgentOf(t.View.SubmittedBy) == "" && t.View.AssignedTo == ""
	return td.manages(t) || loose && td.from.ActsForOthers && td.state.Agents.ByID[td.from.Name] != nil
}

// readableTask returns a task that the caller submitted, holds or may read.
func (td taskDecision) readableTask(id string) (*state.Task, *wire.Error) {
	t := td.state.Tasks.ByID[id]
	if t == nil {
		t = td.state.Tasks.Find(object.CanonicalID(id))
	}
	if t == nil {
		return nil, state.Errorf(wire.CodeNotFound, state.Details{"taskId": brief(id)}, "task %q does not exist", brief(id))
	}
	if !t.SubmittedBy(td.from) && !td.reads(t) {
		err := state.Errorf(wire.CodeDenied, state.Details{"taskId": id}, "the task is not yours: you neither submitted it nor have it")
		if td.dependsOn(t) {
			err.Details["hint"] = "its result is in your own task, beside the dependency"
		}
		return nil, err
	}
	return t, nil
}

// manageableTask returns a task that the caller submitted, holds or manages.
func (td taskDecision) manageableTask(id string) (*state.Task, *wire.Error) {
	t, err := td.readableTask(id)
	if err == nil && !t.SubmittedBy(td.from) && !td.manages(t) {
		err = state.Errorf(wire.CodeDenied, state.Details{"taskId": t.View.ID},
			"the task is not yours: you may read it, and neither submitted it nor have it")
		err.Hint = `an agent with role = "planner" or manage = true manages all tasks`
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// dependsOn reports whether a task that the caller holds shows the result of another.
func (td taskDecision) dependsOn(up *state.Task) bool {
	a := td.state.Agents.ByID[td.from.Name]
	if td.from.Kind != Agent || a == nil {
		return false
	}
	for _, t := range a.Holds {
		for e := range td.state.Tasks.Graph.Needs(t.Node) {
			if v := td.state.Tasks.Graph.Edge(e); td.state.Tasks.Nodes[v.Up] == up && !v.Private && up.View.State == wire.TaskDone {
				return true
			}
		}
	}
	return false
}

// wrongState returns the refusal of an operation that the state of a task does not allow.
func wrongState(t *state.Task, verb string) *wire.Error {
	return state.Errorf(wire.CodeConflict, state.Details{"taskId": t.View.ID, "state": string(t.View.State), "status": t.View.State.Status(), "reason": "wrong_state"},
		"task %s is %s and cannot be %s", t.Label(), t.View.State, verb)
}

// replyWith returns an answer with the current state of a task. If the last fact has saved that
// answer, it is not made again.
func (td taskDecision) replyWith(t *state.Task) *wire.TaskReply {
	if a := td.state.Agents.ByID[td.from.Name]; td.from.Kind == Agent && a != nil {
		if kept := a.Memories.Find(td.request.ID); kept != nil && kept.Seq == td.state.Seq() {
			if reply, ok := kept.Answer.(*wire.TaskReply); ok && reply.Task.ID == t.View.ID {
				return reply
			}
		}
	}
	reply := td.state.Tasks.Reply(t)
	td.personal(t, &reply.Task)
	return reply
}

func (td taskDecision) getTask(r *wire.TaskID) (*wire.TaskReply, *wire.Error) {
	t, err := td.readableTask(r.TaskID)
	if of := td.state.Tasks.ByID[r.TaskID]; err != nil && td.from.Kind == Agent && of.ReviewedBy(td.from.Name) {
		t, err = of, nil
	}
	if err != nil {
		return nil, err
	}
	answer := td.replyWith(t)
	answer.Task.WaitsFor = td.state.Tasks.WaitsFor(t)
	if t.Extra != nil && t.Extra.Output != 0 {
		td.pages = append(td.pages, history.Page{Task: t.View.ID, Output: t.Extra.Output})
	}
	td.state.Tasks.ShowInputs(t, &answer.Task)
	td.state.Tasks.ShowResults(t, &answer.Task)
	if t.Extra != nil && t.Extra.Used != (activity.Used{}) {
		used := t.Extra.Used
		answer.Task.Details = answer.Task.Details.Copy()
		answer.Task.Used = &used
	}
	return answer, nil
}

// defaultLimit is the default number of listed tasks.
const defaultLimit = 100

func (td taskDecision) queryTasks(q *wire.QueryTasks) (*wire.TaskList, *wire.Error) {
	if roles := td.state.UnknownRole(q.RequiredRole); roles != nil {
		return nil, wire.UnknownRole(q.RequiredRole, "/payload/requiredRole", roles)
	}
	return td.taskPage(q)
}

// taskPage returns a page of the tasks that a query selects: tasks that the caller may list, and
// tasks that are only in the log. The log completes any answer of this type.
func (td taskDecision) taskPage(q *wire.QueryTasks) (*wire.TaskList, *wire.Error) {
	limit := cmp.Or(int(q.Limit), defaultLimit)
	from, after := td.state.Tasks.List, int64(0)
	if td.from.Kind == Agent && !td.from.ActsForOthers {
		from = td.state.Tasks.Owned[td.from.String()]
	}
	if q.Cursor != "" {
		last := td.state.Tasks.Find(q.Cursor)
		if last == nil {
			return nil, state.Errorf(wire.CodeInvalid, state.Details{"pointer": "/payload/cursor"}, "cursor names a task that does not exist: %.80q", q.Cursor)
		}
		from, after = from.After(last.Number), last.Number
	}
	most := int64(wire.MaxCounted)
	if q.Uncounted {
		most = 1
	}
	var found []*state.Task
	var more int64
	filter, heldUp := td.filter(q), td.heldUp()
	for _, t := range from {
		if more == most {
			break
		}
		status := t.View.State
		if heldUp[t.View.ID] {
			status = wire.TaskNeedsHuman
		}
		if !filter.Takes(&t.View, status, t.Conversation()) {
			continue
		}
		if len(found) == limit {
			more++
			continue
		}
		found = append(found, t)
	}
	answer := &wire.TaskList{Tasks: make([]wire.Task, len(found)), More: more}
	if more > 0 {
		answer.Cursor = found[limit-1].View.ID
	}
	for i, t := range found {
		answer.Tasks[i] = td.state.Tasks.Brief(t)
		if heldUp[t.View.ID] {
			answer.Tasks[i].State = wire.TaskNeedsHuman
		}
	}
	if td.state.Tasks.Archive.Size() > 0 && filter.Ended() {
		page := td.state.ArchivedMatches(filter, after)
		page.Archived.Limit, page.Archived.Most = limit, most
		for _, t := range found {
			page.Archived.Created = append(page.Archived.Created, t.Number)
		}
		td.pages = append(td.pages, page)
	}
	return answer, nil
}

// traceBelow returns the trace of a new task. If that is the trace of the parent task, missing
// members come from there. above is the given span, or "" if that is the span of the parent
// itself.
func (td taskDecision) traceBelow(parent *state.Task, said delegation.Trace) (carried delegation.Trace, above string) {
	carried = said
	if parent == nil || parent.Trace() == nil {
		return carried, carried.SpanID
	}
	up := parent.Trace()
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

// traced sets the position of a new task in a trace. It does nothing if neither the request nor
// the parent has one.
func (td taskDecision) traced(f *state.TaskCreated, said *delegation.Trace) {
	parent := td.state.Tasks.Find(f.Parent)
	if said == nil && (parent == nil || parent.Trace() == nil) {
		return
	}
	if said == nil {
		said = new(delegation.Trace)
	}
	carried, above := td.traceBelow(parent, *said)
	f.Observability, f.TraceID, f.SpanID = &carried, carried.TraceID, above
}
