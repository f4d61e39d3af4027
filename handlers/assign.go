package handlers

import (
	"fmt"
	"slices"
	"strings"

	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/hub"
)

var assignOperations = []Operation{
	bind("assign-task", (*decision).tasks, assignTask),
	bind("auto-assign", (*decision).tasks, autoAssign),
	bind("match-agents", (*decision).tasks, matchAgents),
	bind("poll-tasks", (*decision).tasks, pollTasks),
	bind("check-tasks", (*decision).tasks, checkTasks),
}

// assignBy assigns a task to an agent. The agent is notified when no dependency holds the task
// back, and starts the task itself.
func (td taskDecision) assignBy(k *task, a *agent, f *taskAssigned) {
	td.take(k, a, f)
	td.tellAssigned(a, k)
}

// tellAssigned notifies an agent of an assigned task that it can begin.
func (td taskDecision) tellAssigned(a *agent, k *task) {
	switch {
	case k.view.State == wire.TaskPlanning:
		td.tell(a, k, wire.NoticeAssigned, wire.PlanFirstMessage)
	case k.view.State == wire.TaskAssigned && td.state.tasks.graph.Open(k.node) == 0:
		td.tell(a, k, wire.NoticeAssigned, wire.AssignedMessage)
	}
}

// tell sends a notice about a task to an agent that has a stdin.
func (td taskDecision) tell(a *agent, k *task, notice, message string) {
	if a == nil || a.remote != nil || a.run == "" {
		return // it polls, or is notified when it starts
	}
	receipt := ""
	if notice == wire.NoticeAssigned {
		receipt = k.view.ID
	}
	td.out.notice(Actor{Kind: Agent, Name: a.ID, Run: a.run}, notice, receipt, &wire.TaskNotice{TaskID: k.view.ID, Message: message})
}

// remind notifies an agent that has started of its tasks that it has not begun. Its previous run
// may have ended before it read the notices.
func (td taskDecision) remind(a *agent) {
	for _, k := range a.holds {
		if k.way == matched || k.way == byHand {
			td.tellAssigned(a, k)
		}
	}
}

func assignTask(td taskDecision, r *wire.AssignTask) (*wire.TaskReply, *wire.Error) {
	k, err := td.manageableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if err := td.mayManage(k, "assign"); err != nil {
		return nil, err
	}
	if err := assignedInSession(k); err != nil {
		return nil, err
	}
	a := td.state.agents.agentNamed(r.Agent)
	switch {
	case a == nil:
		return nil, noAgent(r.Agent)
	case k.view.State == wire.TaskPending:
	case k.view.State == wire.TaskAssigned && r.RequirePlan:
		if before := td.state.agents.byID[k.view.AssignedTo]; before != a {
			td.recall(k, k.view.AssignedTo, k.run, "Assigned to another agent")
		}
	default:
		return nil, wrongState(k, "assigned")
	}
	if err := td.meets(k, a); err != nil {
		return nil, err
	}
	td.assignBy(k, a, &taskAssigned{Way: byHand, Plan: r.RequirePlan, Request: td.mark()})
	return td.replyWith(k), nil
}

// assignedInSession refuses to assign a task that belongs to a session or was delegated.
func assignedInSession(k *task) *wire.Error {
	if k.delegation() != nil && !k.view.State.Final() {
		return errDelegated(k)
	}
	w := k.work()
	if w == nil || k.view.State.Final() {
		return nil
	}
	return errorf(wire.CodeConflict, details{"taskId": k.view.ID, "session": w.of.spec.ID, "reason": "in_session"},
		"task %s belongs to the session %q, where its architect assigns it", k.label(), w.of.spec.ID)
}

// mayManage returns an error if the caller is an agent that may not decide about a task: it has
// neither submitted it nor manages tasks of others.
func (td taskDecision) mayManage(k *task, verb string) *wire.Error {
	if td.from.Kind != Agent || k.view.SubmittedBy == td.from.String() || td.manages(k) {
		return nil
	}
	return &wire.Error{
		Code: wire.CodeDenied, Message: fmt.Sprintf("only who submitted a task may %s it", verb),
		Details: map[string]any{"taskId": k.view.ID}, Hint: "if you cannot do it, say so with fail-task",
	}
}

