package serve

import (
	"fmt"
	"sync"
	"time"

	"orchestrator/supervisor/api"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// A trespass counts the refused requests of processes that tried to be an operator or another agent.
// The first one is reported at once, and later ones at most every trespassPause. The audit has each.
type trespass struct {
	mu    sync.Mutex
	told  map[string]time.Time // the last report, by agent
	since map[string]int64     // requests since then
}

const trespassPause = 10 * time.Second

// mayOperate reports whether an agent may be an operator.
func (t *Instance) mayOperate(agent string) bool {
	a := t.agentNamed(agent)
	return a != nil && a.Operator
}

// connections returns how many connections the socket of a run of an agent takes.
func (t *Instance) connections(agent string) int {
	if a := t.agentNamed(agent); a != nil {
		return a.Connections
	}
	return api.MostOfRun
}

// agentNamed returns an agent of the configuration, or nil.
func (t *Instance) agentNamed(name string) *config.Agent {
	if agents := t.agents.Load(); agents != nil {
		return (*agents)[name]
	}
	return nil
}

// trespassed tells people that a process of an agent tried to be an operator, or another agent. A host
// has no events and writes it to its log.
func (t *Instance) trespassed(agent, run, what string) {
	count := t.trespass.add(agent, time.Now())
	if count == 0 {
		return
	}
	text := what
	if count > 1 {
		text += fmt.Sprintf(" (and %d times before)", count-1)
	}
	switch {
	case agent == "":
		t.log.Warn("a process of an agent that is not known " + text)
		return
	case t.Super == nil:
		t.log.Warn("refused agent "+agent+": it "+text, "run", run)
		return
	}
	t.Super.Report(&wire.Event{Kind: events.AgentRefused, Agent: agent, Run: run, Text: text, Figures: wire.Figures{Count: count}})
}

// add counts one more of an agent. It returns how many are to be told now, or 0.
func (t *trespass) add(agent string, now time.Time) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.told == nil {
		t.told, t.since = make(map[string]time.Time), make(map[string]int64)
	}
	t.since[agent]++
	if last, ok := t.told[agent]; ok && now.Sub(last) < trespassPause {
		return 0
	}
	count := t.since[agent]
	t.told[agent] = now
	delete(t.since, agent)
	return count
}
