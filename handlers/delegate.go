package handlers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"orchestrator/handlers/queue"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/dialect"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
	"orchestrator/wire/trace"
)

var delegationOperations = []Operation{
	bind("submit-task-request", (*decision).delegations, delegationDecision.submitTaskRequest),
	bind("get-task-response", (*decision).delegations, delegationDecision.getTaskResponse),
	bind("update-task-request", (*decision).delegations, delegationDecision.updateTaskRequest),
}

// orchestratorName is the default source of tasks that callers other than agents delegate.
const orchestratorName = "orchestrator"

// submitTaskRequest delegates a task. A refused request creates no task, so its id can be used
// again.
func (dd delegationDecision) submitTaskRequest(r *delegation.Request) (*wire.TaskAnswer, *wire.Error) {
	if t := dd.state.Tasks.Find(r.ID); t != nil {
		return dd.handedOnBefore(t, r)
	}
	source, err := dd.source(r)
	if err != nil {
		return nil, err
	}
	parent, among := dd.partOf(r)
	chain := chainOf(parent, r.Routing.Chain, source)
	if len(chain) > delegation.MaxChain {
		return nil, state.DelegationError(wire.CodeConflict, delegation.FaultDelegation, fmt.Sprintf("%d agents have had this task, which is the limit", len(chain)), "most", delegation.MaxChain)
	}
	to, err := dd.chooseTarget(r.Type, r.Routing.Target, chain, "", nil)
	if err != nil {
		return nil, err
	}
	if err := dd.state.Agents.TooManyOpen(dd.from); err != nil {
		return nil, err
	}
	if err := to.CheckBacklog(); err != nil {
		return nil, err
	}
	f := dd.handingOn(r, parent, source, chain)
	dd.fact("", r.ID, f)
	t := dd.state.Tasks.ByID[r.ID]
	dd.notes(t, r.Notes)
	if parent == nil && among > 1 {
		dd.notes(t, []string{fmt.Sprintf("/context/parentTaskId: is missing, and you have %d open tasks: this task joins none of their traces", among)})
	}
	dd.assignDelegated(t, to)
	return dd.standingAnswer(t), nil
}

// notes records the warnings about a task request, each with its place.
func (dd delegationDecision) notes(t *state.Task, notes []string) {
	for _, note := range notes {
		pointer, text, _ := strings.Cut(note, ": ")
		dd.tasks().odd(t, hub.Oddity{Kind: events.DocumentOdd, Pointer: pointer, Text: text})
	}
}

// handedOnBefore answers a request with the id of an existing task. A repeat of the same request
// has no second effect.
func (dd delegationDecision) handedOnBefore(t *state.Task, r *delegation.Request) (*wire.TaskAnswer, *wire.Error) {
	if d := t.Delegation(); d == nil || d.Sum != r.Sum || t.View.SubmittedBy != dd.from.String() {
		return nil, state.Errorf(wire.CodeInvalid, state.Details{"pointer": dd.pointer("/id"), "reason": wire.ReasonReused},
			"another task has this id: use a new id for each task")
	}
	if dd.request.Form == dialect.TaskRequest {
		dd.repeatResponse(t)
	}
	return dd.standingAnswer(t), nil
}

// source returns the delegating party, which receives the responses. For agents it comes from
// the connection; other callers may name any source except an agent.
func (dd delegationDecision) source(r *delegation.Request) (string, *wire.Error) {
	said := r.Routing.Source
	switch {
	case dd.from.Kind == Agent && (said == "" || said == dd.from.Name):
		return dd.from.Name, nil
	case dd.from.Kind == Agent:
		return "", denied(dd.pointer("/routing/source"), fmt.Sprintf("source is %.80q, but you are %q", said, dd.from.Name))
	case said == "":
		return orchestratorName, nil
	case dd.state.Agents.ByID[said] != nil:
		return "", denied(dd.pointer("/routing/source"), fmt.Sprintf("%q is an agent, and does not ask for this itself", said))
	}
	return said, nil
}

// pointer returns a pointer into a task request as its sender sees it.
func (dd delegationDecision) pointer(pointer string) string {
	if dd.request.Form == dialect.TaskRequest {
		return pointer
	}
	return "/payload" + pointer
}

func denied(pointer, message string) *wire.Error {
	return &wire.Error{Code: wire.CodeDenied, Message: message, Details: map[string]any{"pointer": pointer}}
}

// partOf returns the parent of a new delegated task. It is the task that the request names, one in
// the same trace, or the only one that the agent works on. among is the number of candidates.
func (dd delegationDecision) partOf(r *delegation.Request) (part *state.Task, among int) {
	named := dd.state.Tasks.Find(r.Context.ParentTaskID)
	a := dd.state.Agents.ByID[dd.from.Name]
	switch {
	case named != nil && named.SubmittedBy(dd.from):
		return named, 1
	case named != nil || dd.from.Kind != Agent || a == nil:
		return nil, 0
	}
	var held []*state.Task
	for _, t := range a.Holds {
		if t.InHand() {
			held = append(held, t)
		}
	}
	if trace := r.Observability.TraceID; trace != "" && len(held) > 1 {
		held = slices.DeleteFunc(held, func(t *state.Task) bool { return t.Trace() == nil || t.Trace().TraceID != trace })
	}
	if len(held) > 1 { // tasks with delegated parts are waiting
		held = slices.DeleteFunc(held, func(t *state.Task) bool { return len(t.Parts()) > 0 })
	}
	if len(held) != 1 {
		return nil, len(held)
	}
	return held[0], 1
}

