package handlers

import (
	"encoding/hex"
	"fmt"
	"strings"

	"orchestrator/handlers/match"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/session"
)

var taskOperations = []Operation{
	bind("query-tasks", (*decision).tasks, taskDecision.queryTasks),
	bind("submit-task", (*decision).tasks, taskDecision.submitTask),
	bind("get-task", (*decision).tasks, taskDecision.getTask),
	bind("start-task", (*decision).tasks, taskDecision.startTask),
	bind("complete-task", (*decision).tasks, taskDecision.completeTask),
	bind("fail-task", (*decision).tasks, taskDecision.failTask),
	bind("cancel-task", (*decision).tasks, taskDecision.cancelTask),
	bind("retry-task", (*decision).tasks, taskDecision.retryTask),
}

func (td taskDecision) submitTask(r *wire.SubmitTask) (*wire.TaskReply, *wire.Error) {
	if r.Verify != nil && td.from.Kind == Agent {
		return nil, state.Errorf(wire.CodeDenied, state.Details{"pointer": "/payload/verify"}, "only a person may name commands that run as the agent of a task")
	}
	return td.submit(r)
}

// submit creates a task.
func (td taskDecision) submit(r *wire.SubmitTask) (*wire.TaskReply, *wire.Error) {
	if roles := td.state.Agents.RolesWithout(r.RequiredRole); roles != nil {
		return nil, state.Errorf(wire.CodeInvalid, state.Details{"role": r.RequiredRole, "pointer": "/payload/requiredRole"},
			"requiredRole must be one of %s, not %.80q", strings.Join(roles, ", "), r.RequiredRole)
	}
	if r.Block != nil {
		if t := td.state.Tasks.Blocks[r.Block.Name]; t != nil && !(r.Block.Again && t.CameToNothing()) {
			return td.replyWith(t), nil
		}
		for _, need := range r.Block.Needs {
			if up := td.state.Tasks.Blocks[need]; up != nil {
				r.Dependencies = append(r.Dependencies, hub.Dependency{On: up.View.ID, Type: hub.DependsBlocks})
			}
		}
	}
	var to *state.KnownAgent
	if r.AssignTo != "" {
		if to = td.state.Agents.AgentNamed(r.AssignTo); to == nil {
			return nil, noAgent(r.AssignTo)
		}
	}
	if err := td.state.Agents.TooManyOpen(td.from); err != nil {
		return nil, err
	}
	of := wire.Details{ProjectID: r.ProjectID, SessionID: r.SessionID, ParentTaskID: td.parent()}
	vain, err := td.links().dependencies(r.Dependencies, &of, r.Patient)
	if err != nil {
		return nil, err
	}
	id := td.uuid()
	if td.state.Tasks.ByID[id] != nil {
		panic("the chance that came with the input is not fresh")
	}
	f := td.created(id, r)
	f.Parent = of.ParentTaskID
	td.traced(f, r.Observability)
	td.fact("", id, f)
	t := td.state.Tasks.ByID[id]
	td.oddities(t, r)
	for _, d := range vain {
		td.fact("", id, &state.TaskBlocked{ID: id, Name: r.Name, Upstream: d})
	}
	td.links().missLate(t, r.Dependencies)
	answer := td.replyWith(t) // with the state pending, as a repeat gets it
	if to != nil {
		td.assignBy(t, to, &state.TaskAssigned{Way: state.ByHand, Plan: r.RequirePlan})
		return td.replyWith(t), nil
	}
	if td.state.Rules.MatchOnCreate && td.free(t) {
		td.place(t, match.Conditions{Online: td.state.Rules.OnlineOnly})
	}
	return answer, nil
}

