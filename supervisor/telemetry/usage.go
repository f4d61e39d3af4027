package telemetry

import (
	"cmp"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

const (
	// maxModels is the number of pairs of model and currency that an agent may have in the metrics. Usage of further ones
	// is counted as otherKind.
	maxModels = 20
	// maxUsers is the number of agents with counted usage between two readers of the metrics.
	maxUsers = 10_000
)

// usage is the usage of agents in this run of the orchestrator. Its methods may be called concurrently.
type usage struct {
	mu     sync.Mutex
	agents map[string]*agentUsage
}

// An agentUsage is the usage of one agent.
type agentUsage struct {
	of    map[usageKey]*activity.Usage
	turn  int64 // the last one
	turns int
}

// A usageKey holds labels that agents choose.
type usageKey struct{ model, currency string }

// usageFact is the payload of the facts that are counted here.
type usageFact struct {
	Agent string `json:"agent"`
	activity.Usage
}

// learn counts facts of one kind.
func (u *usage) learn(facts []wire.Record) {
	if kind := facts[0].Kind; kind != events.AgentUsage && kind != events.AgentStarted {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range facts {
		var f usageFact
		if object.DecodeOwn(facts[i].Payload, &f) != nil {
			continue
		}
		a := u.agents[f.Agent]
		if facts[i].Kind == events.AgentStarted {
			if a != nil {
				a.turn = 0 // each run counts its turns
			}
			continue
		}
		if a == nil {
			if len(u.agents) >= maxUsers {
				continue
			}
			a = &agentUsage{of: make(map[usageKey]*activity.Usage)}
			u.agents[f.Agent] = a
		}
		a.add(&f.Usage)
	}
}

func (a *agentUsage) add(more *activity.Usage) {
	key := usageKey{model: cut(cmp.Or(more.Model, "unknown"), maxName), currency: cut(more.Currency, maxName)}
	if more.Cost > 0 && key.currency == "" {
		key.currency = "unknown"
	}
	sum := a.of[key]
	if sum == nil && len(a.of) >= maxModels {
		key = usageKey{model: otherKind, currency: otherKind}
		sum = a.of[key]
	}
	if sum == nil {
		sum = new(activity.Usage)
		a.of[key] = sum
	}
	sum.Input += more.Input
	sum.Output += more.Output
	sum.CacheRead += more.CacheRead
	sum.CacheWrite += more.CacheWrite
	sum.Reasoning += more.Reasoning
	sum.Cost += more.Cost
	if more.Turn != 0 && more.Turn != a.turn {
		a.turn = more.Turn
		a.turns++
	}
}

// known returns the agents with counted usage.
func (u *usage) known() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	names := make([]string, 0, len(u.agents))
	for name := range u.agents {
		names = append(names, name)
	}
	return names
}

// forget drops agents that are no longer in the status.
func (u *usage) forget(names []string, s *control.Status) {
	present := make(map[string]bool, len(s.Agents))
	for i := range s.Agents {
		present[s.Agents[i].Name] = true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, name := range names {
		if !present[name] {
			delete(u.agents, name)
		}
	}
}

var (
	tokensDesc  = describe("agent_tokens_total", "Tokens that an agent has used, by model and kind.", "agent", "model", "kind")
	costDesc    = describe("agent_cost_total", "Cost that an agent has reported, by model and currency.", "agent", "model", "currency")
	turnsDesc   = describe("agent_turns_total", "Turns whose usage an agent has reported.", "agent")
	limitedDesc = describe("agent_limited", "Whether a coding agent gets no task for a time, such as by a limit of its vendor.", "agent")
)

// collect returns the metrics of one agent.
func (u *usage) collect(v *control.AgentView, counter, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	if v.Activity != nil {
		limited := 0.0
		if v.Activity.LimitedUntil != "" {
			limited = 1
		}
		gauge(limitedDesc, limited, v.Name)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.agents[v.Name]
	if a == nil {
		return
	}
	counter(turnsDesc, float64(a.turns), v.Name)
	models := make(map[string]activity.Usage)
	for key, sum := range a.of {
		m := models[key.model]
		m.Input += sum.Input
		m.Output += sum.Output
		m.CacheRead += sum.CacheRead
		m.CacheWrite += sum.CacheWrite
		m.Reasoning += sum.Reasoning
		models[key.model] = m
		if key.currency != "" {
			counter(costDesc, sum.Cost, v.Name, key.model, key.currency)
		}
	}
	for model, sum := range models {
		for kind, n := range map[string]int64{
			"input": sum.Input, "output": sum.Output, "cache_read": sum.CacheRead, "cache_write": sum.CacheWrite, "reasoning": sum.Reasoning,
		} {
			counter(tokensDesc, float64(n), v.Name, model, kind)
		}
	}
}

// A spending is the usage of the work on a task.
type spending struct {
	input, output int64
	cost          float64
	currency      string
	turn, turns   int64
}

func (s *spending) add(u *activity.Usage) {
	s.input += u.Input
	s.output += u.Output
	s.cost += u.Cost
	s.currency = cmp.Or(u.Currency, s.currency)
	if u.Turn != 0 && u.Turn != s.turn {
		s.turn = u.Turn
		s.turns++
	}
}

// attributes returns the attributes of the span of a task.
func (s *spending) attributes() []attribute.KeyValue {
	if *s == (spending{}) {
		return nil
	}
	all := []attribute.KeyValue{
		attribute.Int64("task.tokens.input", s.input), attribute.Int64("task.tokens.output", s.output), attribute.Int64("task.turns", s.turns),
	}
	if s.currency != "" {
		all = append(all, attribute.Float64("task.cost", s.cost), attribute.String("task.currency", s.currency))
	}
	return all
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

const namespace = "orchestrator"

// otherKind is the label of messages of unknown kinds.
const otherKind = "other"
