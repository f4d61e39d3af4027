package handlers

import (
	"encoding/hex"
	"fmt"
	"strings"

	"orchestrator/handlers/match"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

func submitTask(t *decision, r *wire.SubmitTask) (*wire.TaskReply, *wire.Error) {
	if roles := t.state.agents.rolesWithout(r.RequiredRole); roles != nil {
		return nil, &wire.Error{
			Code:    wire.CodeInvalid,
			Message: fmt.Sprintf("requiredRole must be one of %s, not %.80q", strings.Join(roles, ", "), r.RequiredRole),
			Details: map[string]any{"role": r.RequiredRole, "pointer": "/payload/requiredRole"},
		}
	}
	of := r.Details
	of.ParentTaskID = t.parent()
	vain, err := t.dependencies(r.Dependencies, &of, r.Patient)
	if err != nil {
		return nil, err
	}
	id := t.uuid()
	if t.state.tasks.byID[id] != nil {
		panic("the chance that came with the input is not fresh")
	}
	f := &taskCreated{
		ID: id, Name: r.Name, Type: r.Type, Description: r.Description, Payload: r.Payload,
		RequiredRole: r.RequiredRole, RequiredCapabilities: r.RequiredCapabilities,
		Dependencies: r.Dependencies, Priority: r.Priority, Request: t.mark(),
		StructuredSpec: r.Details.StructuredSpec, Requirements: r.Details.Requirements, TargetRepo: r.Details.TargetRepo,
		AcceptanceCriteria: r.Details.AcceptanceCriteria, ProjectID: r.Details.ProjectID, SessionID: r.Details.SessionID,
		Parent: of.ParentTaskID, Patient: r.Patient,
	}
	t.traced(f, r.Observability)
	t.fact("", id, f)
	k := t.state.tasks.byID[id]
	t.oddities(k, r)
	for _, d := range vain {
		t.fact("", id, &taskBlocked{ID: id, Name: r.Name, Upstream: d})
	}
	t.missLate(k, r.Dependencies)
	answer := t.state.tasks.reply(k) // with the state pending, as a repeat gets it
	if t.state.rules.MatchOnCreate && t.state.free(k) {
		t.place(k, match.Conditions{Online: t.state.rules.OnlineOnly})
	}
	return answer, nil
}

// parent returns the task that a submitting agent works on. The new task is a part of it.
func (t *decision) parent() string {
	if t.from.Kind != Agent {
		return ""
	}
	return t.state.agents.parentOf(t.from.Name)
}

func (as *agents) parentOf(agent string) string {
	a := as.byID[agent]
	if a == nil {
		return ""
	}
	for _, k := range a.holds {
		if k.busy() {
			return k.view.ID
		}
	}
	return ""
}

// oddities records the warnings about the documents of a new task.
func (t *decision) oddities(k *task, r *wire.SubmitTask) {
	if r.Spec != nil {
		for _, o := range r.Spec.Oddities {
			t.odd(k, o)
		}
	}
	if r.Requirements != nil {
		for _, o := range r.Requirements.Oddities {
			t.odd(k, o)
		}
	}
	if o := wire.OddPriority(r.Priority); o != nil {
		t.odd(k, *o)
	}
	for _, d := range r.Dependencies {
		for _, o := range d.Oddities {
			t.odd(k, o)
		}
	}
}

// uuid returns a UUID made of the random bytes of the input (RFC 9562, version 4).
func (t *decision) uuid() string {
	return asUUID(t.random)
}

// asUUID formats bytes as a UUID of version 4.
func asUUID(b [16]byte) string {
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	id := make([]byte, 0, 36)
	for _, part := range [][]byte{b[0:4], b[4:6], b[6:8], b[8:10], b[10:16]} {
		if len(id) > 0 {
			id = append(id, '-')
		}
		id = hex.AppendEncode(id, part)
	}
	return string(id)
}

func startTask(t *decision, r *wire.TaskID) (*wire.TaskReply, *wire.Error) {
	k, err := t.manageableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	held := k.view.AssignedTo == t.from.Name && t.from.Kind == Agent
	if w := k.work(); w != nil && t.from.Kind == Agent && !w.active() {
		return nil, inItsSession(k, "started")
	}
	waits := t.state.tasks.graph.Open(k.node) > 0
	switch state := k.view.State; {
	case state == wire.TaskRunning && held && k.way == dispatched: // it started when its agent was notified
		return t.state.tasks.reply(k), nil
	case t.state.agents.unbrought(k):
		return nil, notForwarded(k)
	case waits && (state == wire.TaskPending || state == wire.TaskAssigned || state == wire.TaskNeedsHuman) && t.mayStart(k):
		return nil, t.state.tasks.waits(k)
	case state == wire.TaskPending && k.delegation() != nil:
		return nil, errDelegated(k)
	case state == wire.TaskPending && t.from.Kind == Agent:
		a := t.state.agents.byID[t.from.Name]
		if len(a.holds) >= a.Capacity {
			return nil, hasEnough(a)
		}
		t.take(k, a, &taskAssigned{Way: t.ownWay(k)})
	case state == wire.TaskPending:
		return nil, &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("task %s has no agent that could work on it", k.label()),
			Details: map[string]any{"taskId": k.view.ID, "reason": "unassigned"},
		}
	case state != wire.TaskAssigned && state != wire.TaskNeedsHuman:
		return nil, wrongState(k, "started")
	case !t.maySteer(k):
		return nil, notHolder(k)
	}
	t.cancelQuestions(k)
	t.start(k, t.mark())
	return t.state.tasks.reply(k), nil
}