// meets returns an error if an agent gives a task to one that lacks a hard requirement of it. A person may
// do that.
func (td taskDecision) meets(k *task, a *agent) *wire.Error {
	if td.from.Kind != Agent {
		return nil
	}
	var lacks []string
	if role := k.view.RequiredRole; role != "" && role != a.Role {
		lacks = append(lacks, "the role "+role)
	}
	for _, c := range k.view.RequiredCapabilities {
		if !slices.Contains(a.Capabilities, c) {
			lacks = append(lacks, "the capability "+c)
		}
	}
	if wants := k.wants(); wants != nil {
		lacks = append(lacks, td.state.agents.index.Lacks(&wants.Demand, a.ID)...)
	}
	if len(lacks) == 0 {
		return nil
	}
	err := errorf(wire.CodeConflict, details{"taskId": k.view.ID, "agent": a.ID, "reason": "requirements", "lacks": lacks},
		"agent %s lacks what task %s requires: %s", a.ID, k.label(), strings.Join(lacks, ", "))
	err.Hint = "match-agents lists the agents that have it; only a person may give it to another one"
	return err
}

// agentNamed returns the agent with a name, a server id or a run id, or nil.
func (as *agents) agentNamed(name string) *agent {
	if a := as.byID[name]; a != nil {
		return a
	}
	for _, a := range as.order {
		if a.serverID == name || a.run == name && name != "" {
			return a
		}
	}
	return nil
}

func autoAssign(td taskDecision, r *wire.TaskID) (*wire.Assignment, *wire.Error) {
	k, err := td.manageableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if err := assignedInSession(k); err != nil {
		return nil, err
	}
	switch {
	case k.view.State != wire.TaskPending:
		return nil, wrongState(k, "assigned")
	case k.wants() == nil:
		return nil, errorf(wire.CodeInvalid, details{"taskId": k.view.ID, "reason": "no_requirements", "pointer": "/payload/requirements"},
			"task %s has no requirements to match agents by", k.label())
	}
	name, score, ok := td.state.agents.index.Best(&k.wants().Demand, match.Conditions{Online: td.state.rules.OnlineOnly})
	if !ok {
		return &wire.Assignment{Status: hub.NoMatch}, nil
	}
	if err := td.meets(k, td.state.agents.byID[name]); err != nil {
		return nil, err
	}
	answer := &wire.Assignment{Status: hub.Assigned, ServerID: td.state.agents.byID[name].serverID, ServerName: name, MatchScore: score}
	td.assignBy(k, td.state.agents.byID[name], &taskAssigned{Way: matched, Score: score, Request: td.mark()})
	return answer, nil
}

// remember stores the answer to the request that caused an assignment.
func (t *taskAssigned) remember(s *core, r *wire.Record, k *task) {
	if t.Request == nil {
		return
	}
	if t.Way == matched {
		s.saveReply(agentOf(r.From), t.Request, &wire.Assignment{
			Status: hub.Assigned, ServerID: s.agents.byID[t.Agent].serverID, ServerName: t.Agent, MatchScore: t.Score,
		}, nil)
		return
	}
	s.saveReply(agentOf(r.From), t.Request, s.tasks.reply(k), nil)
}

func matchAgents(td taskDecision, r *wire.TaskID) (*hub.Matches, *wire.Error) {
	k, err := td.readableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	demand := new(match.Demand)
	if k.wants() != nil {
		demand = &k.wants().Demand
	}
	verdicts := td.state.agents.index.Verdicts(demand)
	answer := &hub.Matches{Servers: make([]hub.Match, 0, len(verdicts)), Total: len(verdicts)}
	for _, v := range verdicts {
		answer.Servers = append(answer.Servers, hub.Match{
			ServerID: td.state.agents.byID[v.Name].serverID, ServerName: v.Name, Score: v.Score, Status: onlineWord(v.Online), Reasons: v.Reasons,
		})
	}
	return answer, nil
}

func onlineWord(online bool) string {
	if online {
		return hub.ServerOnline
	}
	return hub.ServerOffline
}

func pollTasks(td taskDecision, _ *wire.Nothing) (*wire.TaskList, *wire.Error) {
	return td.state.tasks.given(td.state.agents.byID[td.from.Name]), nil
}

// given returns the tasks that an agent has been assigned and has not begun.
func (t *tasks) given(a *agent) *wire.TaskList {
	answer := &wire.TaskList{Tasks: []wire.Task{}}
	if a == nil {
		return answer
	}
	for _, k := range a.holds {
		if k.view.State == wire.TaskAssigned || k.view.State == wire.TaskPlanning {
			v := t.shown(k)
			v.WaitsFor = t.waitsFor(k)
			t.showInputs(k, &v)
			t.showResults(k, &v)
			answer.Tasks = append(answer.Tasks, v)
		}
	}
	return answer
}

