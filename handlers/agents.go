package handlers

import (
	"slices"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

var agentOperations = []Operation{
	bind("query-agents", (*decision).agents, queryAgents),
	bind("update-capabilities", (*decision).agents, updateCapabilities),
	bind("interrupt-agent", (*decision).agents, interruptAgent),
}

func updateCapabilities(ad agentDecision, r *wire.UpdateCapabilities) (*hub.Server, *wire.Error) {
	a := ad.state.Agents.ByID[ad.from.Name]
	ad.seen(a)
	f := &state.AgentCapable{Agent: a.ID, Request: ad.mark()}
	c := a.MayOffer(r.Capabilities)
	if c != nil && (a.Said == nil || string(a.Said.Document) != string(c.Document)) {
		f.Capabilities = c.Document
	}
	if merged := object.Merge(a.System, r.System); r.System != nil && string(merged) != string(a.System) {
		if len(merged) > maxSystem {
			return nil, state.Errorf(wire.CodeInvalid, state.Details{"pointer": "/payload/system"},
				"system would exceed %d bytes, together with earlier reports", maxSystem)
		}
		f.System = r.System
	}
	if f.Capabilities != nil || f.System != nil { // a heartbeat without changes needs no record
		ad.fact(a.ActorID, "", f)
	}
	if f.Capabilities != nil {
		ad.oddCapabilities(a, c)
	}
	return ad.state.Server(a), nil
}

// maxSystem is the maximum size of an agent's report about its machine, in bytes.
const maxSystem = 64 << 10

// oddCapabilities records the warnings about capabilities that an agent reports.
func (ad agentDecision) oddCapabilities(a *state.KnownAgent, c *hub.Capabilities) {
	for _, o := range c.Oddities {
		ad.fact(a.ActorID, "", &state.DocumentWarning{What: o.Kind, Agent: a.ID, Pointer: o.Pointer, Text: o.Text})
	}
}

// syncAgents applies the configured agents: it adds new ones, updates changed ones and removes
// missing ones.
func (ad agentDecision) syncAgents(r *wire.AgentSet) {
	there := make(map[string]bool, len(r.Agents))
	for _, m := range r.Agents {
		there[m.ID] = true
		switch a := ad.state.Agents.ByID[m.ID]; {
		case a != nil && a.Remote != nil:
			ad.tasks().strip(a, "its name now belongs to an agent that runs here")
		case a != nil && same(a.Configured, m):
			continue
		}
		ad.fact(state.AgentPrefix+m.ID, "", &state.AgentKnown{Member: m})
		if m.Deaf {
			ad.delegations().takeBack(ad.state.Agents.ByID[m.ID], m.ID+" no longer takes messages")
		}
	}
	for _, a := range slices.Clone(ad.state.Agents.Order) {
		if there[a.ID] || a.Remote != nil {
			continue
		}
		ad.forgetAgent(a)
	}
}

// forgetAgent removes an agent.
func (ad agentDecision) forgetAgent(a *state.KnownAgent) {
	ad.tasks().strip(a, "its agent is no longer part of the team")
	ad.questions().withdrawAll(func(q *state.Question) bool { return q.View.Agent == a.ID && (q.Request != nil || q.Mailed) })
	ad.mail().resolveStale(a.Mail, "it is no longer part of the team")
	ad.fact(a.ActorID, "", &state.AgentForgotten{ID: a.ID})
}

// strip takes all its tasks from an agent.
func (td taskDecision) strip(a *state.KnownAgent, why string) {
	for _, t := range slices.Clone(a.Holds) {
		if !t.View.State.Final() { // it may have failed together with another task of the agent
			td.requeue(t, &state.TaskRequeued{Why: why, Blameless: true})
		}
	}
}

func same(a, b wire.Member) bool {
	return a.Role == b.Role && a.Capacity == b.Capacity && a.OpenTasks == b.OpenTasks && a.OnExit == b.OnExit && a.Deaf == b.Deaf && a.Actor == b.Actor &&
		slices.Equal(a.Capabilities, b.Capabilities) && slices.Equal(a.Names, b.Names) && string(a.Abilities) == string(b.Abilities) &&
		a.Fixed == b.Fixed && a.Manual == b.Manual && a.Manage == b.Manage
}

// requeue lets a task wait for another agent.
func (td taskDecision) requeue(t *state.Task, f *state.TaskRequeued) {
	if w := t.Work(); w != nil {
		td.works().loseWork(w, &session.ExecutionError{
			ErrorType: session.ExecutionException, ErrorMessage: f.Why, SuggestedAction: session.SuggestReassign,
		})
		return
	}
	parts := t.Parts()
	td.questions().cancelQuestions(t)
	f.ID, f.Name, f.Agent = t.View.ID, t.View.Name, t.View.AssignedTo
	if td.comesBack(t, f) {
		f.To = f.Agent
	}
	td.fact("", t.View.ID, f)
	td.delegations().cancelParts(parts, "")
	td.lostTasks = append(td.lostTasks, lostTask{task: t, of: f.Agent})
}

// told handles the delivery of a notice about a task. If the task was dispatched, it starts when
// the notice was written, and is requeued when it was lost. Any other task waits until its agent
// starts it.
func (td taskDecision) told(m *wire.Delivered) {
	if m.Said != 0 && m.Task == "" {
		td.sessions().handed(m)
		return
	}
	t := td.state.Tasks.ByID[m.Task]
	if t != nil && t.Delegation() != nil {
		td.delegations().carried(t.Delegation(), m)
		return
	}
	if t == nil || t.View.State != wire.TaskAssigned || t.View.AssignedTo != m.Agent || t.Run != m.Run || t.Way != state.Dispatched {
		return // it was faster, or is gone
	}
	if m.Lost {
		td.requeue(t, &state.TaskRequeued{Why: "its agent takes no messages", Deaf: true, Blameless: true})
		return
	}
	if td.state.Tasks.Graph.Open(t.Node) == 0 {
		td.start(t, nil)
	}
}

// interruptAgent notifies a running agent that a person interrupts it.
func interruptAgent(ad agentDecision, r *wire.InterruptAgent) (*activity.Interrupted, *wire.Error) {
	a := ad.state.Agents.ByID[r.Agent]
	switch {
	case a == nil:
		return nil, noAgent(r.Agent)
	case a.State != state.Up:
		return nil, state.Errorf(wire.CodeConflict, state.Details{"agent": a.ID, "status": a.Status()}, "the agent %q is not running: it is %s", a.ID, a.Status())
	case a.Remote != nil || !a.Hears():
		return nil, state.Errorf(wire.CodeConflict, state.Details{"agent": a.ID, "status": a.Status()}, "the agent %q does not read notifications", a.ID)
	}
	task := ""
	for _, t := range a.Holds {
		if t.Busy() {
			task = t.View.ID
			break
		}
	}
	ad.fact(a.ActorID, task, &state.AgentInterrupted{Agent: a.ID, Task: task, Message: r.Message})
	ad.out.notice(Actor{Kind: Agent, Name: a.ID, Run: a.Run}, activity.NoticeInterrupt, "", &wire.TaskNotice{TaskID: task, Message: r.Message})
	return &activity.Interrupted{Agent: a.ID, TaskID: task}, nil
}

func queryAgents(ad agentDecision, q *wire.QueryAgents) (*wire.AgentList, *wire.Error) {
	if roles := ad.state.Agents.RolesWithout(q.Role); roles != nil {
		return nil, wire.UnknownRole(q.Role, "/payload/role", roles)
	}
	wanted := func(a *state.KnownAgent) bool {
		return (q.Status == "" || q.Status == a.Status()) && a.Offers(q.Role, q.Capabilities)
	}
	n := 0
	for _, a := range ad.state.Agents.Order {
		if wanted(a) {
			n++
		}
	}
	answer := &wire.AgentList{Agents: make([]wire.Agent, 0, n)}
	for _, a := range ad.state.Agents.Order {
		if wanted(a) {
			answer.Agents = append(answer.Agents, a.Shown())
		}
	}
	return answer, nil
}
