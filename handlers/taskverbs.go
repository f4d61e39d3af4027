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

var taskOperations = []Operation{
	bind("query-tasks", (*decision).tasks, queryTasks),
	bind("submit-task", (*decision).tasks, submitTask),
	bind("get-task", (*decision).tasks, getTask),
	bind("start-task", (*decision).tasks, startTask),
	bind("complete-task", (*decision).tasks, completeTask),
	bind("fail-task", (*decision).tasks, failTask),
	bind("cancel-task", (*decision).tasks, cancelTask),
	bind("retry-task", (*decision).tasks, retryTask),
}

func submitTask(td taskDecision, r *wire.SubmitTask) (*wire.TaskReply, *wire.Error) {
	if r.Details.Verify != nil && td.from.Kind == Agent {
		return nil, errorf(wire.CodeDenied, details{"pointer": "/payload/verify"}, "only a person may name commands that run as the agent of a task")
	}
	return td.submit(r)
}

// submit creates a task.
func (td taskDecision) submit(r *wire.SubmitTask) (*wire.TaskReply, *wire.Error) {
	if roles := td.state.agents.rolesWithout(r.RequiredRole); roles != nil {
		return nil, errorf(wire.CodeInvalid, details{"role": r.RequiredRole, "pointer": "/payload/requiredRole"},
			"requiredRole must be one of %s, not %.80q", strings.Join(roles, ", "), r.RequiredRole)
	}
	if r.Block != nil {
		if k := td.state.tasks.blocks[r.Block.Name]; k != nil && !(r.Block.Again && k.cameToNothing()) {
			return td.replyWith(k), nil
		}
		for _, need := range r.Block.Needs {
			if up := td.state.tasks.blocks[need]; up != nil {
				r.Dependencies = append(r.Dependencies, hub.Dependency{On: up.view.ID, Type: hub.DependsBlocks})
			}
		}
	}
	var to *agent
	if r.AssignTo != "" {
		if to = td.state.agents.agentNamed(r.AssignTo); to == nil {
			return nil, noAgent(r.AssignTo)
		}
	}
	if err := td.state.agents.tooManyOpen(td.from); err != nil {
		return nil, err
	}
	of := r.Details
	of.ParentTaskID = td.parent()
	vain, err := td.links().dependencies(r.Dependencies, &of, r.Patient)
	if err != nil {
		return nil, err
	}
	id := td.uuid()
	if td.state.tasks.byID[id] != nil {
		panic("the chance that came with the input is not fresh")
	}
	f := &taskCreated{
		ID: id, Name: r.Name, Type: r.Type, Description: r.Description, Payload: r.Payload,
		RequiredRole: r.RequiredRole, RequiredCapabilities: r.RequiredCapabilities,
		Dependencies: r.Dependencies, Priority: r.Priority, Request: td.mark(),
		StructuredSpec: r.Details.StructuredSpec, Requirements: r.Details.Requirements, TargetRepo: r.Details.TargetRepo,
		AcceptanceCriteria: r.Details.AcceptanceCriteria, ProjectID: r.Details.ProjectID, SessionID: r.Details.SessionID,
		Parent: of.ParentTaskID, Patient: r.Patient, Block: r.Block, Verify: r.Details.Verify,
	}
	td.traced(f, r.Observability)
	td.fact("", id, f)
	k := td.state.tasks.byID[id]
	td.oddities(k, r)
	for _, d := range vain {
		td.fact("", id, &taskBlocked{ID: id, Name: r.Name, Upstream: d})
	}
	td.links().missLate(k, r.Dependencies)
	answer := td.replyWith(k) // with the state pending, as a repeat gets it
	if to != nil {
		td.assignBy(k, to, &taskAssigned{Way: byHand, Plan: r.RequirePlan})
		return td.replyWith(k), nil
	}
	if td.state.rules.MatchOnCreate && td.free(k) {
		td.place(k, match.Conditions{Online: td.state.rules.OnlineOnly})
	}
	return answer, nil
}

// tooManyOpen refuses another task of an agent that has as many open ones as it may.
func (as *agents) tooManyOpen(from Actor) *wire.Error {
	if from.Kind != Agent {
		return nil
	}
	a := as.byID[from.Name]
	if a == nil || a.OpenTasks == 0 || a.submitted < a.OpenTasks {
		return nil
	}
	return errorf(wire.CodeLimited, details{"reason": "too_many_tasks", "open": a.submitted, "limit": a.OpenTasks},
		"%s that you submitted are open, which is the limit: submit more when some have ended", counted(a.submitted, "task"))
}