// created returns the fact of a new task.
func (td taskDecision) created(id string, r *wire.SubmitTask) *state.TaskCreated {
	f := &state.TaskCreated{
		ID: id, Name: r.Name, Type: r.Type, Description: r.Description, Payload: r.Payload,
		RequiredRole: r.RequiredRole, RequiredCapabilities: r.RequiredCapabilities,
		Dependencies: r.Dependencies, Priority: r.Priority, Request: td.mark(),
		TargetRepo: r.TargetRepo, AcceptanceCriteria: r.AcceptanceCriteria, ProjectID: r.ProjectID, SessionID: r.SessionID,
		Patient: r.Patient, Block: r.Block, Verify: r.Verify,
	}
	if r.Spec != nil {
		f.StructuredSpec = r.Spec.Document
	}
	if r.Requirements != nil {
		f.Requirements = r.Requirements.Document
	}
	return f
}

// parent returns the task that a submitting agent works on. The new task is a part of it.
func (td taskDecision) parent() string {
	if td.from.Kind != Agent {
		return ""
	}
	return td.state.Agents.ParentOf(td.from.Name)
}

// oddities records the warnings about the documents of a new task.
func (td taskDecision) oddities(t *state.Task, r *wire.SubmitTask) {
	if r.Spec != nil {
		for _, o := range r.Spec.Oddities {
			td.odd(t, o)
		}
	}
	if r.Requirements != nil {
		for _, o := range r.Requirements.Oddities {
			td.odd(t, o)
		}
	}
	if o := hub.OddPriority(r.Priority); o != nil {
		td.odd(t, *o)
	}
	for _, d := range r.Dependencies {
		for _, o := range d.Oddities {
			td.odd(t, o)
		}
	}
}

