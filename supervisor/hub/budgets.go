package hub

import (
	"context"
	"sync/atomic"
	"time"

	"orchestrator/handlers"
	"orchestrator/supervisor/budget"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/events"
)

// budgets are the part of a hub that keeps the budgets of agents. They are the team for its Keeper.
type budgets struct {
	*requester
	config  *config.Config
	keeper  *budget.Keeper                          // nil if no agent has a budget
	prices  atomic.Pointer[map[string]config.Price] // of models
	members atomic.Pointer[[]budget.Member]
}

// Start begins to keep the budgets of the configuration.
func (b *budgets) Start(context.Context) error {
	b.limit(b.config)
	return nil
}

// Stop ends that.
func (b *budgets) Stop() {
	if b.keeper != nil {
		b.keeper.Close()
	}
}

// limit sets the budgets of agents from a configuration.
func (b *budgets) limit(c *config.Config) {
	b.prices.Store(&c.Prices)
	limits := make(map[string]budget.Limit)
	members := make([]budget.Member, 0, len(c.Agents))
	for i := range c.Agents {
		members = append(members, budget.Member{Name: c.Agents[i].Name, Program: !c.Agents[i].IsClient()})
		if one := c.Agents[i].Budget; one != nil {
			limits[c.Agents[i].Name] = *one
		}
	}
	b.members.Store(&members)
	switch {
	case b.keeper != nil:
		b.keeper.Set(limits)
	case len(limits) > 0: // without a budget, no goroutine follows the events
		b.keeper = budget.Start(budget.Options{Log: b.log.Named("budget"), Team: b, Latest: b.Seq()}, limits)
	}
}

// Oldest returns an event before all that is about open tasks.
func (b *budgets) Oldest(ctx context.Context) int64 {
	point, err := b.Requests.ResumePoint(ctx, b.Seq())
	if err != nil {
		b.log.Error("earlier permissions are unknown: people are asked again", "error", err)
		return b.Seq()
	}
	return point.Behind
}

// Members returns the agents of the configuration.
func (b *budgets) Members() []budget.Member { return *b.members.Load() }

// Tell records a sentence about the budget of an agent.
func (b *budgets) Tell(agent, text string) {
	b.Note(&wire.Event{Kind: events.AgentBudget, Agent: agent, Text: text})
}

// Ask makes the task of an agent wait for a person.
func (b *budgets) Ask(agent, task, question string) error {
	_, err := b.do(handlers.Actor{Kind: handlers.Agent, Name: agent}, "request-help", &wire.RequestHelp{
		TaskID: task, Question: question, Recall: "its budget is used up, and a person is asked", Options: budget.Answers,
	})
	return err
}

// AskAbout asks a person about an agent until a time.
func (b *budgets) AskAbout(agent, question string, until time.Time) error {
	_, err := b.do(handlers.Actor{Kind: handlers.Agent, Name: agent}, "request-help", &wire.RequestHelp{
		Question: question, Until: until, Options: budget.AnswersAbout,
	})
	return err
}

// Fail ends a task.
func (b *budgets) Fail(_, task, why string) error {
	_, err := b.do(handlers.Actor{Kind: handlers.Operator}, "fail-task", &wire.FailTask{TaskID: task, Error: why, Class: "budget"})
	return err
}

// price adds the cost to an agent's usage, if its program reports none and its model has a price.
func (b *budgets) price(u *activity.Usage) {
	p, ok := (*b.prices.Load())[u.Model]
	if !ok || u.Cost != 0 {
		return
	}
	cached := int64(0)
	if p.CacheRead > 0 && u.CacheRead <= u.Input {
		cached = u.CacheRead
	}
	u.Cost = (float64(u.Input-cached)*p.Input + float64(cached)*p.CacheRead + float64(u.Output)*p.Output) / 1e6
	u.Currency = "USD"
}
