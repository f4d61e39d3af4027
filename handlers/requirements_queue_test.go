package handlers

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/hub"
)

// requireSoundWishes requires that exactly the unblocked tasks with nothing but requirements
// wait, each in its place.
func requireSoundWishes(t testing.TB, s *State) {
	waiting := 0
	for _, k := range s.tasks.list {
		could := k.view.State == wire.TaskPending && s.tasks.graph.Open(k.node) == 0 && k.wants() != nil && !k.asks()
		waits := k.more != nil && k.more.bucket != nil
		if could != waits {
			require.Fail(t, "a task waits for one that fits, and does not", "%s is %s", k.view.ID, k.view.State)
		}
		if waits {
			waiting++
			require.Contains(t, slices.Collect(k.more.bucket.Items()), k)
			require.Equal(t, k.wants().key, k.more.bucket.Asks.key)
		}
	}
	require.NoError(t, s.tasks.required.waiting.Check())
	filed := 0
	for h := range s.tasks.required.waiting.Buckets() {
		filed++
		waiting -= len(slices.Collect(h.Items()))
	}
	require.Zero(t, waiting)
	require.Equal(t, s.tasks.required.waiting.Len(), filed)
	require.Empty(t, s.tasks.required.order, "all of them have been looked at")
}

// requireSoundIndex requires that the index equals one built anew from the agents.
func requireSoundIndex(t testing.TB, s *State) {
	fresh := match.New()
	for _, a := range s.agents.order {
		running := 0
		for _, k := range a.holds {
			if k.busy() {
				running++
			}
		}
		require.Equal(t, a.running, running, "tasks that %s works on", a.ID)
		if s.rules.CountAssigned {
			running = len(a.holds)
		}
		capacity := a.Capacity
		if a.remote != nil && !s.access.HasKey(a.ID) || !a.limited.IsZero() {
			capacity = 0
		}
		fresh.Put(a.ID, offerOf(a), match.Standing{
			Online: a.state == up || a.state == leaving, Running: running, Capacity: capacity, Load: len(a.holds),
		})
	}
	demands := []match.Demand{{}, {Languages: []string{"go"}}, {Repo: "api", Tags: []string{"gpu"}}, {Environments: []string{"linux"}, Prefer: "a3"}}
	for h := range s.tasks.required.waiting.Buckets() {
		demands = append(demands, h.Asks.Demand)
	}
	for i := range demands {
		require.Equal(t, fresh.Verdicts(&demands[i]), s.agents.index.Verdicts(&demands[i]))
		for _, c := range []match.Conditions{{}, {Online: true}, {Online: true, Free: true}, {Not: "a1"}} {
			name, score, ok := fresh.Best(&demands[i], c)
			name2, score2, ok2 := s.agents.index.Best(&demands[i], c)
			require.Equal(t, []any{name, score, ok}, []any{name2, score2, ok2})
		}
	}
}

// offerOf returns the capabilities that an agent advertised, or those of the configuration.
func offerOf(a *agent) match.Offer {
	c := a.said
	if c == nil {
		c = hub.ReadCapabilities(a.configured.Abilities)
	}
	if c == nil {
		return match.Offer{}
	}
	o := match.Offer{Languages: c.Languages, Environments: c.Environments, Tools: c.Tools, Tags: c.Tags}
	for _, r := range c.Repos {
		o.Repos = append(o.Repos, match.Repo{Name: r.Name, Languages: r.Languages, Tools: r.Tools})
	}
	return o
}

// requireSoundServers requires that exactly the online servers are watched, the one with the
// oldest contact first.
func requireSoundServers(t testing.TB, s *State) {
	online := 0
	for _, a := range s.agents.order {
		if a.remote != nil && a.state == up {
			online++
			require.Contains(t, s.agents.online, a)
		}
	}
	require.Equal(t, len(s.agents.online), online)
	require.True(t, slices.IsSortedFunc(s.agents.online, queue.CompareTimes[*agent]))
}

// requireSoundHelp requires that an agent's question about its task is open exactly as long as
// the task waits for it.
func requireSoundHelp(t testing.TB, s *State) {
	about := make(map[string]string)
	for _, q := range s.questions.open {
		if q.view.Task != "" && !q.aside {
			k := s.tasks.byID[q.view.Task]
			require.Empty(t, about[q.view.Task], "two questions about one task")
			about[q.view.Task] = q.view.ID
			if w := k.work(); w != nil && w.question == q.view.ID { // the result of a review
				require.Equal(t, w.architect, q.view.Agent)
				continue
			}
			require.Equal(t, k.view.AssignedTo, q.view.Agent)
		}
	}
	for _, k := range s.tasks.list {
		question := ""
		if k.more != nil {
			question = k.more.question
		}
		done := k.work() != nil && k.view.State.Final() // it is reviewed after it was done
		if k.view.State == wire.TaskNeedsHuman != (question != "") || question != about[k.view.ID] && !done {
			require.Fail(t, "a question is not sound", "%s is %s and waits for %q", k.view.ID, k.view.State, question)
		}
	}
}
