package handlers

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/queue"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
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

// stir causes assignments, and returns them: task and agent, in order.
func stir(p *player, chance *rand.Rand) (given []string) {
	a := p.state.Agents.Order[chance.IntN(len(p.state.Agents.Order))]
	var out Outcome
	switch {
	case a.State != state.Up && chance.IntN(3) == 0:
		out = p.do(Actor{}, &wire.Event{Kind: events.AgentStarted, Agent: a.ID, Run: fmt.Sprint(p.chance)})
	case len(a.Holds) > 0 && chance.IntN(3) > 0:
		out = p.do(Actor{Kind: Operator}, &wire.Request{ID: "1", Operation: "complete-task", Body: &wire.CompleteTask{TaskID: a.Holds[0].View.ID}})
	case a.State == state.Up && chance.IntN(10) == 0:
		out = p.do(Actor{}, &wire.Event{Kind: events.AgentEnded, Agent: a.ID, Run: a.Run})
	default:
		body := &wire.SubmitTask{Type: "t", Name: fmt.Sprint(p.chance), RequiredRole: wire.Roles[chance.IntN(2)], Priority: wire.Raw(fmt.Sprint(1 + chance.IntN(4)))}
		body.RequiredCapabilities = slices.Clone(skills[:chance.IntN(3)])
		slices.Reverse(body.RequiredCapabilities)
		out = p.do(Actor{Kind: Agent, Name: a.ID, Run: a.Run}, &wire.Request{ID: fmt.Sprint(p.chance), Operation: "submit-task", Body: body, Sum: uint64(p.chance)})
	}
	for _, r := range out.Records {
		if r.Kind == events.TaskAssigned {
			name, _ := object.TextOf(r.Payload, "agent")
			given = append(given, r.Correlation+" "+state.AgentPrefix+name)
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
	for _, a := range s.Agents.Order {
		h[a.ActorID] = &hand{holds: len(a.Holds), given: a.Given}
	}
	return h
}

// expect returns the expected order of assignment of the tasks. It uses the present tasks of
// agents, without these tasks.
func (h hands) expect(now *State, given []string) (expected []string) {
	var tasks []*state.Task // that waited before the assignments
	for _, k := range now.Tasks.List {
		if k.Demand != nil || slices.ContainsFunc(given, func(g string) bool { return g[:36] == k.View.ID }) {
			tasks = append(tasks, k)
		}
	}
	for _, a := range now.Agents.Order {
		h[a.ActorID].holds = len(a.Holds)
	}
	for _, g := range given {
		h[g[37:]].holds--
	}
	slices.SortFunc(tasks, func(a, b *state.Task) int {
		if queue.Before(a, b) {
			return -1
		}
		return 1
	})
	for i, n := 0, int64(1<<40); i < len(tasks); i++ {
		var best *state.KnownAgent
		for _, a := range now.Agents.Order {
			fits := a.State == state.Up && h[a.ActorID].holds < a.Capacity && a.ActorID != tasks[i].View.SubmittedBy &&
				a.Offers(tasks[i].View.RequiredRole, tasks[i].View.RequiredCapabilities)
			if fits && (best == nil || h.morePatient(a, best)) {
				best = a
			}
		}
		if best != nil {
			n++
			expected = append(expected, tasks[i].View.ID+" "+best.ActorID)
			h[best.ActorID].holds, h[best.ActorID].given = h[best.ActorID].holds+1, n
		}
	}
	return expected
}

func (h hands) morePatient(a, than *state.KnownAgent) bool {
	x, y := h[a.ActorID], h[than.ActorID]
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
	for i := range 2 * state.SpareDemands {
		submit(i)
	}
	require.Equal(t, 2*state.SpareDemands, p.state.Tasks.Queue.Waiting.Len())
	requireSound(t, p.state)
	for _, k := range p.state.Tasks.List {
		p.do(Actor{Kind: Operator}, &wire.Request{Operation: "cancel-task", Body: &wire.CancelTask{TaskID: k.View.ID}})
	}
	for range p.state.Tasks.Queue.Waiting.Buckets() {
		require.Fail(t, "a bucket is not empty")
	}
	require.LessOrEqual(t, p.state.Tasks.Queue.Waiting.Len(), state.SpareDemands)
	requireSound(t, p.state)
}

// multitude is the number of tasks in tests with many tasks.
var multitude = rounds(100_000)

// crowded is a State with many tasks.
type crowded struct {
	t       *testing.T
	state   *State
	asked   int
	records []wire.Record
}

func newCrowded(t *testing.T, rules Rules) *crowded {
	c := &crowded{t: t, state: New(rules)}
	c.do(Actor{}, &wire.AgentSet{Agents: []wire.Member{{ID: "a", Role: wire.RoleWorker, Capacity: 2, OnExit: "requeue", Abilities: wire.Raw(`{"languages":["go"],"max_concurrent_tasks":2}`)}}})
	c.do(Actor{}, &wire.Event{Kind: events.OrchestratorStarted})
	c.do(Actor{}, &wire.Event{Kind: events.AgentStarted, Agent: "a", Run: "a.1"})
	return c
}

func (c *crowded) do(from Actor, m wire.Message) Outcome {
	c.asked++
	in := Input{At: beginning, From: from, Message: m}
	binary.BigEndian.PutUint32(in.Random[:], uint32(c.asked))
	out := c.state.Handle(in)
	require.NoError(c.t, out.Fault)
	require.Nil(c.t, out.Refused)
	c.records = append(c.records, out.Records...)
	return out
}

func (c *crowded) ask(operation string, body any) Outcome {
	return c.do(Actor{Kind: Operator}, &wire.Request{ID: fmt.Sprint(c.asked), Operation: operation, Body: body})
}

// submit submits a task and returns its id.
func (c *crowded) submit(needs ...hub.Dependency) string {
	c.ask("submit-task", &wire.SubmitTask{Type: "t", Name: "n", Dependencies: needs})
	return c.last()
}

func (c *crowded) last() string { return c.state.Tasks.List[len(c.state.Tasks.List)-1].View.ID }

// finish has the agent start a task and complete it.
func (c *crowded) finish(id string) Outcome {
	c.ask("assign-task", &wire.AssignTask{TaskID: id, Agent: "a"})
	c.do(Actor{Kind: Agent, Name: "a", Run: "a.1"}, &wire.Request{ID: "s" + id, Operation: "start-task", Body: &wire.TaskID{TaskID: id}})
	return c.ask("complete-task", &wire.CompleteTask{TaskID: id})
}

// requireReplay requires that the records so far give an equal State.
func (c *crowded) requireReplay() {
	again := New(c.state.Rules)
	for _, r := range c.records {
		require.NoError(c.t, again.Apply(nil, r))
	}
	require.Equal(c.t, c.state.Counts(), again.Counts())
	last := c.state.Tasks.List[len(c.state.Tasks.List)-1].Snapshot()
	require.Equal(c.t, last, again.Tasks.List[len(again.Tasks.List)-1].Snapshot())
}

// TestFanOut checks that one end resolves very many waiting tasks, each once and in order of
// priority. The end is announced once.
//
// Rows, T-21.
func TestFanOut(t *testing.T) {
	c := newCrowded(t, Rules{})
	up := c.submit()
	wants := &hub.Requirements{Document: wire.Raw(`{"languages":["go"]}`), Languages: []string{"go"}}
	for i := range multitude {
		down := &wire.SubmitTask{Type: "t", Name: "n", Dependencies: hub.After(up)}
		switch i % 4 {
		case 0:
			down.RequiredRole = wire.RoleWorker
		case 1:
			down.Requirements = wants
		case 2:
			down.Priority = wire.Raw("1")
		}
		c.ask("submit-task", down)
	}
	require.Equal(t, multitude, c.state.Counts().Blocked)
	seen := make(map[string]int)
	for _, r := range c.finish(up).Records {
		seen[r.Kind]++
	}
	require.Equal(t, map[string]int{
		events.TaskDone: 1, events.DependencyResolved: (multitude + maxResolved - 1) / maxResolved, events.TaskUnblocked: multitude,
		events.TaskAssigned: (multitude + 3) / 4, events.TaskAnnounced: 1,
	}, seen)
	require.Zero(t, c.state.Counts().Blocked)
	c.requireReplay()
}

// TestChainComesToNothing checks that the end of a task cancels all tasks that depend on it,
// directly or not, however long the chain is. Each is cancelled once.
//
// Rows: K-04, T-44.
func TestChainComesToNothing(t *testing.T) {
	c := newCrowded(t, Rules{OnDependencyFailure: "cancel"})
	first := c.submit()
	last := first
	for range multitude - 1 {
		last = c.submit(hub.After(first, last)...)
	}
	out := c.ask("cancel-task", &wire.CancelTask{TaskID: first, Reason: "enough"})
	require.Len(t, out.Records, multitude)
	require.Equal(t, multitude, c.state.Counts().Cancelled)
	require.Equal(t, wire.DependencyFailed, c.state.Tasks.ByID[last].View.Reason)
	c.requireReplay()
}

// TestFanIn checks that a task with very many dependencies is shown with all of them, each once.
// It continues when the last one is done.
//
// Rows.
func TestFanIn(t *testing.T) {
	c := newCrowded(t, Rules{})
	var needs []hub.Dependency
	many := multitude / 5
	for range many {
		id := c.submit()
		needs = append(needs, hub.Dependency{On: id, Type: hub.DependsBlocks}, hub.Dependency{On: id, Type: hub.DependsInput, Contract: "k" + id})
	}
	down := c.submit(needs...)
	show := func() wire.Task {
		out := c.ask("get-task", &wire.TaskID{TaskID: down})
		return out.Letters[0].Payload.(*wire.TaskReply).Task
	}
	shown := show()
	require.Len(t, shown.Links, 2*many)
	require.Len(t, shown.Dependencies, many)
	require.Len(t, shown.WaitsFor, many)
	for _, d := range needs[:len(needs)-1] {
		if d.Type == hub.DependsBlocks {
			c.finish(d.On)
		}
	}
	require.Empty(t, show().WaitsFor)
	require.Zero(t, c.state.Tasks.Graph.Open(c.state.Tasks.ByID[down].Node))
}

// TestManyContracts checks that a result with very many contracts hands each one to the task
// that depends on all of them.
//
// Rows.
func TestManyContracts(t *testing.T) {
	c := newCrowded(t, Rules{KeepFinished: 1})
	up := c.submit()
	var needs []hub.Dependency
	document := []byte(`{"$schema":"orchestratia/task-result/v1","summary":"s","contracts":{`)
	for i := range multitude {
		needs = append(needs, hub.Dependency{On: up, Type: hub.DependsInput, Contract: fmt.Sprint("k", i)})
		document = fmt.Appendf(document, `"k%d":{"status":"fulfilled","data":{"i":%d}},`, i, i)
	}
	document = append(document[:len(document)-1], "}}"...)
	down := c.submit(needs...)
	c.ask("assign-task", &wire.AssignTask{TaskID: up, Agent: "a"})
	c.do(Actor{Kind: Agent, Name: "a", Run: "a.1"}, &wire.Request{ID: "s", Operation: "start-task", Body: &wire.TaskID{TaskID: up}})
	c.ask("complete-task", &wire.CompleteTask{TaskID: up, Result: hub.ReadResult(document)})
	l := c.ask("get-task", &wire.TaskID{TaskID: down}).Letters[0]
	require.Len(t, l.Pages, 1)
	require.Len(t, l.Pages[0].Inputs, multitude, "they are too many to be kept here")
	reads := 0
	whole, err := state.Complete(l.Payload, l.Pages, read(func(seq int64) (wire.Record, error) {
		reads++
		return c.records[seq-1], nil
	}))
	require.NoError(t, err)
	require.LessOrEqual(t, reads, 2)
	inputs := whole.(*wire.TaskReply).Task.ResolvedInputs
	require.Len(t, inputs, multitude)
	last := multitude - 1
	require.JSONEq(t, fmt.Sprintf(`{"i":%d}`, last), string(inputs[last].Data))
}

// TestManyAbilities checks that an agent may advertise very many capabilities.
//
// Rows.
func TestManyAbilities(t *testing.T) {
	c := newCrowded(t, Rules{})
	able := &hub.Capabilities{Document: wire.Raw(`{"languages":["l77777"]}`), Capacity: 1}
	for i := range multitude {
		able.Languages = append(able.Languages, fmt.Sprint("l", i), fmt.Sprint("l", i/2))
	}
	c.state.Agents.ByID["a"].SetCapabilities(able)
	require.Len(t, c.state.Agents.ByID["a"].Capabilities, multitude)
	c.state.IndexCapabilities(c.state.Agents.ByID["a"], able)
	require.Len(t, c.state.Agents.ByID["a"].Under, multitude)
}