func checkTasks(td taskDecision, r *wire.CheckTasks) (*wire.TaskList, *wire.Error) {
	a := td.state.agents.byID[td.from.Name]
	if r.SessionID != "" {
		a = td.state.agents.agentNamed(r.SessionID)
	}
	if r.SessionID == "" && td.from.Kind != Agent {
		return nil, errorf(wire.CodeInvalid, details{"pointer": "/payload/sessionId"}, "sessionId is missing")
	}
	if a == nil && td.from.Kind != Agent {
		return nil, errorf(wire.CodeNotFound, details{"sessionId": r.SessionID, "pointer": "/payload/sessionId"}, "there is no agent %q", r.SessionID)
	}
	if td.from.Kind == Agent && (a == nil || a.ID != td.from.Name) {
		if a == nil || !td.managesAll() || !td.from.ActsForOthers {
			return nil, &wire.Error{Code: wire.CodeDenied, Message: "the session is not yours", Details: map[string]any{"sessionId": r.SessionID}}
		}
	}
	return td.state.tasks.given(a), nil
}

// dispatch assigns waiting tasks to free agents until none match.
func (td taskDecision) dispatch() {
	td.rematch()
	m := &td.state.tasks.queue
	if td.state.stopping || len(m.fresh) == 0 && len(m.freed) == 0 {
		return
	}
	for {
		k, a := m.match()
		if k == nil {
			m.settled()
			return
		}
		td.assign(k, a)
	}
}

// match returns the first task that some agent fits, and the agent. One of them is new in this
// round.
func (t *taskQueue) match() (first *task, to *agent) {
	for _, d := range t.fresh {
		if k := d.Head(); k != nil && (first == nil || queue.Before(k, first)) {
			if a := t.mostPatient(d); a != nil {
				first, to = k, a
			}
		}
	}
	for _, a := range t.freed {
		first, to = t.better("", a, first, to)
		for _, c := range a.Capabilities {
			first, to = t.better(c, a, first, to)
		}
	}
	return first, to
}

// better returns the first task that fits, and its agent: one under a capability of a, or the
// best so far.
func (t *taskQueue) better(under string, a *agent, first *task, to *agent) (*task, *agent) {
	for _, d := range t.waiting.Under(under) {
		if k := d.Head(); (first == nil || queue.Before(k, first)) && t.fits(d, a) {
			first, to = k, a
		}
	}
	return first, to
}

// mostPatient returns the first free agent that fits a bucket.
func (t *taskQueue) mostPatient(d *bucket) *agent {
	for _, a := range t.free {
		if t.fits(d, a) {
			return a
		}
	}
	return nil
}

// fits reports whether an agent can get the tasks of a bucket. It must receive notices, or be a
// server that polls.
func (t *taskQueue) fits(d *bucket, a *agent) bool {
	asks := &d.Asks
	return a.actor != asks.submitter && a.hears() && a.offers(asks.role, asks.capabilities) &&
		(asks.wants == nil || t.index.Fits(&asks.wants.Demand, a.ID, match.Conditions{}))
}

// settled starts a new round after everything was dispatched.
func (t *taskQueue) settled() {
	clear(t.fresh)
	clear(t.freed)
	t.fresh, t.freed = t.fresh[:0], t.freed[:0]
	t.round++
}

// assign dispatches a task to an agent and notifies it.
func (td taskDecision) assign(k *task, a *agent) {
	td.own.tasks().take(k, a, &taskAssigned{})
	td.tellAssigned(a, k)
}

// take assigns a task to an agent. A task that was to be planned first still is, until a plan is
// approved.
func (td taskDecision) take(k *task, a *agent, f *taskAssigned) {
	f.Plan = f.Plan || k.more != nil && k.more.planFirst
	f.ID, f.Name, f.Agent, f.Run, f.Attempt = k.view.ID, k.view.Name, a.ID, a.run, k.view.Attempts+1
	parts := k.parts()
	td.own.questions().withdrawPermissions(func(q *question) bool { return q.view.Task == k.view.ID && q.view.Agent != a.ID })
	td.fact(a.actor, k.view.ID, f)
	td.delegations().cancelParts(parts, "") // the new agent starts from the beginning
}
