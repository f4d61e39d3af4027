package handlers

import (
	"fmt"
	"slices"
	"strings"

	"orchestrator/handlers/match"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/hub"
)

var assignOperations = []Operation{
	bind("assign-task", (*decision).tasks, taskDecision.assignTask),
	bind("auto-assign", (*decision).tasks, taskDecision.autoAssign),
	bind("match-agents", (*decision).tasks, taskDecision.matchAgents),
	bind("poll-tasks", (*decision).tasks, taskDecision.pollTasks),
	bind("check-tasks", (*decision).tasks, taskDecision.checkTasks),
}

// assignBy assigns a task to an agent. The agent is notified when no dependency holds the task
// back, and starts the task itself.
func (td taskDecision) assignBy(t *state.Task, a *state.KnownAgent, f *state.TaskAssigned) {
	td.take(t, a, f)
	td.tellAssigned(a, t)
}

// tellAssigned notifies an agent of an assigned task that it can begin.
func (td taskDecision) tellAssigned(a *state.KnownAgent, t *state.Task) {
	switch {
	case t.View.State == wire.TaskPlanning:
		td.tell(a, t, wire.NoticeAssigned, wire.PlanFirstMessage)
	case t.View.State == wire.TaskAssigned && td.state.Tasks.Graph.Open(t.Node) == 0:
		td.tell(a, t, wire.NoticeAssigned, wire.AssignedMessage)
	}
}

// tell sends a notice about a task to an agent that has a stdin.
func (td taskDecision) tell(a *state.KnownAgent, t *state.Task, notice, message string) {
	if a == nil || a.Remote != nil || a.Run == "" {
		return // it polls, or is notified when it starts
	}
	receipt := ""
	if notice == wire.NoticeAssigned {
		receipt = t.View.ID
	}
	td.out.notice(Actor{Kind: Agent, Name: a.ID, Run: a.Run}, notice, receipt, &wire.TaskNotice{TaskID: t.View.ID, Message: message})
}

// remind notifies an agent that has started of its tasks that it has not begun. Its previous run
// may have ended before it read the notices.
func (td taskDecision) remind(a *state.KnownAgent) {
	for _, t := range a.Holds {
		if t.Way == state.Matched || t.Way == state.ByHand {
			td.tellAssigned(a, t)
		}
	}
}

func (td taskDecision) assignTask(r *wire.AssignTask) (*wire.TaskReply, *wire.Error) {
	t, err := td.manageableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if err := td.mayManage(t, "assign"); err != nil {
		return nil, err
	}
	if err := assignedInSession(t); err != nil {
		return nil, err
	}
	a := td.state.Agents.AgentNamed(r.Agent)
	switch {
	case a == nil:
		return nil, noAgent(r.Agent)
	case t.View.State == wire.TaskPending:
	case t.View.State == wire.TaskAssigned && r.RequirePlan:
		if before := td.state.Agents.ByID[t.View.AssignedTo]; before != a {
			td.recall(t, t.View.AssignedTo, t.Run, "Assigned to another agent")
		}
	default:
		return nil, wrongState(t, "assigned")
	}
	if err := td.meets(t, a); err != nil {
		return nil, err
	}
	td.assignBy(t, a, &state.TaskAssigned{Way: state.ByHand, Plan: r.RequirePlan, Request: td.mark()})
	return td.replyWith(t), nil
}

// assignedInSession refuses to assign a task that belongs to a session or was delegated.
func assignedInSession(t *state.Task) *wire.Error {
	if t.Delegation() != nil && !t.View.State.Final() {
		return errDelegated(t)
	}
	w := t.Work()
	if w == nil || t.View.State.Final() {
		return nil
	}
	return state.Errorf(wire.CodeConflict, state.Details{"taskId": t.View.ID, "session": w.Of.Spec.ID, "reason": "in_session"},
		"task %s belongs to the session %q, where its architect assigns it", t.Label(), w.Of.Spec.ID)
}

// mayManage returns an error if the caller is an agent that may not decide about a task: it neither
// submitted the task nor manages tasks of other agents.
func (td taskDecision) mayManage(t *state.Task, verb string) *wire.Error {
	if td.from.Kind != Agent || t.View.SubmittedBy == td.from.String() || td.manages(t) {
		return nil
	}
	return &wire.Error{
		Code: wire.CodeDenied, Message: fmt.Sprintf("only the submitter of a task may %s it", verb),
		Details: map[string]any{"taskId": t.View.ID}, Hint: "if you cannot do it, say so with fail-task",
	}
}

// meets returns an error if an agent gives a task to one that lacks a hard requirement of it. A person may
// do that.
func (td taskDecision) meets(t *state.Task, a *state.KnownAgent) *wire.Error {
	if td.from.Kind != Agent {
		return nil
	}
	var lacks []string
	if role := t.View.RequiredRole; role != "" && role != a.Role {
		lacks = append(lacks, "the role "+role)
	}
	for _, c := range t.View.RequiredCapabilities {
		if !slices.Contains(a.Capabilities, c) {
			lacks = append(lacks, "the capability "+c)
		}
	}
	if wants := t.Wants(); wants != nil {
		lacks = append(lacks, td.state.Agents.Index.Lacks(&wants.Demand, a.ID)...)
	}
	if len(lacks) == 0 {
		return nil
	}
	err := state.Errorf(wire.CodeConflict, state.Details{"taskId": t.View.ID, "agent": a.ID, "reason": "requirements", "lacks": lacks},
		"agent %s does not meet the requirements of task %s: %s", a.ID, t.Label(), strings.Join(lacks, ", "))
	err.Hint = "match-agents lists the agents that fit; only a person may assign it to another agent"
	return err
}

