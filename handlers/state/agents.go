package state

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
)

// An agent is an agent as the State knows it.
type KnownAgent struct {
	wire.Member
	StoredAgent
	ActorID     string            // its name in the log
	Mail        *BusActor         // its actor on the bus; nil: none while it is not running
	ServerID    string            // its id in protocol A
	Under       []string          // where tasks wait that it may fit
	Running     int               // of the tasks that it holds
	Remote      *Remote           // of a registered server, or nil
	Said        *hub.Capabilities // capabilities that it reported; nil: none
	handsOn     int               // open tasks that it has delegated
	submitted   int               // open tasks that it has submitted, with those
	Owed        []*DelegatedWork  // delegations with a latest response that it has not received
	Holds       []*Task
	number      int64 // in the order of their introduction
	Offered     bool  // it is in the list of free agents
	Unreachable bool  // it cannot receive messages now
	Memories    replies.Cache

	Conversation *Conversation // of its program; nil if it reports none
}

// A StoredAgent is the part of a KnownAgent that a snapshot copies.
type StoredAgent struct {
	Configured wire.Member       `json:"file"`            // as configured
	System     wire.Raw          `json:"system,omitzero"` // the rest of its report
	State      AgentState        `json:"state"`
	Run        string            `json:"run,omitzero"`
	Host       string            `json:"host,omitzero"`     // the machine of the run; "" for this one
	Stale      bool              `json:"stale,omitzero"`    // it runs, but does not read or write
	Farewell   bool              `json:"farewell,omitzero"` // its run has announced its end to GO
	Ended      bool              `json:"ended,omitzero"`    // the run has ended
	Past       []string          `json:"past,omitzero"`     // the latest runs that have ended, oldest first
	Wrecked    bool              `json:"wrecked,omitzero"`  // its last run ended with an error
	Returns    bool              `json:"returns,omitzero"`  // it runs, or will run without a request
	Given      int64             `json:"given,omitzero"`    // number of the record that gave it its latest task
	Grants     access.Grants     `json:"grants,omitzero"`
	Usage      activity.Used     `json:"usage,omitzero"`
	Late       []*AnsweredByMail `json:"late,omitzero"`       // answers for its next run
	Limited    time.Time         `json:"limited,omitzero"`    // it gets no task until then; zero: it is not limited
	LimitedBy  string            `json:"limited_by,omitzero"` // why, as it reported
}

// An agentState is the state of an agent's process.
type AgentState string

const (
	offline  AgentState = "offline"
	crashed  AgentState = "crashed"
	Starting AgentState = "starting"
	Up       AgentState = "up"
	Leaving  AgentState = "stopping"
)

// Takes reports whether a task can be assigned to the agent.
func (a *KnownAgent) Takes() bool {
	return a.State == Up && !a.Stale && a.Limited.IsZero() && len(a.Holds) < a.Capacity
}

// Hears reports whether the agent is notified of a task that is assigned to it.
func (a *KnownAgent) Hears() bool { return !a.Unreachable && !a.Deaf || a.Remote != nil }

// Online reports whether the agent has a process, or is a server that is online.
func (a *KnownAgent) Online() bool { return a.State == Up || a.State == Leaving }

// Alive reports whether a run of the agent has begun and not ended. Its output may still arrive.
func (a *KnownAgent) Alive() bool { return a.Run != "" && !a.Ended }

// Runs reports whether a run is the current or the latest one. Late events of an earlier run do
// not affect the next.
func (a *KnownAgent) Runs(run string) bool { return run == a.Run || run == "" }