// parent returns the task that a submitting agent works on. The new task is a part of it.
func (td taskDecision) parent() string {
	if td.from.Kind != Agent {
		return ""
	}
	return td.state.agents.parentOf(td.from.Name)
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
func (td taskDecision) oddities(k *task, r *wire.SubmitTask) {
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

func startTask(td taskDecision, r *wire.TaskID) (*wire.TaskReply, *wire.Error) {
	k, err := td.readableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	held := k.view.AssignedTo == td.from.Name && td.from.Kind == Agent
	if w := k.work(); w != nil && td.from.Kind == Agent && !w.active() {
		return nil, inItsSession(k, "started")
	}
	waits := td.state.tasks.graph.Open(k.node) > 0
	switch state := k.view.State; {
	case state == wire.TaskRunning && held && k.way == dispatched: // it started when its agent was notified
		return td.replyWith(k), nil
	case td.state.agents.unbrought(k):
		return nil, notForwarded(k)
	case waits && (state == wire.TaskPending || state == wire.TaskAssigned || state == wire.TaskNeedsHuman) && td.mayStart(k):
		return nil, td.state.tasks.waits(k)
	case state == wire.TaskPending && k.delegation() != nil:
		return nil, errDelegated(k)
	case state == wire.TaskPending && td.from.Kind == Agent:
		a := td.state.agents.byID[td.from.Name]
		if len(a.holds) >= a.Capacity {
			return nil, hasEnough(a)
		}
		if k.more != nil && k.more.planFirst {
			return nil, wrongState(k, "started without a plan")
		}
		if err := td.meets(k, a); err != nil && !k.submittedBy(td.from) { // it has set the requirements itself
			return nil, err
		}
		td.take(k, a, &taskAssigned{Way: td.ownWay(k)})
	case state == wire.TaskPending:
		return nil, errorf(wire.CodeConflict, details{"taskId": k.view.ID, "reason": "unassigned"}, "task %s has no agent that could work on it", k.label())
	case state != wire.TaskAssigned && state != wire.TaskNeedsHuman:
		return nil, wrongState(k, "started")
	case !td.maySteer(k):
		return nil, notHolder(k)
	case !held && td.state.agents.isDown(k.view.AssignedTo):
		return nil, errorf(wire.CodeConflict, details{"taskId": k.view.ID, "agent": k.view.AssignedTo, "reason": "agent_down"},
			"task %s cannot be started, because %s does not run: its next run is told of the task", k.label(), k.view.AssignedTo)
	}
	td.questions().cancelQuestions(k)
	td.start(k, td.mark())
	td.delegations().tellSource(k)
	return td.replyWith(k), nil
}

// isDown reports whether an agent of this team has no process. A task that starts meanwhile would
// run for nobody: only assigned tasks are announced to the next run.
func (as *agents) isDown(name string) bool {
	a := as.byID[name]
	return a != nil && a.remote == nil && !a.online()
}

// ownWay returns the way of a task that an agent takes itself. It is byHand for tasks that must
// outlive their agents.
func (td taskDecision) ownWay(k *task) way {
	if k.patient() || k.wants() != nil {
		return byHand
	}
	return dispatched
}

// mayStart reports whether the caller could start a task without dependencies.
func (td taskDecision) mayStart(k *task) bool {
	return k.view.State == wire.TaskPending || td.maySteer(k)
}

// waits returns the refusal to start a task that waits for others.
func (t *tasks) waits(k *task) *wire.Error {
	return errorf(wire.CodeConflict, details{"taskId": k.view.ID, "reason": "blocked", "waitsFor": t.waitsFor(k)}, "task %s waits for others", k.label())
}

// hasEnough returns the refusal of an agent that is at its capacity and wants to start another
// of its tasks.
func hasEnough(a *agent) *wire.Error {
	return errorf(wire.CodeConflict, details{"reason": "at_capacity", "capacity": a.Capacity, "taskIds": ids(a.holds)},
		"you have as many tasks as you may have at a time (%d)", a.Capacity)
}

func notHolder(k *task) *wire.Error {
	return errorf(wire.CodeDenied, details{"taskId": k.view.ID}, "only the agent that has task %s may say that", k.label())
}

func (td taskDecision) start(k *task, mk *requestKey) {
	td.fact(agentPrefix+k.view.AssignedTo, k.view.ID, &taskStarted{ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Request: mk})
}

// reportableTask returns a task that the caller may report on. Without explicit steps, a task
// that is assigned and not held back counts as started. With explicit steps only a dispatched
// one does: its agent may report before the delivery of its notice is recorded.
func (td taskDecision) reportableTask(id, verb string) (*task, *wire.Error) {
	k, err := td.held(id, verb)
	switch {
	case err != nil:
		return nil, err
	case td.from.Kind == Agent && k.work() != nil && (verb == "completed" || !k.work().active()):
		return nil, inItsSession(k, verb)
	case k.view.State == wire.TaskRunning:
	case td.state.agents.unbrought(k):
		return nil, notForwarded(k)
	case k.view.State == wire.TaskAssigned && td.state.tasks.graph.Open(k.node) > 0:
		return nil, td.state.tasks.waits(k)
	case k.view.State == wire.TaskAssigned && (k.way == dispatched || !td.from.ExplicitSteps):
	case k.view.State == wire.TaskNeedsHuman && !td.from.ExplicitSteps:
	case k.view.State == wire.TaskPlanning && k.work() == nil && verb == "failed": // it cannot be planned
	default:
		return nil, notBegun(wrongState(k, verb), k)
	}
	return k, nil
}

// inItsSession returns the refusal of a report that belongs in the session of the task, where it
// is checked.
func inItsSession(k *task, verb string) *wire.Error {
	return errorf(wire.CodeConflict, details{"taskId": k.view.ID, "reason": "in_session", "session": k.work().of.spec.ID},
		"task %s cannot be %s here: say so in its session %q, by a message", k.label(), verb, k.work().of.spec.ID)
}

// notBegun adds a hint to an error about a task that its agent has not started.
func notBegun(err *wire.Error, k *task) *wire.Error {
	if k.view.State == wire.TaskAssigned || k.view.State == wire.TaskNeedsHuman {
		err.Hint = "start it first, with start-task"
	}
	return err
}

// begin starts a task that its agent already works on. A task that is planned is not begun by what
// is reported about it.
func (td taskDecision) begin(k *task) {
	if k.view.State != wire.TaskRunning && k.view.State != wire.TaskPlanning {
		td.questions().cancelQuestions(k)
		td.start(k, nil)
	}
}

// held returns a task that the caller holds.
func (td taskDecision) held(id, verb string) (*task, *wire.Error) {
	k, err := td.manageableTask(id)
	switch {
	case err != nil:
		return nil, err
	case k.view.State == wire.TaskPending:
		return nil, wrongState(k, verb)
	case !td.maySteer(k):
		return nil, notHolder(k)
	}
	return k, nil
}

// succeeded is the default result of a completed task.
var succeeded = hub.Result{Document: delegation.Succeeded}

func completeTask(td taskDecision, r *wire.CompleteTask) (*wire.TaskReply, *wire.Error) {
	k, err := td.reportableTask(r.TaskID, "completed")
	if err != nil {
		return nil, err
	}
	result := &succeeded
	if r.Result != nil {
		result = td.from.wrapped(r.Result)
	}
	if result.Breach != nil && !td.state.rules.LenientResults {
		return nil, result.Breach
	}
	td.begin(k)
	td.complete(k, result, end{request: td.mark(), artifacts: r.Artifacts})
	if result.Breach != nil {
		td.odd(k, hub.Oddity{Kind: events.DocumentOdd, Pointer: fmt.Sprint(result.Breach.Details["pointer"]), Text: result.Breach.Message})
	}
	td.relieve(k, "Completed by ")
	return td.replyWith(k), nil
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

func failTask(td taskDecision, r *wire.FailTask) (*wire.TaskReply, *wire.Error) {
	k, err := td.reportableTask(r.TaskID, "failed")
	if err != nil {
		return nil, err
	}
	td.begin(k)
	f := failure{why: r.Error, class: r.Class, retryable: r.Retryable, end: end{request: td.mark()}}
	if r.Retryable && (k.way == dispatched || k.way == matched) {
		if !td.triedOut(k) {
			td.questions().endPermissions(k)
			td.requeue(k, &taskRequeued{Why: "failed" + classWords(r.Class) + ": " + r.Error, Class: r.Class, Request: f.request})
			return td.replyWith(k), nil
		}
		f.why = fmt.Sprintf("given up after %d attempts: %s", k.view.Attempts, r.Error)
	}
	td.fail(k, f)
	td.relieve(k, "Failed by ")
	return td.replyWith(k), nil
}

// classWords returns the class of a failure in parentheses, or "".
func classWords(class string) string {
	if class == "" {
		return ""
	}
	return " (" + class + ")"
}

// An end describes how a task ends.
type end struct {
	request   *requestKey // that ends it
	mailed    bool        // the bus already has the end as a message
	responded bool        // its agent has ended it with a response, which its source gets
	inSession bool        // its session ends it, so the members know
	quiet     string      // an agent that is not notified

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
func (td taskDecision) fail(k *task, f failure) {
	parts := k.parts()
	td.questions().cancelQuestions(k)
	td.questions().endPermissions(k)
	td.reviews().recallReview(k.work(), f.why, f.quiet)
	td.fact("", k.view.ID, &taskFailed{
		ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Error: f.why, Stack: f.stack,
		Class: f.class, Retryable: f.retryable, Request: f.request, mailed: f.mailed,
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