// ownWay returns the way of a task that an agent takes itself. It is byHand for tasks that must
// outlive their agents.
func (t *decision) ownWay(k *task) way {
	if k.patient() || k.wants() != nil {
		return byHand
	}
	return dispatched
}

// mayStart reports whether the caller could start a task without dependencies.
func (t *decision) mayStart(k *task) bool { return k.view.State == wire.TaskPending || t.maySteer(k) }

// waits returns the refusal to start a task that waits for others.
func (t *tasks) waits(k *task) *wire.Error {
	return &wire.Error{
		Code:    wire.CodeConflict,
		Message: fmt.Sprintf("task %s waits for others", k.label()),
		Details: map[string]any{"taskId": k.view.ID, "reason": "blocked", "waitsFor": t.waitsFor(k)},
	}
}

// hasEnough returns the refusal of an agent that is at its capacity and wants to start another
// of its tasks.
func hasEnough(a *agent) *wire.Error {
	return &wire.Error{
		Code:    wire.CodeConflict,
		Message: fmt.Sprintf("you have as many tasks as you may have at a time (%d)", a.Capacity),
		Details: map[string]any{"reason": "at_capacity", "capacity": a.Capacity, "taskIds": ids(a.holds)},
	}
}

func notHolder(k *task) *wire.Error {
	return &wire.Error{
		Code: wire.CodeDenied, Message: fmt.Sprintf("only the agent that has task %s may say that", k.label()),
		Details: map[string]any{"taskId": k.view.ID},
	}
}

func (t *decision) start(k *task, mk *requestKey) {
	t.fact(agentPrefix+k.view.AssignedTo, k.view.ID, &taskStarted{ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Request: mk})
}

// reportableTask returns a task that the caller may report on. Without explicit steps, a task
// that is assigned and not held back counts as started. With explicit steps only a dispatched
// one does: its agent may report before the delivery of its notice is recorded.
func (t *decision) reportableTask(id, verb string) (*task, *wire.Error) {
	k, err := t.held(id, verb)
	switch {
	case err != nil:
		return nil, err
	case t.from.Kind == Agent && k.work() != nil && (verb == "completed" || !k.work().active()):
		return nil, inItsSession(k, verb)
	case k.view.State == wire.TaskRunning:
	case t.state.agents.unbrought(k):
		return nil, notForwarded(k)
	case k.view.State == wire.TaskAssigned && t.state.tasks.graph.Open(k.node) > 0:
		return nil, t.state.tasks.waits(k)
	case k.view.State == wire.TaskAssigned && (k.way == dispatched || !t.from.ExplicitSteps):
	case k.view.State == wire.TaskNeedsHuman && !t.from.ExplicitSteps:
	default:
		return nil, notBegun(wrongState(k, verb), k)
	}
	return k, nil
}

