package handlers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// TestGivenInOrder compares assignments and their order with a plain form of the rules. Of all
// pairs that fit, the task with the highest priority comes first, then the oldest. It goes to
// the agent with the fewest tasks, then the longest wait, then the first known.
//
// Rows: B-47, B-48, B-50, B-56, T-61.
func TestGivenInOrder(t *testing.T) {
	count, seeds := 0, rounds(60)
	for seed := range uint64(seeds) {
		p := newPlayer(t)
		chance := rand.New(rand.NewPCG(seed, 0))
		crowd(p, chance)
		for range 60 {
			before := handsOf(p.state)
			given := stir(p, chance)
			require.Equal(t, before.expect(p.state, given), given, "seed %d", seed)
			requireSound(t, p.state)
			count += len(given)
		}
	}
	require.Greater(t, count, 8*seeds)
}

// crowd adds agents of many kinds.
func crowd(p *player, chance *rand.Rand) {
	roster := &wire.AgentSet{}
	for i := range 8 {
		m := wire.Member{ID: fmt.Sprintf("a%d", i), Role: wire.Roles[chance.IntN(2)], Capacity: 1 + chance.IntN(2), OnExit: "requeue"}
		m.Capabilities = skills[:chance.IntN(3)]
		roster.Agents = append(roster.Agents, m)
	}
	p.do(Actor{}, roster)
	p.do(Actor{}, &wire.Event{Kind: events.OrchestratorStarted})
}

// stir makes something happen that causes assignments, and returns them: task and agent, in
// order.
func stir(p *player, chance *rand.Rand) (given []string) {
	a := p.state.agents.order[chance.IntN(len(p.state.agents.order))]
	var out Outcome
	switch {
	case a.state != up && chance.IntN(3) == 0:
		out = p.do(Actor{}, &wire.Event{Kind: events.AgentStarted, Agent: a.ID, Run: fmt.Sprint(p.chance)})
	case len(a.holds) > 0 && chance.IntN(3) > 0:
		out = p.do(Actor{Kind: Operator}, &wire.Request{ID: "1", Operation: "complete-task", Body: &wire.CompleteTask{TaskID: a.holds[0].view.ID}})
	case a.state == up && chance.IntN(10) == 0:
		out = p.do(Actor{}, &wire.Event{Kind: events.AgentEnded, Agent: a.ID, Run: a.run})
	default:
		body := &wire.SubmitTask{Type: "t", Name: fmt.Sprint(p.chance), RequiredRole: wire.Roles[chance.IntN(2)], Priority: wire.Raw(fmt.Sprint(1 + chance.IntN(4)))}
		body.RequiredCapabilities = slices.Clone(skills[:chance.IntN(3)])
		slices.Reverse(body.RequiredCapabilities)
		out = p.do(Actor{Kind: Agent, Name: a.ID, Run: a.run}, &wire.Request{ID: fmt.Sprint(p.chance), Operation: "submit-task", Body: body, Sum: uint64(p.chance)})
	}
	for _, r := range out.Records {
		if r.Kind == events.TaskAssigned {
			name, _ := object.TextOf(r.Payload, "agent")
			given = append(given, r.Correlation+" "+agentPrefix+name)
		}
	}
	return given
}

// hands holds the tasks of agents, and when each agent was last assigned one.
type hands map[string]*hand

type hand struct {
	holds int
	given int64
}

func handsOf(s *State) hands {
	h := make(hands)
	for _, a := range s.agents.order {
		h[a.actor] = &hand{holds: len(a.holds), given: a.given}
	}
	return h
}

// expect returns the order in which the tasks should have been assigned. It uses what agents
// have now, without these tasks.
func (h hands) expect(now *State, given []string) (expected []string) {
	var tasks []*task // that waited before the assignments
	for _, k := range now.tasks.list {
		if k.demand != nil || slices.ContainsFunc(given, func(g string) bool { return g[:36] == k.view.ID }) {
			tasks = append(tasks, k)
		}
	}
	for _, a := range now.agents.order {
		h[a.actor].holds = len(a.holds)
	}
	for _, g := range given {
		h[g[37:]].holds--
	}
	slices.SortFunc(tasks, func(a, b *task) int {
		if queue.Before(a, b) {
			return -1
		}
		return 1
	})
	for i, n := 0, int64(1<<40); i < len(tasks); i++ {
		var best *agent
		for _, a := range now.agents.order {
			fits := a.state == up && h[a.actor].holds < a.Capacity && a.actor != tasks[i].view.SubmittedBy &&
				a.offers(tasks[i].view.RequiredRole, tasks[i].view.RequiredCapabilities)
			if fits && (best == nil || h.morePatient(a, best)) {
				best = a
			}
		}
		if best != nil {
			n++
			expected = append(expected, tasks[i].view.ID+" "+best.actor)
			h[best.actor].holds, h[best.actor].given = h[best.actor].holds+1, n
		}
	}
	return expected
}

func (h hands) morePatient(a, than *agent) bool {
	x, y := h[a.actor], h[than.actor]
	if x.holds != y.holds {
		return x.holds < y.holds
	}
	return x.given < y.given
}

// TestDemandsAreForgotten checks that only demands of waiting tasks are kept, and some more,
// however many different ones there were.
func TestDemandsAreForgotten(t *testing.T) {
	p := atWork(t)
	submit := func(i int) {
		p.do(p.actor("planner"), &wire.Request{ID: fmt.Sprint(i), Operation: "submit-task", Sum: uint64(i),
			Body: &wire.SubmitTask{Type: "t", Name: "n", RequiredCapabilities: []string{fmt.Sprintf("c%d", i)}}})
	}
	for i := range 2 * spareDemands {
		submit(i)
	}
	require.Equal(t, 2*spareDemands, p.state.tasks.queue.waiting.Len())
	requireSound(t, p.state)
	for _, k := range p.state.tasks.list {
		p.do(Actor{Kind: Operator}, &wire.Request{Operation: "cancel-task", Body: &wire.CancelTask{TaskID: k.view.ID}})
	}
	for range p.state.tasks.queue.waiting.Buckets() {
		require.Fail(t, "a bucket is not empty")
	}
	require.LessOrEqual(t, p.state.tasks.queue.waiting.Len(), spareDemands)
	requireSound(t, p.state)
}
