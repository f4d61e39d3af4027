package handlers

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

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

func (c *crowded) last() string { return c.state.tasks.list[len(c.state.tasks.list)-1].view.ID }

// finish has the agent start a task and complete it.
func (c *crowded) finish(id string) Outcome {
	c.ask("assign-task", &wire.AssignTask{TaskID: id, Agent: "a"})
	c.do(Actor{Kind: Agent, Name: "a", Run: "a.1"}, &wire.Request{ID: "s" + id, Operation: "start-task", Body: &wire.TaskID{TaskID: id}})
	return c.ask("complete-task", &wire.CompleteTask{TaskID: id})
}

// requireReplay requires that the records so far give an equal State.
func (c *crowded) requireReplay() {
	again := New(c.state.rules)
	for _, r := range c.records {
		require.NoError(c.t, again.Apply(r))
	}
	require.Equal(c.t, c.state.Counts(), again.Counts())
	last := c.state.tasks.list[len(c.state.tasks.list)-1].snapshot()
	require.Equal(c.t, last, again.tasks.list[len(again.tasks.list)-1].snapshot())
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
			down.Requirements, down.Details.Requirements = wants, wants.Document
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
	require.Equal(t, wire.DependencyFailed, c.state.tasks.byID[last].view.Reason)
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
	require.Zero(t, c.state.tasks.graph.Open(c.state.tasks.byID[down].node))
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
	whole, err := Complete(l.Payload, l.Pages, read(func(seq int64) (wire.Record, error) {
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
	c.state.agents.byID["a"].setCapabilities(able)
	require.Len(t, c.state.agents.byID["a"].Capabilities, multitude)
	c.state.indexCapabilities(c.state.agents.byID["a"], able)
	require.Len(t, c.state.agents.byID["a"].under, multitude)
}

// TestDistinct checks that each text is kept once, at its first place, for few texts and for
// many.
func TestDistinct(t *testing.T) {
	for _, size := range []int{0, 1, few - 1, few, few + 1, 10 * few} {
		var d orderedSet
		var expected []string
		for i := range size {
			expected = append(expected, fmt.Sprint(i))
			for range 3 {
				d.add(fmt.Sprint(i))
				d.add(fmt.Sprint(i / 2))
			}
		}
		require.Equal(t, expected, d.texts)
	}
}
