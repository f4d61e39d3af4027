package budget

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// accounts are a Team: the usage of its agents, and the agents that were kept from tasks.
type accounts struct {
	Team // for values that are not asked for

	t      *testing.T
	usage  []wire.Event
	heard  chan struct{} // closed when usage is heard
	mu     sync.Mutex
	used   map[string]activity.Used
	parked []string
	told   []string
}

// keepShares runs a Keeper with a budget of 9 USD for three agents, one of them a program, on some usage.
func keepShares(t *testing.T, usage []wire.Event) *accounts {
	l := &accounts{t: t, usage: usage, heard: make(chan struct{}), used: make(map[string]activity.Used)}
	limit := Limit{Cost: 9, Per: PerTeam}
	k := Start(Options{Log: hclog.NewNullLogger(), Team: l}, map[string]Limit{"coder": limit, "program": limit, "other": limit})
	<-l.heard
	k.Close()
	return l
}

func (l *accounts) Follow(_ context.Context, _ int64, send func(wire.Event) error) error {
	defer close(l.heard)
	for i, e := range l.usage {
		var u activity.Usage
		require.NoError(l.t, object.DecodeOwn(e.Payload, &u))
		l.mu.Lock()
		sum := l.used[e.Agent]
		sum.Add(u.Sum())
		l.used[e.Agent] = sum
		l.mu.Unlock()
		e.Seq, e.Kind, e.At = int64(i+1), events.AgentUsage, "2026-11-21T12:00:00Z"
		if err := send(e); err != nil {
			return err
		}
	}
	return nil
}

func (l *accounts) Held(string, string) (wire.Task, bool) { return wire.Task{}, false }
func (l *accounts) Questions(int) []wire.Question         { return nil }

func (l *accounts) Members() []Member {
	return []Member{{Name: "coder"}, {Name: "program", Program: true}, {Name: "other"}}
}

func (l *accounts) Spending(agent string) (_ []wire.Task, own, all activity.Used) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, used := range l.used {
		all.Add(used)
	}
	return nil, l.used[agent], all
}

func (l *accounts) Tell(agent, text string)                  { l.told = append(l.told, agent+": "+text) }
func (l *accounts) Park(agent string, _ time.Time, _ string) { l.parked = append(l.parked, agent) }
func (l *accounts) AskAbout(string, string, time.Time) error { return nil }

func usage(t *testing.T, agent string, cost float64) wire.Event {
	payload, err := json.Marshal(activity.Usage{Input: 1, Output: 1, Cost: cost, Currency: "USD"})
	require.NoError(t, err)
	return wire.Event{Agent: agent, Payload: payload}
}

// TestAbsurdUsage checks that a program's report about itself stops other agents only within its share, and that the
// budget of the team still holds for all.
func TestAbsurdUsage(t *testing.T) {
	l := keepShares(t, []wire.Event{usage(t, "coder", 1), usage(t, "program", 1e15), usage(t, "coder", 1), usage(t, "other", 3)})
	require.Equal(t, []string{"program"}, l.parked, "the others go on")
	require.Contains(t, l.told[0], "program: the budget is used up: 1000000000000000.00 of 3.00 USD, its share of the team's")

	l = keepShares(t, []wire.Event{usage(t, "program", 1e15), usage(t, "coder", 4), usage(t, "other", 3)})
	require.ElementsMatch(t, []string{"program", "coder", "program", "other"}, l.parked, "3 + 4 + 3 is more than 9")

	l = keepShares(t, []wire.Event{usage(t, "coder", 10)})
	require.ElementsMatch(t, []string{"coder", "program", "other"}, l.parked, "an adapter knows what was used")
}
