package handlers

import (
	"slices"
	"time"

	"orchestrator/handlers/access"
	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/handlers/replies"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

var agentOperations = []Operation{
	bind("query-agents", (*decision).agents, queryAgents),
	bind("update-capabilities", (*decision).agents, updateCapabilities),
	bind("interrupt-agent", (*decision).agents, interruptAgent),
}

// An agent is an agent as the State knows it.
type agent struct {
	wire.Member
	configured wire.Member       // as configured
	actor      string            // its name in the log
	mail       *busActor         // its actor on the bus; nil: none while it does not run
	farewell   bool              // its run has announced its end to GO
	wrecked    bool              // its last run ended with an error
	serverID   string            // its id in protocol A
	under      []string          // where tasks wait that it may fit
	running    int               // of the tasks that it holds
	remote     *remote           // of a registered server; nil for others
	said       *hub.Capabilities // capabilities that it reported; nil: none
	system     wire.Raw          // what else it reported
	state      agentState
	run        string
	host       string           // the machine of the run; "" for this one
	past       []string         // the latest runs that have ended, oldest first
	ended      bool             // the run has ended
	stale      bool             // it runs, but does not read or write
	deaf       bool             // it cannot receive messages now
	returns    bool             // it runs, or will run without a request
	handsOn    int              // open tasks that it has delegated
	submitted  int              // open tasks that it has submitted, with those
	owed       []*delegatedWork // delegations whose latest response it has not received
	holds      []*task
	number     int64 // in the order in which agents became known
	given      int64 // number of the record that gave it its latest task
	offered    bool  // it is in the list of free agents
	memories   replies.Cache

	conversation *conversation // of its program; nil if it reports none
	grants       access.Grants
	late         []*answeredByMail // answers for its next run
	usage        activity.Used
	limited      time.Time // it gets no task until then; zero: it is not limited
	limitedBy    string    // why, as it reported
}

// An agentState is the state of an agent's process.
type agentState string

const (
	offline  agentState = "offline"
	crashed  agentState = "crashed"
	starting agentState = "starting"
	up       agentState = "up"
	leaving  agentState = "stopping"
)

// takes reports whether a task can be assigned to the agent.
func (a *agent) takes() bool {
	return a.state == up && !a.stale && a.limited.IsZero() && len(a.holds) < a.Capacity
}

// hears reports whether the agent is notified of a task that is assigned to it.
func (a *agent) hears() bool { return !a.deaf && !a.Deaf || a.remote != nil }

// online reports whether the agent has a process, or is a server that is online.
func (a *agent) online() bool { return a.state == up || a.state == leaving }

// alive reports whether a run of the agent has begun and not ended. Its output may still arrive.
func (a *agent) alive() bool { return a.run != "" && !a.ended }

// runs reports whether a run is the current or the latest one. Late events of an earlier run do
// not affect the next.
func (a *agent) runs(run string) bool { return run == a.run || run == "" }

// offers reports whether the agent has a role and some capabilities.
func (a *agent) offers(role string, capabilities []string) bool {
	if role != "" && role != a.Role {
		return false
	}
	for _, c := range capabilities {
		if !slices.Contains(a.Capabilities, c) {
			return false
		}
	}
	return true
}

// status returns the status that other agents see.
func (a *agent) status() string {
	switch {
	case a.state != up:
		return string(a.state)
	case a.stale, a.deaf:
		return "stale"
	case len(a.holds) > 0, !a.limited.IsZero():
		return "busy"
	}
	return "idle"
}

// shown returns the agent as other agents see it.
func (a *agent) shown() wire.Agent {
	shown := wire.Agent{ID: a.ID, Role: a.Role, Status: a.status(), Capabilities: a.Capabilities, TakesNoTasks: a.Capacity == 0}
	if len(a.holds) > 0 {
		shown.CurrentTask = a.holds[0].view.ID
	}
	return shown
}

// agentKnown records that there is an agent, or that it has changed.
type agentKnown struct{ wire.Member }

func (*agentKnown) kind() string { return events.AgentKnown }

func (ak *agentKnown) apply(s *core, r *wire.Record) {
	a := s.agents.byID[ak.ID]
	if a == nil {
		a = newAgent(ak.ID)
		s.meet(a)
	}
	if ak.Manual != a.Manual && !a.alive() {
		a.returns = !ak.Manual
	}
	s.tasks.queue.removeIdle(a)
	if a.remote != nil { // a configured agent has taken its name
		s.agents.unhear(a)
		s.access.RemoveAll(access.Key, a.ID)
		a.remote, a.system, a.state = nil, nil, offline
		s.detach(a)
	}
	a.Member, a.configured, a.said = ak.Member, ak.Member, nil
	s.attachAgent(a, r.Seq)
	for _, w := range s.sessions.worksOf(ak.ID) { // whether it polls for its messages may have changed
		s.watchWork(w)
	}
	s.indexCapabilities(a, hub.ReadCapabilities(ak.Abilities))
	s.addIdle(a)
	s.tasks.required.gain(a)
	s.delegations.recheckCapacity(a)
	sendKeptResponses(s, a) // it may be able to receive messages now
}

// indexCapabilities adds the capabilities of an agent to the index.
func (s *core) indexCapabilities(a *agent, c *hub.Capabilities) {
	var under queue.Set
	if c == nil {
		c = new(hub.Capabilities)
	}
	offer := match.Offer{Languages: c.Languages, Environments: c.Environments, Tools: c.Tools, Tags: c.Tags}
	for _, r := range c.Repos {
		offer.Repos = append(offer.Repos, match.Repo{Name: r.Name, Languages: r.Languages, Tools: r.Tools})
		under.Add(underRepo + r.Name)
		for _, l := range r.Languages {
			under.Add(underLanguage + l)
		}
	}
	for _, l := range c.Languages {
		under.Add(underLanguage + l)
	}
	a.under = under.Texts
	s.agents.index.Put(a.ID, offer, match.Standing{})
	s.updateStanding(a)
}

// agentCapable records the capabilities that an agent reports, and its machine.
type agentCapable struct {
	Agent        string      `json:"agent"`
	Capabilities wire.Raw    `json:"capabilities,omitzero"`
	System       wire.Raw    `json:"system,omitzero"`
	Request      *requestKey `json:"request,omitzero"`
}

func (*agentCapable) kind() string { return events.AgentCapable }

func (ac *agentCapable) apply(s *core, r *wire.Record) {
	a := s.agents.byID[ac.Agent]
	if ac.System != nil {
		a.noteSystem(ac.System)
	}
	if c := hub.ReadCapabilities(ac.Capabilities); c != nil {
		s.tasks.queue.removeIdle(a)
		a.setCapabilities(c)
		s.indexCapabilities(a, a.said)
		s.addIdle(a)
		s.tasks.required.gain(a)
		s.delegations.recheckCapacity(a)
	}
	s.saveReply(agentOf(r.From), ac.Request, s.server(a), nil)
}

// setCapabilities replaces the configured capabilities of an agent with those that it reports.
// The Names are kept, since a report does not contain them.
func (a *agent) setCapabilities(c *hub.Capabilities) {
	a.said, a.Capacity = c, c.Capacity
	var all queue.Set
	for _, texts := range [][]string{a.Names, c.Languages, c.Tools, c.Tags} {
		for _, text := range texts {
			all.Add(text)
		}
	}
	a.Capabilities = all.Texts
}

func updateCapabilities(ad agentDecision, r *wire.UpdateCapabilities) (*hub.Server, *wire.Error) {
	a := ad.state.agents.byID[ad.from.Name]
	ad.seen(a)
	f := &agentCapable{Agent: a.ID, Request: ad.mark()}
	c := a.mayOffer(r.Capabilities)
	if c != nil && (a.said == nil || string(a.said.Document) != string(c.Document)) {
		f.Capabilities = c.Document
	}
	if merged := object.Merge(a.system, r.System); r.System != nil && string(merged) != string(a.system) {
		if len(merged) > maxSystem {
			return nil, errorf(wire.CodeInvalid, details{"pointer": "/payload/system"},
				"system would be larger than %d bytes with what was said before", maxSystem)
		}
		f.System = r.System
	}
	if f.Capabilities != nil || f.System != nil { // a heartbeat without changes needs no record
		ad.fact(a.actor, "", f)
	}
	if f.Capabilities != nil {
		ad.oddCapabilities(a, c)
	}
	return ad.state.server(a), nil
}

// mayOffer returns what an agent may offer of what it reports. If its capabilities are fixed, that is
// what the file says as well, and an oddity names the rest.
func (a *agent) mayOffer(c *hub.Capabilities) *hub.Capabilities {
	if c == nil || !a.Fixed {
		return c
	}
	most := hub.ReadCapabilities(a.configured.Abilities)
	if most == nil {
		most = new(hub.Capabilities)
	}
	most.Capacity = a.configured.Capacity
	return c.Within(most)
}

// maxSystem is the maximum size of what an agent reports about its machine, in bytes.
const maxSystem = 64 << 10

// noteSystem stores what an agent reports about its machine. Members that it leaves out are
// kept. For a server, it also updates the members of its registration.
func (a *agent) noteSystem(said wire.Raw) {
	a.system = object.Merge(a.system, said)
	if a.remote == nil {
		return
	}
	for key, text := range map[string]*string{"hostname": &a.remote.hostname, "ip": &a.remote.ip, "os": &a.remote.os} {
		if value, ok := object.TextOf(said, key); ok {
			*text = value
		}
	}
	if repos := object.MemberOf(said, "repos"); repos != nil && repos[0] == '{' {
		a.remote.repos = repos
	}
}

// oddCapabilities records the warnings about capabilities that an agent reports.
func (ad agentDecision) oddCapabilities(a *agent, c *hub.Capabilities) {
	for _, o := range c.Oddities {
		ad.fact(a.actor, "", &oddity{what: o.Kind, Agent: a.ID, Pointer: o.Pointer, Text: o.Text})
	}
}

func newAgent(name string) *agent {
	return &agent{
		Member: wire.Member{ID: name}, state: offline, returns: true, actor: agentPrefix + name, serverID: hub.ServerID(name),
	}
}

// meet adds an agent.
func (s *core) meet(a *agent) {
	s.agents.met++
	a.number = s.agents.met
	s.agents.byID[a.ID] = a
	s.agents.order = append(s.agents.order, a)
	for _, k := range s.tasks.owned[a.actor] { // an agent of that name was here before
		if k.view.SubmittedBy != a.actor || k.view.State.Final() {
			continue
		}
		a.submitted++
		if k.delegation() != nil {
			s.agents.handsOn(k, +1)
		}
	}
}

// agentForgotten records that an agent no longer exists. The tasks that it submitted stay.
type agentForgotten struct {
	ID string `json:"id"`
}

func (*agentForgotten) kind() string { return events.AgentForgotten }

func (f *agentForgotten) apply(s *core, _ *wire.Record) {
	a := s.agents.byID[f.ID]
	for _, d := range slices.Clone(a.owed) {
		dropKeptResponse(s, d) // no agent is left to receive it
	}
	s.tasks.queue.removeIdle(a)
	s.agents.limited.Drop(parked{a})
	s.agents.unhear(a)
	s.detach(a)
	for _, m := range s.sessions.seats[f.ID] {
		m.outbox = slices.DeleteFunc(m.outbox, (*outboxItem).told)
	}
	delete(s.agents.byID, f.ID)
	s.agents.index.Remove(f.ID)
	s.agents.order = slices.DeleteFunc(s.agents.order, func(o *agent) bool { return o == a })
}

// syncAgents applies the configured agents: it adds new ones, updates changed ones and removes
// the others.
func (ad agentDecision) syncAgents(r *wire.AgentSet) {
	there := make(map[string]bool, len(r.Agents))
	for _, m := range r.Agents {
		there[m.ID] = true
		switch a := ad.state.agents.byID[m.ID]; {
		case a != nil && a.remote != nil:
			ad.tasks().strip(a, "its server has given its name to an agent that runs here")
		case a != nil && same(a.configured, m):
			continue
		}
		ad.fact(agentPrefix+m.ID, "", &agentKnown{Member: m})
		if m.Deaf {
			ad.delegations().takeBack(ad.state.agents.byID[m.ID], m.ID+" takes no messages any more")
		}
	}
	for _, a := range slices.Clone(ad.state.agents.order) {
		if there[a.ID] || a.remote != nil {
			continue
		}
		ad.forgetAgent(a)
	}
}

// forgetAgent removes an agent.
func (ad agentDecision) forgetAgent(a *agent) {
	ad.tasks().strip(a, "its agent is no longer one of the agents")
	ad.questions().withdrawAll(func(q *question) bool { return q.view.Agent == a.ID && (q.request != nil || q.mailed) })
	ad.mail().resolveStale(a.mail, "it is no longer one of the agents")
	ad.fact(a.actor, "", &agentForgotten{ID: a.ID})
}

// strip takes all its tasks from an agent.
func (td taskDecision) strip(a *agent, why string) {
	for _, k := range slices.Clone(a.holds) {
		if !k.view.State.Final() { // it may have failed together with another task of the agent
			td.requeue(k, &taskRequeued{Why: why, Blameless: true})
		}
	}
}

func same(a, b wire.Member) bool {
	return a.Role == b.Role && a.Capacity == b.Capacity && a.OpenTasks == b.OpenTasks && a.OnExit == b.OnExit && a.Deaf == b.Deaf && a.Actor == b.Actor &&
		slices.Equal(a.Capabilities, b.Capabilities) && slices.Equal(a.Names, b.Names) && string(a.Abilities) == string(b.Abilities) &&
		a.Fixed == b.Fixed && a.Manual == b.Manual && a.Manage == b.Manage
}

// requeue lets a task wait for another agent.
func (td taskDecision) requeue(k *task, f *taskRequeued) {
	if w := k.work(); w != nil {
		td.works().loseWork(w, &session.ExecutionError{
			ErrorType: session.ExecutionException, ErrorMessage: f.Why, SuggestedAction: session.SuggestReassign,
		})
		return
	}
	parts := k.parts()
	td.questions().cancelQuestions(k)
	f.ID, f.Name, f.Agent = k.view.ID, k.view.Name, k.view.AssignedTo
	if td.comesBack(k, f) {
		f.To = f.Agent
	}
	td.fact("", k.view.ID, f)
	td.delegations().cancelParts(parts, "")
	td.lostTasks = append(td.lostTasks, lostTask{task: k, of: f.Agent})
}

// told handles the delivery of a notice about a task. If the task was dispatched, it starts when
// the notice was written, and is requeued when it was lost. Any other task waits until its agent
// starts it.
func (td taskDecision) told(m *wire.Delivered) {
	if m.Said != 0 && m.Task == "" {
		td.sessions().handed(m)
		return
	}
	k := td.state.tasks.byID[m.Task]
	if k != nil && k.delegation() != nil {
		td.delegations().carried(k.delegation(), m)
		return
	}
	if k == nil || k.view.State != wire.TaskAssigned || k.view.AssignedTo != m.Agent || k.run != m.Run || k.way != dispatched {
		return // it was faster, or is gone
	}
	if m.Lost {
		td.requeue(k, &taskRequeued{Why: "its agent takes no messages", Deaf: true, Blameless: true})
		return
	}
	if td.state.tasks.graph.Open(k.node) == 0 {
		td.start(k, nil)
	}
}

// interruptAgent notifies a running agent that a person interrupts it.
func interruptAgent(ad agentDecision, r *wire.InterruptAgent) (*activity.Interrupted, *wire.Error) {
	a := ad.state.agents.byID[r.Agent]
	switch {
	case a == nil:
		return nil, noAgent(r.Agent)
	case a.state != up:
		return nil, errorf(wire.CodeConflict, details{"agent": a.ID, "status": a.status()}, "the agent %q does not run: it is %s", a.ID, a.status())
	case a.remote != nil || !a.hears():
		return nil, errorf(wire.CodeConflict, details{"agent": a.ID, "status": a.status()}, "the agent %q does not read notifications", a.ID)
	}
	task := ""
	for _, k := range a.holds {
		if k.busy() {
			task = k.view.ID
			break
		}
	}
	ad.fact(a.actor, task, &agentInterrupted{Agent: a.ID, Task: task, Message: r.Message})
	ad.out.notice(Actor{Kind: Agent, Name: a.ID, Run: a.run}, activity.NoticeInterrupt, "", &wire.TaskNotice{TaskID: task, Message: r.Message})
	return &activity.Interrupted{Agent: a.ID, TaskID: task}, nil
}

// agentInterrupted records that a person has interrupted an agent.
type agentInterrupted struct {
	Agent   string `json:"agent"`
	Task    string `json:"task,omitzero"`
	Message string `json:"message,omitzero"`
}

func (*agentInterrupted) kind() string { return events.AgentInterrupted }

func (*agentInterrupted) apply(*core, *wire.Record) {}

func (ai *agentInterrupted) tell(e *wire.Event) {
	e.Agent, e.Task, e.Text = ai.Agent, ai.Task, "was interrupted"
	if ai.Message != "" {
		e.Text += ": " + ai.Message
	}
}

func queryAgents(ad agentDecision, q *wire.QueryAgents) (*wire.AgentList, *wire.Error) {
	if roles := ad.state.agents.rolesWithout(q.Role); roles != nil {
		return nil, wire.UnknownRole(q.Role, "/payload/role", roles)
	}
	wanted := func(a *agent) bool {
		return (q.Status == "" || q.Status == a.status()) && a.offers(q.Role, q.Capabilities)
	}
	n := 0
	for _, a := range ad.state.agents.order {
		if wanted(a) {
			n++
		}
	}
	answer := &wire.AgentList{Agents: make([]wire.Agent, 0, n)}
	for _, a := range ad.state.agents.order {
		if wanted(a) {
			answer.Agents = append(answer.Agents, a.shown())
		}
	}
	return answer, nil
}

// rolesWithout returns the roles of the team, or nil if a role is one of them: it is a role
// of every team, or that of an agent.
func (as *agents) rolesWithout(role string) []string {
	if role == "" || slices.Contains(wire.Roles, role) {
		return nil
	}
	roles := slices.Clone(wire.Roles)
	for _, a := range as.order {
		if a.Role == role {
			return nil
		}
		if !slices.Contains(roles, a.Role) {
			roles = append(roles, a.Role)
		}
	}
	return roles
}
