package handlers

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/graph"
	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
)

// requireSoundTasks requires that every task is counted once, waits for open tasks only, and is
// listed by its owners.
func requireSoundTasks(t testing.TB, s *State) {
	counts := make(map[wire.TaskState]int)
	for _, k := range s.tasks.list {
		counts[k.view.State]++
		open := 0
		for e := range s.tasks.graph.Needs(k.node) {
			v := s.tasks.graph.Edge(e)
			up := s.tasks.list[v.Up].view.State
			if gates(v.Kind) && up != wire.TaskDone {
				open++
			}
			if v.Resolved != (v.Kind == graph.Related || up == wire.TaskDone || v.Kind == graph.Soft && up.Final()) {
				require.Fail(t, "a dependency is not sound", "%+v while the other is %s", v, up)
			}
		}
		if k.view.State == wire.TaskPending && open > 0 {
			counts[blocked]++
		}
		begun := k.busy() || k.view.State == wire.TaskNeedsHuman || k.view.State == wire.TaskDone
		sound := s.tasks.graph.Open(k.node) == open && (open == 0 || !begun) && k.view.Status == k.view.State.Status() &&
			(k.view.EndedAt != "") == k.view.State.Final()
		if !sound { // a require call for each of many is slow
			require.Fail(t, "a task is not sound", "%d of what it depends on are not done: %+v", open, k)
		}
	}
	for state, n := range s.tasks.counts {
		require.Equal(t, counts[state], n, "tasks that are %s", state)
	}
	require.LessOrEqual(t, len(s.tasks.finished), s.rules.KeepFinished)
	for actor, mine := range s.tasks.owned {
		require.True(t, slices.IsSortedFunc(mine, func(a, b *task) int { return int(a.created - b.created) }))
		for _, k := range mine {
			if k.view.SubmittedBy != actor && k.view.AssignedTo != agentOf(actor) {
				require.Fail(t, "an actor sees another's task", "%s sees %s", actor, k.view.ID)
			}
		}
	}
}

// requireSoundAgents requires that an assigned task is held by one agent, and that no other task
// is held.
func requireSoundAgents(t testing.TB, s *State) {
	holders := make(map[*task]*agent)
	for _, a := range s.agents.order {
		require.Same(t, a, s.agents.byID[a.ID])
		for _, k := range a.holds {
			require.Nil(t, holders[k], "%s is held twice", k.view.ID)
			holders[k] = a
			require.Equal(t, a.ID, k.view.AssignedTo)
			require.Contains(t, s.tasks.owned[a.actor], k)
		}
		require.LessOrEqual(t, len(a.memories.ring), remembers)
	}
	for _, k := range s.tasks.list {
		if held := k.view.State != wire.TaskPending && !k.view.State.Final(); held != (holders[k] != nil) {
			require.Fail(t, "a task is in hand, and is not", "%s is %s", k.view.ID, k.view.State)
		}
	}
}

// requireSoundMarket requires that exactly the assignable tasks wait, that exactly the available
// agents are free, and that no pair of them fits.
func requireSoundMarket(t testing.TB, s *State) {
	waiting := 0
	for _, k := range s.tasks.list {
		could := k.view.State == wire.TaskPending && s.tasks.graph.Open(k.node) == 0 && k.asks()
		if could != (k.demand != nil) {
			require.Fail(t, "a task waits to be given out, and does not", "%s is %s", k.view.ID, k.view.State)
		}
		if !could {
			continue
		}
		waiting++
		if s.stopping {
			continue
		}
		for _, a := range s.agents.order {
			fits := a.takes() && a.hears() && (k.wants() == nil || s.agents.index.Fits(&k.wants().Demand, a.ID, match.Conditions{})) && a.offers(k.view.RequiredRole, k.view.RequiredCapabilities) && a.actor != k.view.SubmittedBy
			require.False(t, fits, "%s waits, and %s would fit", k.view.ID, a.ID)
		}
	}
	require.NoError(t, s.tasks.queue.waiting.Check())
	for d := range s.tasks.queue.waiting.Buckets() {
		for k := range d.Items() {
			require.Same(t, d, k.demand)
			waiting--
		}
	}
	require.Zero(t, waiting)
	requireSoundFree(t, s)
}

// requireSoundFree requires that exactly the agents that could be assigned a task are free.
func requireSoundFree(t testing.TB, s *State) {
	var free []*agent
	for _, a := range s.agents.order {
		require.Equal(t, a.takes(), a.offered)
		if a.takes() {
			free = append(free, a)
		}
	}
	slices.SortFunc(free, byPatience)
	require.Equal(t, len(free), len(s.tasks.queue.free))
	for i, a := range free {
		require.Same(t, a, s.tasks.queue.free[i])
	}
	require.Subset(t, free, s.tasks.queue.freed)
}

// requireSoundQuestions requires that every open question is in every list.
func requireSoundQuestions(t testing.TB, s *State) {
	require.Equal(t, len(s.questions.byID), len(s.questions.open))
	timed := 0
	for _, q := range s.questions.open {
		require.Same(t, q, s.questions.byID[q.view.ID])
		if !q.deadline.IsZero() {
			timed++
			require.Contains(t, s.questions.deadlines, q)
		}
	}
	require.Equal(t, timed, len(s.questions.deadlines))
	require.True(t, slices.IsSortedFunc(s.questions.deadlines, queue.CompareTimes[*question]))
}

// requireSoundBus requires that every actor with mail is known once and that agents and actors
// refer to each other. Exactly the expected heartbeats are watched. There are no more actors of
// runs than agents.
func requireSoundBus(t testing.TB, s *State) {
	require.NoError(t, s.bus.Check())
	for _, c := range s.bus.All() {
		if c.Agent != nil {
			require.Same(t, s.agents.byID[c.Agent.ID], c.Agent)
			require.Same(t, c, c.Agent.mail, "%s is %s, and has the mail of another", c.Agent.ID, c.ID)
		}
		require.True(t, !c.OfRun || c.Agent != nil || s.access.HasToken(c.ID), "%s was a run, and is known for ever", c.ID)
		require.LessOrEqual(t, max(c.Cursor, c.Latest, c.Since), s.seq)
	}
	for _, a := range s.agents.order {
		require.True(t, a.mail == nil || s.bus.Actor(a.mail.ID) == a.mail && a.mail.Agent == a, "%s is another's actor", a.ID)
	}
}
