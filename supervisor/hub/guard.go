package hub

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/supervisor"
	"orchestrator/supervisor/api"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// A guard knows the rights of the processes of agents at the sockets, and reports processes that try to be an operator
// or another agent: the first refused request of an agent at once, and later ones at most every reportPause. The audit
// has each.
type guard struct {
	log    hclog.Logger
	agents atomic.Pointer[map[string]*config.Agent] // of the configuration, by their names
	team   atomic.Pointer[supervisor.Supervisor]    // nil: a host, or a team that has not started

	mu    sync.Mutex
	told  map[string]time.Time // the last report, by agent
	since map[string]int64     // requests since then
}

const reportPause = 10 * time.Second

// allow notes the agents of a configuration.
func (g *guard) allow(c *config.Config) {
	agents := make(map[string]*config.Agent)
	for i := range c.Agents {
		agents[c.Agents[i].Name] = &c.Agents[i]
	}
	g.agents.Store(&agents)
}

// MayOperate reports whether an agent may be an operator.
func (g *guard) MayOperate(agent string) bool {
	a := g.agentNamed(agent)
	return a != nil && a.Operator
}

// connections returns how many connections the socket of a run of an agent takes.
func (g *guard) connections(agent string) int {
	if a := g.agentNamed(agent); a != nil {
		return a.Connections
	}
	return api.MostOfRun
}

// agentNamed returns an agent of the configuration, or nil.
func (g *guard) agentNamed(name string) *config.Agent {
	if agents := g.agents.Load(); agents != nil {
		return (*agents)[name]
	}
	return nil
}

// Report tells people that a process of an agent tried to be an operator, or another agent. A host
// has no events and writes it to its log.
func (g *guard) Report(agent, run, what string) {
	count := g.add(agent, time.Now())
	if count == 0 {
		return
	}
	text := what
	if count > 1 {
		text += fmt.Sprintf(" (and %d times before)", count-1)
	}
	team := g.team.Load()
	switch {
	case agent == "":
		g.log.Warn("a process of an unknown agent " + text)
		return
	case team == nil:
		g.log.Warn("refused agent "+agent+": it "+text, "run", run)
		return
	}
	team.Report(&wire.Event{Kind: events.AgentRefused, Agent: agent, Run: run, Text: text, Figures: wire.Figures{Count: count}})
}

// add counts one more of an agent. It returns the number to report now, or 0.
func (g *guard) add(agent string, now time.Time) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.told == nil {
		g.told, g.since = make(map[string]time.Time), make(map[string]int64)
	}
	g.since[agent]++
	if last, ok := g.told[agent]; ok && now.Sub(last) < reportPause {
		return 0
	}
	count := g.since[agent]
	g.told[agent] = now
	delete(g.since, agent)
	return count
}
