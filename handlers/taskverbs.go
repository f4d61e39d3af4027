package handlers

import (
	"encoding/hex"
	"fmt"
	"strings"

	"orchestrator/handlers/match"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

func submitTask(t *decision, r *wire.SubmitTask) (*wire.TaskReply, *wire.Error) {
	if roles := t.state.rolesWithout(r.RequiredRole); roles != nil {
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
	answer := t.state.reply(k) // that it is pending: a repeat hears the same
	if t.state.rules.MatchOnCreate && t.free(k) {
		t.place(k, match.Conditions{Online: t.state.rules.OnlineOnly})
	}
	return answer, nil
}

// parent is what the agent that submits a task is working on: the new one is a
// part of it.
func (t *decision) parent() string {
	if t.from.Kind != Agent {
		return ""
	}
	return t.parentOf(t.from.Name)
}

func (t *decision) parentOf(agent string) string {
	a := t.state.agents.byID[agent]
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

// oddities says what is worth a warning about the documents of a new task.
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

// uuid is the id that this turn's chance makes (RFC 9562, version 4).
func (t *decision) uuid() string {
	return asUUID(t.random)
}

// asUUID spells bytes as a UUID of version 4.
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
	case state == wire.TaskRunning && held && k.way == dispatched: // it was started when its agent was told
		return t.state.reply(k), nil
	case t.unbrought(k):
		return nil, notForwarded(k)
	case waits && (state == wire.TaskPending || state == wire.TaskAssigned || state == wire.TaskNeedsHuman) && t.mayStart(k):
		return nil, t.waits(k)
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
	return t.state.reply(k), nil
}

// ownWay is the way of a task that an agent takes by itself: of those who want
// it that a task outlives its agents, it does.
func (t *decision) ownWay(k *task) way {
	if k.patient() || k.wants() != nil {
		return byHand
	}
	return dispatched
}

// mayStart reports whether the caller could start a task if it waited for nothing.
func (t *decision) mayStart(k *task) bool { return k.view.State == wire.TaskPending || t.maySteer(k) }

// waits refuses to start what waits for others.
func (t *decision) waits(k *task) *wire.Error {
	return &wire.Error{
		Code:    wire.CodeConflict,
		Message: fmt.Sprintf("task %s waits for others", k.label()),
		Details: map[string]any{"taskId": k.view.ID, "reason": "blocked", "waitsFor": t.state.waitsFor(k)},
	}
}

// hasEnough refuses an agent that would take one of its own tasks and has as
// many as it may.
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

// reportableTask finds a task that the caller may say something of. One that its agent
// has not started will do, if nothing holds it back: an agent that says how it
// ended has begun. At a strict door that is so only for a dispatched one, which
// is started for its agent: it may be quicker than our note that it was told.
func (t *decision) reportableTask(id, verb string) (*task, *wire.Error) {
	k, err := t.held(id, verb)
	switch {
	case err != nil:
		return nil, err
	case t.from.Kind == Agent && k.work() != nil && (verb == "completed" || !k.work().active()):
		return nil, inItsSession(k, verb)
	case k.view.State == wire.TaskRunning:
	case t.unbrought(k):
		return nil, notForwarded(k)
	case k.view.State == wire.TaskAssigned && t.state.tasks.graph.Open(k.node) > 0:
		return nil, t.waits(k)
	case k.view.State == wire.TaskAssigned && (k.way == dispatched || !t.from.ExplicitSteps):
	case k.view.State == wire.TaskNeedsHuman && !t.from.ExplicitSteps:
	default:
		return nil, notBegun(wrongState(k, verb), k)
	}
	return k, nil
}

// inItsSession refuses to an agent what is said in a session, where it is checked.
func inItsSession(k *task, verb string) *wire.Error {
	return &wire.Error{
		Code:    wire.CodeConflict,
		Message: fmt.Sprintf("task %s cannot be %s here: say so in its session %q, by a message", k.label(), verb, k.work().of.spec.ID),
		Details: map[string]any{"taskId": k.view.ID, "reason": "in_session", "session": k.work().of.spec.ID},
	}
}

// notBegun returns what is to be done about a task that its agent has not started.
func notBegun(err *wire.Error, k *task) *wire.Error {
	if k.view.State == wire.TaskAssigned || k.view.State == wire.TaskNeedsHuman {
		err.Hint = "start it first, with start-task"
	}
	return err
}

// begin starts a task that its agent is found to be working on.
func (t *decision) begin(k *task) {
	if k.view.State != wire.TaskRunning {
		t.cancelQuestions(k)
		t.start(k, nil)
	}
}

// held finds a task that the caller holds.
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

// succeeded is the result of a task without a result.
var succeeded = wire.Result{Document: wire.Succeeded}

func completeTask(t *decision, r *wire.CompleteTask) (*wire.TaskReply, *wire.Error) {
	k, err := t.reportableTask(r.TaskID, "completed")
	if err != nil {
		return nil, err
	}
	result := &succeeded
	if r.Result != nil {
		result = t.wrapped(r.Result)
	}
	if result.Breach != nil && !t.state.rules.LenientResults {
		return nil, result.Breach
	}
	t.begin(k)
	t.complete(k, result, t.mark())
	if result.Breach != nil {
		t.odd(k, wire.Oddity{Kind: wire.EventDocumentOdd, Pointer: fmt.Sprint(result.Breach.Details["pointer"]), Text: result.Breach.Message})
	}
	t.relieve(k, "Completed by ")
	return t.state.reply(k), nil
}

// wrapped is a result as it is kept: one that is a text becomes a document that
// says who wrote it.
func (t *decision) wrapped(r *wire.Result) *wire.Result {
	if r.Document[0] != '"' {
		return r
	}
	document := append([]byte(`{"summary":`), r.Document...)
	document = append(document, `,"completed_by":`...)
	return &wire.Result{Document: append(object.AppendText(document, t.from.String()), '}')}
}

func failTask(t *decision, r *wire.FailTask) (*wire.TaskReply, *wire.Error) {
	k, err := t.reportableTask(r.TaskID, "failed")
	if err != nil {
		return nil, err
	}
	t.begin(k)
	t.fail(k, failure{why: r.Error, mark: t.mark()})
	t.relieve(k, "Failed by ")
	return t.state.reply(k), nil
}

// failure is how a task fails.
type failure struct {
	why, stack string
	fault      *wire.TaskFault // for its source, if it was delegated; nil: an internal error with why
	mark       *requestKey     // of the request that fails it
}

// fail ends a task as failed, tells its submitter and its agents, and cancels its parts.
func (t *decision) fail(k *task, f failure) {
	parts := k.parts()
	t.cancelQuestions(k)
	t.recallReview(k.work(), f.why)
	t.fact("", k.view.ID, &taskFailed{
		ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Error: f.why, Stack: f.stack, Request: f.mark,
	})
	t.tellEnd(k, wire.OutcomeFailed, f.why)
	if f.fault == nil {
		f.fault = &wire.TaskFault{Code: wire.FaultInternal, Message: f.why}
	}
	t.respondFor(k, f.fault, nil)
	t.cancelParts(parts)
	t.abandon(k)
}
