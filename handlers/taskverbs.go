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
		if k := td.state.Tasks.Blocks[r.Block.Name]; k != nil && !(r.Block.Again && k.CameToNothing()) {
			return td.replyWith(k), nil
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
	k := td.state.Tasks.ByID[id]
	td.oddities(k, r)
	for _, d := range vain {
		td.fact("", id, &state.TaskBlocked{ID: id, Name: r.Name, Upstream: d})
	}
	td.links().missLate(k, r.Dependencies)
	answer := td.replyWith(k) // with the state pending, as a repeat gets it
	if to != nil {
		td.assignBy(k, to, &state.TaskAssigned{Way: state.ByHand, Plan: r.RequirePlan})
		return td.replyWith(k), nil
	}
	if td.state.Rules.MatchOnCreate && td.free(k) {
		td.place(k, match.Conditions{Online: td.state.Rules.OnlineOnly})
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
func (td taskDecision) oddities(k *state.Task, r *wire.SubmitTask) {
	if r.Spec != nil {
		for _, o := range r.Spec.Oddities {
			td.odd(k, o)
		}
	}
	if r.Requirements != nil {
		for _, o := range r.Requirements.Oddities {
			td.odd(k, o)
		}
	}
	if o := hub.OddPriority(r.Priority); o != nil {
		td.odd(k, *o)
	}
	for _, d := range r.Dependencies {
		for _, o := range d.Oddities {
			td.odd(k, o)
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
	k, err := td.readableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	held := k.View.AssignedTo == td.from.Name && td.from.Kind == Agent
	if w := k.Work(); w != nil && td.from.Kind == Agent && !w.Active() {
		return nil, inItsSession(k, "started")
	}
	waits := td.state.Tasks.Graph.Open(k.Node) > 0
	switch status := k.View.State; {
	case status == wire.TaskRunning && held && k.Way == state.Dispatched: // it started when its agent was notified
		return td.replyWith(k), nil
	case td.state.Agents.Unbrought(k):
		return nil, notForwarded(k)
	case waits && (status == wire.TaskPending || status == wire.TaskAssigned || status == wire.TaskNeedsHuman) && td.mayStart(k):
		return nil, td.state.Tasks.Waits(k)
	case status == wire.TaskPending && k.Delegation() != nil:
		return nil, errDelegated(k)
	case status == wire.TaskPending && td.from.Kind == Agent:
		a := td.state.Agents.ByID[td.from.Name]
		if len(a.Holds) >= a.Capacity {
			return nil, hasEnough(a)
		}
		if k.Extra != nil && k.Extra.PlanFirst {
			return nil, wrongState(k, "started without a plan")
		}
		if err := td.meets(k, a); err != nil && !k.SubmittedBy(td.from) { // it has set the requirements itself
			return nil, err
		}
		td.take(k, a, &state.TaskAssigned{Way: td.ownWay(k)})
	case status == wire.TaskPending:
		return nil, state.Errorf(wire.CodeConflict, state.Details{"taskId": k.View.ID, "reason": "unassigned"}, "task %s has no agent that could work on it", k.Label())
	case status != wire.TaskAssigned && status != wire.TaskNeedsHuman:
		return nil, wrongState(k, "started")
	case !td.maySteer(k):
		return nil, notHolder(k)
	case !held && td.state.Agents.IsDown(k.View.AssignedTo):
		return nil, state.Errorf(wire.CodeConflict, state.Details{"taskId": k.View.ID, "agent": k.View.AssignedTo, "reason": "agent_down"},
			"task %s cannot be started, because %s is not running: its next run is notified of the task", k.Label(), k.View.AssignedTo)
	}
	td.questions().cancelQuestions(k)
	td.start(k, td.mark())
	td.delegations().tellSource(k)
	return td.replyWith(k), nil
}

// ownWay returns the way of a task that an agent takes itself. It is byHand for tasks that must
// outlive their agents.
func (td taskDecision) ownWay(k *state.Task) state.Way {
	if k.Patient() || k.Wants() != nil {
		return state.ByHand
	}
	return state.Dispatched
}

// mayStart reports whether the caller could start a task without dependencies.
func (td taskDecision) mayStart(k *state.Task) bool {
	return k.View.State == wire.TaskPending || td.maySteer(k)
}

// hasEnough returns the refusal of an agent that is at its capacity and wants to start another
// of its tasks.
func hasEnough(a *state.KnownAgent) *wire.Error {
	return state.Errorf(wire.CodeConflict, state.Details{"reason": "at_capacity", "capacity": a.Capacity, "taskIds": state.Ids(a.Holds)},
		"you have the maximum number of open tasks (%d)", a.Capacity)
}

func notHolder(k *state.Task) *wire.Error {
	return state.Errorf(wire.CodeDenied, state.Details{"taskId": k.View.ID}, "only the agent of task %s may report that", k.Label())
}

func (td taskDecision) start(k *state.Task, mk *state.RequestKey) {
	td.fact(state.AgentPrefix+k.View.AssignedTo, k.View.ID, &state.TaskStarted{ID: k.View.ID, Name: k.View.Name, Agent: k.View.AssignedTo, Request: mk})
}

// reportableTask returns a task that the caller may report on. Without explicit steps, a task
// that is assigned and not held back counts as started. With explicit steps only a dispatched
// one does: its agent may report before the delivery of its notice is recorded.
func (td taskDecision) reportableTask(id, verb string) (*state.Task, *wire.Error) {
	k, err := td.held(id, verb)
	switch {
	case err != nil:
		return nil, err
	case td.from.Kind == Agent && k.Work() != nil && (verb == "completed" || !k.Work().Active()):
		return nil, inItsSession(k, verb)
	case k.View.State == wire.TaskRunning:
	case td.state.Agents.Unbrought(k):
		return nil, notForwarded(k)
	case k.View.State == wire.TaskAssigned && td.state.Tasks.Graph.Open(k.Node) > 0:
		return nil, td.state.Tasks.Waits(k)
	case k.View.State == wire.TaskAssigned && (k.Way == state.Dispatched || !td.from.ExplicitSteps):
	case k.View.State == wire.TaskNeedsHuman && !td.from.ExplicitSteps:
	case k.View.State == wire.TaskPlanning && k.Work() == nil && verb == "failed": // it cannot be planned
	default:
		return nil, notBegun(wrongState(k, verb), k)
	}
	return k, nil
}

// inItsSession returns the refusal of a report that belongs in the session of the task, where it
// is checked.
func inItsSession(k *state.Task, verb string) *wire.Error {
	return state.Errorf(wire.CodeConflict, state.Details{"taskId": k.View.ID, "reason": "in_session", "session": k.Work().Of.Spec.ID},
		"task %s cannot be %s here: send a message in its session %q", k.Label(), verb, k.Work().Of.Spec.ID)
}

// notBegun adds a hint to an error about a task that its agent has not started.
func notBegun(err *wire.Error, k *state.Task) *wire.Error {
	if k.View.State == wire.TaskAssigned || k.View.State == wire.TaskNeedsHuman {
		err.Hint = "start it first, with start-task"
	}
	return err
}

// begin starts a task that its agent already works on. A report about a task does not begin it
// while it is planned.
func (td taskDecision) begin(k *state.Task) {
	if k.View.State != wire.TaskRunning && k.View.State != wire.TaskPlanning {
		td.questions().cancelQuestions(k)
		td.start(k, nil)
	}
}

// held returns a task that the caller holds.
func (td taskDecision) held(id, verb string) (*state.Task, *wire.Error) {
	k, err := td.manageableTask(id)
	switch {
	case err != nil:
		return nil, err
	case k.View.State == wire.TaskPending:
		return nil, wrongState(k, verb)
	case !td.maySteer(k):
		return nil, notHolder(k)
	}
	return k, nil
}

// succeeded is the default result of a completed task.
var succeeded = hub.Result{Document: delegation.Succeeded}

func (td taskDecision) completeTask(r *wire.CompleteTask) (*wire.TaskReply, *wire.Error) {
	k, err := td.reportableTask(r.TaskID, "completed")
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
	td.begin(k)
	td.complete(k, result, end{request: td.mark(), artifacts: r.Artifacts})
	if result.Breach != nil {
		td.odd(k, hub.Oddity{Kind: events.DocumentOdd, Pointer: fmt.Sprint(result.Breach.Details["pointer"]), Text: result.Breach.Message})
	}
	td.notifyHolder(k, "Completed by ")
	return td.replyWith(k), nil
}

func (td taskDecision) failTask(r *wire.FailTask) (*wire.TaskReply, *wire.Error) {
	k, err := td.reportableTask(r.TaskID, "failed")
	if err != nil {
		return nil, err
	}
	td.begin(k)
	f := failure{why: r.Error, class: r.Class, retryable: r.Retryable, end: end{request: td.mark()}}
	if r.Retryable && (k.Way == state.Dispatched || k.Way == state.Matched) {
		if !td.triedOut(k) {
			td.questions().endPermissions(k)
			td.requeue(k, &state.TaskRequeued{Why: "failed" + state.ClassWords(r.Class) + ": " + r.Error, Class: r.Class, Request: f.request})
			return td.replyWith(k), nil
		}
		f.why = fmt.Sprintf("given up after %d attempts: %s", k.View.Attempts, r.Error)
	}
	td.fail(k, f)
	td.notifyHolder(k, "Failed by ")
	return td.replyWith(k), nil
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
func (td taskDecision) fail(k *state.Task, f failure) {
	parts := k.Parts()
	td.questions().cancelQuestions(k)
	td.questions().endPermissions(k)
	td.reviews().recallReview(k.Work(), f.why, f.quiet)
	td.fact("", k.View.ID, &state.TaskFailed{
		ID: k.View.ID, Name: k.View.Name, Agent: k.View.AssignedTo, Error: f.why, Stack: f.stack,
		Class: f.class, Retryable: f.retryable, Request: f.request, Mailed: f.mailed,
	})
	if !f.inSession {
		td.works().tellEnd(k, session.OutcomeFailed, f.why)
	}
	if f.fault == nil {
		f.fault = &delegation.Fault{Code: delegation.FaultInternal, Message: f.why}
	}
	if !f.responded {
		td.delegations().respondFor(k, &delegation.Response{Fault: f.fault})
	}
	td.delegations().cancelParts(parts, f.quiet)
	td.links().abandon(k, f.quiet)
}