// inItsSession returns the refusal of a report that belongs in the session of the task, where it
// is checked.
func inItsSession(k *task, verb string) *wire.Error {
	return &wire.Error{
		Code:    wire.CodeConflict,
		Message: fmt.Sprintf("task %s cannot be %s here: say so in its session %q, by a message", k.label(), verb, k.work().of.spec.ID),
		Details: map[string]any{"taskId": k.view.ID, "reason": "in_session", "session": k.work().of.spec.ID},
	}
}

// notBegun adds a hint to an error about a task that its agent has not started.
func notBegun(err *wire.Error, k *task) *wire.Error {
	if k.view.State == wire.TaskAssigned || k.view.State == wire.TaskNeedsHuman {
		err.Hint = "start it first, with start-task"
	}
	return err
}

// begin starts a task that its agent already works on.
func (t *decision) begin(k *task) {
	if k.view.State != wire.TaskRunning {
		t.cancelQuestions(k)
		t.start(k, nil)
	}
}

// held returns a task that the caller holds.
func (t *decision) held(id, verb string) (*task, *wire.Error) {
	k, err := t.manageableTask(id)
	switch {
	case err != nil:
		return nil, err
	case k.view.State == wire.TaskPending:
		return nil, wrongState(k, verb)
	case !t.maySteer(k):
		return nil, notHolder(k)
	}
	return k, nil
}

// succeeded is the default result of a completed task.
var succeeded = hub.Result{Document: delegation.Succeeded}

func completeTask(t *decision, r *wire.CompleteTask) (*wire.TaskReply, *wire.Error) {
	k, err := t.reportableTask(r.TaskID, "completed")
	if err != nil {
		return nil, err
	}
	result := &succeeded
	if r.Result != nil {
		result = t.from.wrapped(r.Result)
	}
	if result.Breach != nil && !t.state.rules.LenientResults {
		return nil, result.Breach
	}
	t.begin(k)
	t.complete(k, result, t.mark())
	if result.Breach != nil {
		t.odd(k, hub.Oddity{Kind: events.DocumentOdd, Pointer: fmt.Sprint(result.Breach.Details["pointer"]), Text: result.Breach.Message})
	}
	t.relieve(k, "Completed by ")
	return t.state.tasks.reply(k), nil
}

// wrapped returns a result as it is stored. A text becomes a document with its author.
func (a *Actor) wrapped(r *hub.Result) *hub.Result {
	if r.Document[0] != '"' {
		return r
	}
	document := append([]byte(`{"summary":`), r.Document...)
	document = append(document, `,"completed_by":`...)
	return &hub.Result{Document: append(object.AppendText(document, a.String()), '}')}
}

func failTask(t *decision, r *wire.FailTask) (*wire.TaskReply, *wire.Error) {
	k, err := t.reportableTask(r.TaskID, "failed")
	if err != nil {
		return nil, err
	}
	t.begin(k)
	t.fail(k, failure{why: r.Error, mark: t.mark()})
	t.relieve(k, "Failed by ")
	return t.state.tasks.reply(k), nil
}

// A failure describes how a task fails.
type failure struct {
	why, stack string
	fault      *delegation.Fault // for its source, if it was delegated; nil: an internal error with why
	mark       *requestKey       // of the request that fails it
}

// fail ends a task as failed, notifies its submitter and its agents, and cancels its parts.
func (t *decision) fail(k *task, f failure) {
	parts := k.parts()
	t.cancelQuestions(k)
	t.recallReview(k.work(), f.why)
	t.fact("", k.view.ID, &taskFailed{
		ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Error: f.why, Stack: f.stack, Request: f.mark,
	})
	t.tellEnd(k, session.OutcomeFailed, f.why)
	if f.fault == nil {
		f.fault = &delegation.Fault{Code: delegation.FaultInternal, Message: f.why}
	}
	t.respondFor(k, f.fault, nil)
	t.cancelParts(parts)
	t.abandon(k)
}