// Offers reports whether the agent has a role and some capabilities.
func (a *KnownAgent) Offers(role string, capabilities []string) bool {
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

// Status returns the status that other agents see.
func (a *KnownAgent) Status() string {
	switch {
	case a.State != Up:
		return string(a.State)
	case a.Stale, a.Unreachable:
		return "stale"
	case len(a.Holds) > 0, !a.Limited.IsZero():
		return "busy"
	}
	return "idle"
}

// Shown returns the agent as other agents see it.
func (a *KnownAgent) Shown() wire.Agent {
	shown := wire.Agent{ID: a.ID, Role: a.Role, Status: a.Status(), Capabilities: a.Capabilities, TakesNoTasks: a.Capacity == 0}
	if len(a.Holds) > 0 {
		shown.CurrentTask = a.Holds[0].View.ID
	}
	return shown
}

// AgentKnown records that there is an agent, or that it has changed.
type AgentKnown struct{ wire.Member }

func (*AgentKnown) kind() string { return events.AgentKnown }

func (ak *AgentKnown) apply(s *State, r *wire.Record) {
	a := s.Agents.ByID[ak.ID]
	if a == nil {
		a = NewAgent(ak.ID)
		s.Meet(a)
	}
	if ak.Manual != a.Manual && !a.Alive() {
		a.Returns = !ak.Manual
	}
	s.Tasks.Queue.removeIdle(a)
	if a.Remote != nil { // a configured agent has taken its name
		s.Agents.unhear(a)
		s.Access.RemoveAll(access.Key, a.ID)
		a.Remote, a.System, a.State = nil, nil, offline
		s.detach(a)
	}
	a.Member, a.Configured, a.Said = ak.Member, ak.Member, nil
	s.attachAgent(a, r.Seq)
	for _, w := range s.Sessions.WorksOf(ak.ID) { // whether it polls for its messages may have changed
		s.WatchWork(w)
	}
	s.IndexCapabilities(a, hub.ReadCapabilities(ak.Abilities))
	s.AddIdle(a)
	s.Tasks.Required.markChanged(a)
	s.Delegations.RecheckCapacity(a)
	s.sendKeptResponses(a) // it may be able to receive messages now
}

// IndexCapabilities adds the capabilities of an agent to the index.
func (s *State) IndexCapabilities(a *KnownAgent, c *hub.Capabilities) {
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
	a.Under = under.Texts
	s.Agents.Index.Put(a.ID, offer, match.Standing{})
	s.updateStanding(a)
}

// AgentCapable records the capabilities that an agent reports, and its machine.
type AgentCapable struct {
	Agent        string      `json:"agent"`
	Capabilities wire.Raw    `json:"capabilities,omitzero"`
	System       wire.Raw    `json:"system,omitzero"`
	Request      *RequestKey `json:"request,omitzero"`
}

func (*AgentCapable) kind() string { return events.AgentCapable }

func (ac *AgentCapable) apply(s *State, r *wire.Record) {
	a := s.Agents.ByID[ac.Agent]
	if ac.System != nil {
		a.noteSystem(ac.System)
	}
	if c := hub.ReadCapabilities(ac.Capabilities); c != nil {
		s.Tasks.Queue.removeIdle(a)
		a.SetCapabilities(c)
		s.IndexCapabilities(a, a.Said)
		s.AddIdle(a)
		s.Tasks.Required.markChanged(a)
		s.Delegations.RecheckCapacity(a)
	}
	s.saveReply(AgentOf(r.From), ac.Request, s.Server(a), nil)
}

// SetCapabilities replaces the configured capabilities of an agent with the reported ones. The
// Names are kept, since a report does not contain them.
func (a *KnownAgent) SetCapabilities(c *hub.Capabilities) {
	a.Said, a.Capacity = c, c.Capacity
	var all queue.Set
	for _, texts := range [][]string{a.Names, c.Languages, c.Tools, c.Tags} {
		for _, text := range texts {
			all.Add(text)
		}
	}
	a.Capabilities = all.Texts
}

// MayOffer limits reported capabilities to the configured ones if those are fixed. An oddity then
// names the rest.
func (a *KnownAgent) MayOffer(c *hub.Capabilities) *hub.Capabilities {
	if c == nil || !a.Fixed {
		return c
	}
	most := hub.ReadCapabilities(a.Configured.Abilities)
	if most == nil {
		most = new(hub.Capabilities)
	}
	most.Capacity = a.Configured.Capacity
	return c.Within(most)
}

// noteSystem stores the report of an agent about its machine. Members that it leaves out are kept.
// For a server, it also updates the members of its registration.
func (a *KnownAgent) noteSystem(said wire.Raw) {
	a.System = object.Merge(a.System, said)
	if a.Remote == nil {
		return
	}
	for key, text := range map[string]*string{"hostname": &a.Remote.Hostname, "ip": &a.Remote.Ip, "os": &a.Remote.Os} {
		if value, ok := object.TextOf(said, key); ok {
			*text = value
		}
	}
	if repos := object.MemberOf(said, "repos"); repos != nil && repos[0] == '{' {
		a.Remote.Repos = repos
	}
}

func NewAgent(name string) *KnownAgent {
	return &KnownAgent{
		Member: wire.Member{ID: name}, StoredAgent: StoredAgent{State: offline, Returns: true}, ActorID: AgentPrefix + name, ServerID: hub.ServerID(name),
	}
}

// Meet adds an agent.
func (s *State) Meet(a *KnownAgent) {
	s.Agents.met++
	a.number = s.Agents.met
	s.Agents.ByID[a.ID] = a
	s.Agents.Order = append(s.Agents.Order, a)
	for _, t := range s.Tasks.Owned[a.ActorID] { // an agent of that name was here before
		if t.View.SubmittedBy != a.ActorID || t.View.State.Final() {
			continue
		}
		a.submitted++
		if t.Delegation() != nil {
			s.Agents.HandsOn(t, +1)
		}
	}
}

// AgentForgotten records that an agent no longer exists. The tasks that it submitted stay.
type AgentForgotten struct {
	ID string `json:"id"`
}

func (*AgentForgotten) kind() string { return events.AgentForgotten }

func (f *AgentForgotten) apply(s *State, _ *wire.Record) {
	a := s.Agents.ByID[f.ID]
	for _, d := range slices.Clone(a.Owed) {
		s.dropKeptResponse(d) // no agent is left to receive it
	}
	s.Tasks.Queue.removeIdle(a)
	s.Agents.Limited.Drop(Parked{a})
	s.Agents.unhear(a)
	s.detach(a)
	for _, m := range s.Sessions.Seats[f.ID] {
		m.Outbox = slices.DeleteFunc(m.Outbox, (*OutboxItem).told)
	}
	delete(s.Agents.ByID, f.ID)
	s.Agents.Index.Remove(f.ID)
	s.Agents.Order = slices.DeleteFunc(s.Agents.Order, func(o *KnownAgent) bool { return o == a })
}

// AgentInterrupted records that a person has interrupted an agent.
type AgentInterrupted struct {
	Agent   string `json:"agent"`
	Task    string `json:"task,omitzero"`
	Message string `json:"message,omitzero"`
}

func (*AgentInterrupted) kind() string { return events.AgentInterrupted }

func (*AgentInterrupted) apply(*State, *wire.Record) {}

func (ai *AgentInterrupted) tell(e *wire.Event) {
	e.Agent, e.Task, e.Text = ai.Agent, ai.Task, "was interrupted"
	if ai.Message != "" {
		e.Text += ": " + ai.Message
	}
}

// RolesWithout returns the roles of the team, or nil if role is one of them: a role of every team,
// or the role of an agent.
func (as *agents) RolesWithout(role string) []string {
	if role == "" || slices.Contains(wire.Roles, role) {
		return nil
	}
	roles := slices.Clone(wire.Roles)
	for _, a := range as.Order {
		if a.Role == role {
			return nil
		}
		if !slices.Contains(roles, a.Role) {
			roles = append(roles, a.Role)
		}
	}
	return roles
}