// uuid returns a UUID made of the random bytes of the input (RFC 9562, version 4).
func (d *decision) uuid() string {
	return asUUID(d.random)
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

func (td taskDecision) startTask(r *wire.TaskID) (*wire.TaskReply, *wire.Error) {
	t, err := td.readableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	held := t.View.AssignedTo == td.from.Name && td.from.Kind == Agent
	if w := t.Work(); w != nil && td.from.Kind == Agent && !w.Active() {
		return nil, inItsSession(t, "started")
	}
	waits := td.state.Tasks.Graph.Open(t.Node) > 0
	switch status := t.View.State; {
	case status == wire.TaskRunning && held && t.Way == state.Dispatched: // it started when its agent was notified
		return td.replyWith(t), nil
	case td.state.Agents.Unbrought(t):
		return nil, notForwarded(t)
	case waits && (status == wire.TaskPending || status == wire.TaskAssigned || status == wire.TaskNeedsHuman) && td.mayStart(t):
		return nil, td.state.Tasks.Waits(t)
	case status == wire.TaskPending && t.Delegation() != nil:
		return nil, errDelegated(t)
	case status == wire.TaskPending && td.from.Kind == Agent:
		a := td.state.Agents.ByID[td.from.Name]
		if len(a.Holds) >= a.Capacity {
			return nil, hasEnough(a)
		}
		if t.Extra != nil && t.Extra.PlanFirst {
			return nil, wrongState(t, "started without a plan")
		}
		if err := td.meets(t, a); err != nil && !t.SubmittedBy(td.from) { // it has set the requirements itself
			return nil, err
		}
		td.take(t, a, &state.TaskAssigned{Way: td.ownWay(t)})
	case status == wire.TaskPending:
		return nil, state.Errorf(wire.CodeConflict, state.Details{"taskId": t.View.ID, "reason": "unassigned"}, "task %s has no agent that could work on it", t.Label())
	case status != wire.TaskAssigned && status != wire.TaskNeedsHuman:
		return nil, wrongState(t, "started")
	case !td.maySteer(t):
		return nil, notHolder(t)
	case !held && td.state.Agents.IsDown(t.View.AssignedTo):
		return nil, state.Errorf(wire.CodeConflict, state.Details{"taskId": t.View.ID, "agent": t.View.AssignedTo, "reason": "agent_down"},
			"task %s cannot be started, because %s is not running: its next run is notified of the task", t.Label(), t.View.AssignedTo)
	}
	td.questions().cancelQuestions(t)
	td.start(t, td.mark())
	td.delegations().tellSource(t)
	return td.replyWith(t), nil
}

// ownWay returns the way of a task that an agent takes itself. It is byHand for tasks that must
// outlive their agents.
func (td taskDecision) ownWay(t *state.Task) state.Way {
	if t.Patient() || t.Wants() != nil {
		return state.ByHand
	}
	return state.Dispatched
}

// mayStart reports whether the caller could start a task without dependencies.
func (td taskDecision) mayStart(t *state.Task) bool {
	return t.View.State == wire.TaskPending || td.maySteer(t)
}

// hasEnough returns the refusal of an agent that is at its capacity and wants to start another
// of its tasks.
func hasEnough(a *state.KnownAgent) *wire.Error {
	return state.Errorf(wire.CodeConflict, state.Details{"reason": "at_capacity", "capacity": a.Capacity, "taskIds": state.Ids(a.Holds)},
		"you have the maximum number of open tasks (%d)", a.Capacity)
}

func notHolder(t *state.Task) *wire.Error {
	return state.Errorf(wire.CodeDenied, state.Details{"taskId": t.View.ID}, "only the agent of task %s may report that", t.Label())
}

func (td taskDecision) start(t *state.Task, mk *state.RequestKey) {
	td.fact(state.AgentPrefix+t.View.AssignedTo, t.View.ID, &state.TaskStarted{ID: t.View.ID, Name: t.View.Name, Agent: t.View.AssignedTo, Request: mk})
}

// reportableTask returns a task that the caller may report on. Without explicit steps, a task
// that is assigned and not held back counts as started. With explicit steps only a dispatched
// one does: its agent may report before the delivery of its notice is recorded.
func (td taskDecision) reportableTask(id, verb string) (*state.Task, *wire.Error) {
	t, err := td.held(id, verb)
	switch {
	case err != nil:
		return nil, err
	case td.from.Kind == Agent && t.Work() != nil && (verb == "completed" || !t.Work().Active()):
		return nil, inItsSession(t, verb)
	case t.View.State == wire.TaskRunning:
	case td.state.Agents.Unbrought(t):
		return nil, notForwarded(t)
	case t.View.State == wire.TaskAssigned && td.state.Tasks.Graph.Open(t.Node) > 0:
		return nil, td.state.Tasks.Waits(t)
	case t.View.State == wire.TaskAssigned && (t.Way == state.Dispatched || !td.from.ExplicitSteps):
	case t.View.State == wire.TaskNeedsHuman && !td.from.ExplicitSteps:
	case t.View.State == wire.TaskPlanning && t.Work() == nil && verb == "failed": // it cannot be planned
	default:
		return nil, notBegun(wrongState(t, verb), t)
	}
	return t, nil
}

// inItsSession returns the refusal of a report that belongs in the session of the task, where it
// is checked.
func inItsSession(t *state.Task, verb string) *wire.Error {
	return state.Errorf(wire.CodeConflict, state.Details{"taskId": t.View.ID, "reason": "in_session", "session": t.Work().Of.Spec.ID},
		"task %s cannot be %s here: send a message in its session %q", t.Label(), verb, t.Work().Of.Spec.ID)
}

// notBegun adds a hint to an error about a task that its agent has not started.
func notBegun(err *wire.Error, t *state.Task) *wire.Error {
	if t.View.State == wire.TaskAssigned || t.View.State == wire.TaskNeedsHuman {
		err.Hint = "start it first, with start-task"
	}
	return err
}

// begin starts a task that its agent already works on. A report about a task does not begin it
// while it is planned.
func (td taskDecision) begin(t *state.Task) {
	if t.View.State != wire.TaskRunning && t.View.State != wire.TaskPlanning {
		td.questions().cancelQuestions(t)
		td.start(t, nil)
	}
}

// held returns a task that the caller holds.
func (td taskDecision) held(id, verb string) (*state.Task, *wire.Error) {
	t, err := td.manageableTask(id)
	switch {
	case err != nil:
		return nil, err
	case t.View.State == wire.TaskPending:
		return nil, wrongState(t, verb)
	case !td.maySteer(t):
		return nil, notHolder(t)
	}
	return t, nil
}

// succeeded is the default result of a completed task.
var succeeded = hub.Result{Document: delegation.Succeeded}

func (td taskDecision) completeTask(r *wire.CompleteTask) (*wire.TaskReply, *wire.Error) {
	t, err := td.reportableTask(r.TaskID, "completed")
	if err != nil {
		return nil, err
	}
	result := &succeeded
	if r.Result != nil {
		result = td.from.Wrapped(r.Result)
	}
	if result.Breach != nil && !td.state.Rules.LenientResults {
		return nil, result.Breach
	}
	td.begin(t)
	td.complete(t, result, end{request: td.mark(), artifacts: r.Artifacts})
	if result.Breach != nil {
		td.odd(t, hub.Oddity{Kind: events.DocumentOdd, Pointer: fmt.Sprint(result.Breach.Details["pointer"]), Text: result.Breach.Message})
	}
	td.notifyHolder(t, "Completed by ")
	return td.replyWith(t), nil
}

func (td taskDecision) failTask(r *wire.FailTask) (*wire.TaskReply, *wire.Error) {
	t, err := td.reportableTask(r.TaskID, "failed")
	if err != nil {
		return nil, err
	}
	td.begin(t)
	f := failure{why: r.Error, class: r.Class, retryable: r.Retryable, end: end{request: td.mark()}}
	if r.Retryable && (t.Way == state.Dispatched || t.Way == state.Matched) {
		if !td.triedOut(t) {
			td.questions().endPermissions(t)
			td.requeue(t, &state.TaskRequeued{Why: "failed" + state.ClassWords(r.Class) + ": " + r.Error, Class: r.Class, Request: f.request})
			return td.replyWith(t), nil
		}
		f.why = fmt.Sprintf("given up after %d attempts: %s", t.View.Attempts, r.Error)
	}
	td.fail(t, f)
	td.notifyHolder(t, "Failed by ")
	return td.replyWith(t), nil
}

// An end describes how a task ends.
type end struct {
	request   *state.RequestKey // that ends it
	mailed    bool              // the bus already has the end as a message
	responded bool              // its agent has ended it with a response, which its source gets
	inSession bool              // its session ends it, so the members know
	quiet     string            // an agent that is not notified

	artifacts []hub.Artifact // of a task that is done
}

// A failure describes how a task fails.
type failure struct {
	end
	why, stack string
	class      string            // one of wire.FailureClasses, or ""
	retryable  bool              // another attempt may succeed
	fault      *delegation.Fault // for its source, if it was delegated; nil: an internal error with why
}

// fail ends a task as failed, notifies its submitter and its agents, and cancels its parts.
func (td taskDecision) fail(t *state.Task, f failure) {
	parts := t.Parts()
	td.questions().cancelQuestions(t)
	td.questions().endPermissions(t)
	td.reviews().recallReview(t.Work(), f.why, f.quiet)
	td.fact("", t.View.ID, &state.TaskFailed{
		ID: t.View.ID, Name: t.View.Name, Agent: t.View.AssignedTo, Error: f.why, Stack: f.stack,
		Class: f.class, Retryable: f.retryable, Request: f.request, Mailed: f.mailed,
	})
	if !f.inSession {
		td.works().tellEnd(t, session.OutcomeFailed, f.why)
	}
	if f.fault == nil {
		f.fault = &delegation.Fault{Code: delegation.FaultInternal, Message: f.why}
	}
	if !f.responded {
		td.delegations().respondFor(t, &delegation.Response{Fault: f.fault})
	}
	td.delegations().cancelParts(parts, f.quiet)
	td.links().abandon(t, f.quiet)
}