func (td taskDecision) autoAssign(r *wire.TaskID) (*wire.Assignment, *wire.Error) {
	t, err := td.manageableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if err := assignedInSession(t); err != nil {
		return nil, err
	}
	switch {
	case t.View.State != wire.TaskPending:
		return nil, wrongState(t, "assigned")
	case t.Wants() == nil:
		return nil, state.Errorf(wire.CodeInvalid, state.Details{"taskId": t.View.ID, "reason": "no_requirements", "pointer": "/payload/requirements"},
			"task %s has no requirements to match agents by", t.Label())
	}
	name, score, ok := td.state.Agents.Index.Best(&t.Wants().Demand, match.Conditions{Online: td.state.Rules.OnlineOnly})
	if !ok {
		return &wire.Assignment{Status: hub.NoMatch}, nil
	}
	if err := td.meets(t, td.state.Agents.ByID[name]); err != nil {
		return nil, err
	}
	answer := &wire.Assignment{Status: hub.Assigned, ServerID: td.state.Agents.ByID[name].ServerID, ServerName: name, MatchScore: score}
	td.assignBy(t, td.state.Agents.ByID[name], &state.TaskAssigned{Way: state.Matched, Score: score, Request: td.mark()})
	return answer, nil
}

func (td taskDecision) matchAgents(r *wire.TaskID) (*hub.Matches, *wire.Error) {
	t, err := td.readableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	demand := new(match.Demand)
	if t.Wants() != nil {
		demand = &t.Wants().Demand
	}
	verdicts := td.state.Agents.Index.Verdicts(demand)
	answer := &hub.Matches{Servers: make([]hub.Match, 0, len(verdicts)), Total: len(verdicts)}
	for _, v := range verdicts {
		answer.Servers = append(answer.Servers, hub.Match{
			ServerID: td.state.Agents.ByID[v.Name].ServerID, ServerName: v.Name, Score: v.Score, Status: state.OnlineWord(v.Online), Reasons: v.Reasons,
		})
	}
	return answer, nil
}

func (td taskDecision) pollTasks(_ *wire.Nothing) (*wire.TaskList, *wire.Error) {
	return td.state.Tasks.Given(td.state.Agents.ByID[td.from.Name]), nil
}

func (td taskDecision) checkTasks(r *wire.CheckTasks) (*wire.TaskList, *wire.Error) {
	a := td.state.Agents.ByID[td.from.Name]
	if r.SessionID != "" {
		a = td.state.Agents.AgentNamed(r.SessionID)
	}
	if r.SessionID == "" && td.from.Kind != Agent {
		return nil, state.Errorf(wire.CodeInvalid, state.Details{"pointer": "/payload/sessionId"}, "sessionId is missing")
	}
	if a == nil && td.from.Kind != Agent {
		return nil, state.Errorf(wire.CodeNotFound, state.Details{"sessionId": r.SessionID, "pointer": "/payload/sessionId"}, "agent %q does not exist", r.SessionID)
	}
	if td.from.Kind == Agent && (a == nil || a.ID != td.from.Name) {
		if a == nil || !td.managesAll() || !td.from.ActsForOthers {
			return nil, &wire.Error{Code: wire.CodeDenied, Message: "the session is not yours", Details: map[string]any{"sessionId": r.SessionID}}
		}
	}
	return td.state.Tasks.Given(a), nil
}

// dispatch assigns waiting tasks to free agents until none match.
func (td taskDecision) dispatch() {
	td.rematch()
	m := &td.state.Tasks.Queue
	if td.state.Stopping || len(m.Fresh) == 0 && len(m.Freed) == 0 {
		return
	}
	for {
		t, a := m.Match()
		if t == nil {
			m.Settled()
			return
		}
		td.assign(t, a)
	}
}

// assign dispatches a task to an agent and notifies it.
func (td taskDecision) assign(t *state.Task, a *state.KnownAgent) {
	td.own.tasks().take(t, a, &state.TaskAssigned{})
	td.tellAssigned(a, t)
}

// take assigns a task to an agent. A task that was to be planned first still is, until a plan is
// approved.
func (td taskDecision) take(t *state.Task, a *state.KnownAgent, f *state.TaskAssigned) {
	f.Plan = f.Plan || t.Extra != nil && t.Extra.PlanFirst
	f.ID, f.Name, f.Agent, f.Run, f.Attempt = t.View.ID, t.View.Name, a.ID, a.Run, t.View.Attempts+1
	parts := t.Parts()
	td.own.questions().withdrawPermissions(func(q *state.Question) bool { return q.View.Task == t.View.ID && q.View.Agent != a.ID })
	td.fact(a.ActorID, t.View.ID, f)
	td.delegations().cancelParts(parts, "") // the new agent starts from the beginning
}