// chainOf returns the agents that have had a task, without duplicates and with source at the
// end. Known agents come first, then the agents that the request names.
func chainOf(parent *state.Task, said []string, source string) []string {
	var before []string
	if parent != nil && parent.Delegation() != nil {
		before = parent.Delegation().Chain
	}
	var chain queue.Set
	for _, names := range [][]string{before, said} {
		for _, name := range names {
			if name != source {
				chain.Add(name)
			}
		}
	}
	return append(chain.Texts, source)
}

// chooseTarget returns the agent for a task: the named one, or the capable one that is likely to
// begin first. The agent that has just ended with the task comes last, and an agent that is gone
// is not chosen.
func (dd delegationDecision) chooseTarget(kind, named string, chain []string, ended string, gone departures) (*state.KnownAgent, *wire.Error) {
	if named == "" {
		return dd.bestCapable(kind, chain, ended, gone)
	}
	a := dd.state.Agents.ByID[named]
	switch {
	case a == nil:
		return nil, state.DelegationError(wire.CodeNotFound, delegation.FaultAgentNotFound, fmt.Sprintf("agent %q does not exist", named), "target", named)
	case slices.Contains(chain, named):
		return nil, state.DelegationError(wire.CodeConflict, delegation.FaultGraphCycle, fmt.Sprintf("%q has already had this task: it would go round in a circle", named), "delegationChain", chain)
	case len(a.Capabilities) > 0 && !slices.Contains(a.Capabilities, kind): // an agent without capabilities may accept any type
		return nil, state.DelegationError(wire.CodeNotFound, delegation.FaultCapabilityNotFound, fmt.Sprintf("%q does not handle %q", named, kind), "capabilities", a.Capabilities)
	}
	if why := dd.unavailable(a, ended, gone); why != "" {
		return nil, state.DelegationError(wire.CodeConflict, delegation.FaultAgentUnavailable, why, "target", named)
	}
	return a, nil
}

// unavailable returns why no task can be delegated to an agent, or "". An agent that has just ended
// counts as available, since it may be restarted, but not one that was killed with the orchestrator
// and starts only on request. While the orchestrator stops, tasks wait for the next start.
func (dd delegationDecision) unavailable(a *state.KnownAgent, ended string, gone departures) string {
	switch {
	case a.Deaf && a.Remote == nil:
		return fmt.Sprintf("%q takes no messages", a.ID)
	case gone[a] != "":
		return gone[a]
	case a.Comes(), dd.state.Stopping, a.ID == ended && !(a.Manual && dd.starts):
		return ""
	}
	return fmt.Sprintf("%q is not running, and is not started automatically", a.ID)
}

// bestCapable returns the agent for a task that names none.
func (dd delegationDecision) bestCapable(kind string, chain []string, ended string, gone departures) (best *state.KnownAgent, err *wire.Error) {
	can, had := false, false
	for _, a := range dd.state.Agents.Order {
		if !slices.Contains(a.Capabilities, kind) {
			continue
		}
		can = true
		switch {
		case slices.Contains(chain, a.ID):
			had = true
		case dd.unavailable(a, ended, gone) != "":
		case best == nil || a.Rank(ended).Compare(best.Rank(ended)) < 0:
			best = a
		}
	}
	switch {
	case best != nil:
		return best, nil
	case !can:
		return nil, state.DelegationError(wire.CodeNotFound, delegation.FaultCapabilityNotFound, fmt.Sprintf("no agent handles %q", kind), "type", kind)
	case had:
		return nil, state.DelegationError(wire.CodeConflict, delegation.FaultGraphCycle, fmt.Sprintf("each agent that handles %q has already had this task", kind), "delegationChain", chain)
	}
	return nil, state.DelegationError(wire.CodeConflict, delegation.FaultAgentUnavailable, fmt.Sprintf("no agent that handles %q is running, and none is started automatically", kind), "type", kind)
}

// handingOn returns the fact that creates a delegated task.
func (dd delegationDecision) handingOn(r *delegation.Request, parent *state.Task, source string, chain []string) *state.TaskCreated {
	place, above := dd.tasks().traceBelow(parent, r.Observability)
	if place.TraceID == "" {
		place.TraceID = dd.state.Tasks.TraceIDOf(parent, r.ID)
	}
	if place.SpanID == "" {
		place.SpanID = trace.SpanIDOf([]byte(r.ID))
	}
	priority := cmp.Or(r.Context.Priority, delegation.PriorityNormal)
	document := r.Forwarded(delegation.Forwarding{
		Source: source, Chain: chain, TraceID: place.TraceID, SpanID: place.SpanID, Baggage: place.Baggage, Context: contextBelow(parent),
	})
	f := &state.TaskCreated{
		ID: r.ID, Name: r.Type, Type: r.Type, Priority: wire.Raw(object.Quote(priority)), Patient: true,
		TraceID: place.TraceID, SpanID: above, Delegated: &state.Delegated{Document: document, Sum: r.Sum},
	}
	request, err := f.Delegated.Read()
	if err != nil {
		panic(err) // it is a valid request with few changes
	}
	f.Decoded, f.Parent = request, request.Context.ParentTaskID
	return f
}

// contextBelow returns the default context of a part of a task.
func contextBelow(parent *state.Task) (c delegation.Context) {
	if parent == nil {
		return c
	}
	c.ParentTaskID = parent.View.ID
	if d := parent.Delegation(); d != nil {
		c.ConversationID, c.User = d.Context.ConversationID, d.Context.User
	}
	return c
}

// assignDelegated assigns a delegated task to an agent. It is forwarded when the agent has room.
func (dd delegationDecision) assignDelegated(t *state.Task, a *state.KnownAgent) {
	dd.own.tasks().take(t, a, &state.TaskAssigned{Way: assignedDelegated})
}
