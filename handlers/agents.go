package handlers

import (
	"fmt"
	"slices"

	"orchestrator/wire"
)

// agent is an agent as the State knows it.
type agent struct {
	wire.Member
	actor    string // as the log has it
	state    agentState
	run      string
	stale    bool // it runs, but takes or says nothing
	deaf     bool // it takes no messages for now
	holds    []*task
	number   int64 // in the order in which agents became known
	given    int64 // number of the record that gave it its latest task
	offered  bool  // it is among those that are free
	memories memories
}

// agentState is what its process does, as far as it matters here.
type agentState string

const (
	offline  agentState = "offline"
	crashed  agentState = "crashed"
	starting agentState = "starting"
	up       agentState = "up"
	leaving  agentState = "stopping"
)

// takes says whether an agent can be given a task.
func (a *agent) takes() bool {
	return a.state == up && !a.stale && !a.deaf && !a.Deaf && len(a.holds) < a.Capacity
}

// runs says whether a run is the present one, or the latest. What is noticed of
// one run, and told late, says nothing about the next.
func (a *agent) runs(run string) bool { return run == a.run || run == "" }

// offers says whether an agent has what is asked for.
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

// status is what other agents are told that it does.
func (a *agent) status() string {
	switch {
	case a.state != up:
		return string(a.state)
	case a.stale, a.deaf:
		return "stale"
	case len(a.holds) > 0:
		return "busy"
	}
	return "idle"
}

func queryAgents(t *turn, q *wire.QueryAgents) (*wire.AgentList, *wire.Error) {
	wanted := func(a *agent) bool {
		return (q.Status == "" || q.Status == a.status()) && a.offers(q.Role, q.Capabilities)
	}
	n := 0
	for _, a := range t.order {
		if wanted(a) {
			n++
		}
	}
	answer := &wire.AgentList{Agents: make([]wire.Agent, 0, n)}
	for _, a := range t.order {
		if wanted(a) {
			answer.Agents = append(answer.Agents, a.seen())
		}
	}
	return answer, nil
}

// seen is an agent as other agents see it.
func (a *agent) seen() wire.Agent {
	seen := wire.Agent{ID: a.ID, Role: a.Role, Status: a.status(), Capabilities: a.Capabilities}
	if len(a.holds) > 0 {
		seen.CurrentTask = a.holds[0].view.ID
	}
	return seen
}

// agentKnown says that there is an agent, or that it has changed.
type agentKnown struct{ wire.Member }

func (*agentKnown) kind() string { return wire.EventAgentKnown }

func (f *agentKnown) apply(s *State, _ *wire.Record) {
	a := s.agents[f.ID]
	if a == nil {
		a = &agent{state: offline, actor: agentPrefix + f.ID}
		a.ID = f.ID
		s.meet(a)
	}
	s.market.withdraw(a)
	a.Member = f.Member
	s.market.offer(a)
}

// meet takes in an agent that was not known.
func (s *State) meet(a *agent) {
	s.met++
	a.number = s.met
	s.agents[a.ID] = a
	s.order = append(s.order, a)
}

// agentForgotten says that an agent is no longer there. What it has submitted
// stays.
type agentForgotten struct {
	ID string `json:"id"`
}

func (*agentForgotten) kind() string { return wire.EventAgentForgotten }

func (f *agentForgotten) apply(s *State, _ *wire.Record) {
	a := s.agents[f.ID]
	s.market.withdraw(a)
	delete(s.agents, f.ID)
	s.order = slices.DeleteFunc(s.order, func(o *agent) bool { return o == a })
}

// enlist takes on the agents of the configuration: those that are new, have
// changed, or are gone.
func (t *turn) enlist(r *wire.Roster) {
	there := make(map[string]bool, len(r.Agents))
	for _, m := range r.Agents {
		there[m.ID] = true
		if a := t.agents[m.ID]; a == nil || !same(a.Member, m) {
			t.fact(agentPrefix+m.ID, "", &agentKnown{m})
		}
	}
	for _, a := range slices.Clone(t.order) {
		if there[a.ID] {
			continue
		}
		for _, k := range slices.Clone(a.holds) {
			t.requeue(k, &taskRequeued{Why: "its agent is no longer one of the agents"})
		}
		t.fact(a.actor, "", &agentForgotten{ID: a.ID})
	}
}

func same(a, b wire.Member) bool {
	return a.Role == b.Role && a.Capacity == b.Capacity && a.OnExit == b.OnExit && a.Deaf == b.Deaf &&
		slices.Equal(a.Capabilities, b.Capabilities)
}

// requeue lets a task wait for another agent.
func (t *turn) requeue(k *task, f *taskRequeued) {
	f.ID, f.Name, f.Agent = k.view.ID, k.view.Name, k.view.AssignedTo
	t.fact("", k.view.ID, f)
}

// told notes that an agent has been told of its task, which starts it, or that
// it could not be told, which frees it.
func (t *turn) told(m *wire.Told) {
	k := t.tasks[m.Task]
	if k == nil || k.view.State != wire.TaskAssigned || k.view.AssignedTo != m.Agent || k.run != m.Run {
		return // it was faster, or is gone
	}
	if m.Lost {
		t.requeue(k, &taskRequeued{Why: "its agent takes no messages", Deaf: true})
		return
	}
	t.start(k, nil)
}

// poison is how many agents may die with a task in their hands.
const poison = 2

// bereave decides about a task whose agent has ended. An agent that was told to
// stop is not to blame, and neither is its task.
func (t *turn) bereave(k *task, a *agent, how string, code int, ordered bool) {
	switch {
	case k.view.State == wire.TaskAssigned:
		t.requeue(k, &taskRequeued{Why: "its agent ended before it was told"})
	case a.OnExit == "fail", !ordered && a.OnExit != "requeue" && code != 0:
		t.fail(k, fmt.Sprintf("agent %s ended while it had the task: %s", a.ID, how), "", nil)
	case ordered:
		t.requeue(k, &taskRequeued{Why: "its agent was stopped"})
	case a.OnExit != "requeue":
		t.complete(k, succeeded, nil)
	case k.deaths+1 >= poison:
		t.fail(k, fmt.Sprintf("poison: %d agents ended with it in their hands, the last one with %s", k.deaths+1, how), "", nil)
	default:
		t.requeue(k, &taskRequeued{Why: "its agent ended: " + how, Death: true})
	}
}
