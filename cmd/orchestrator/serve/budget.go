package serve

import (
	"context"
	"math"
	"time"

	"orchestrator/handlers"
	"orchestrator/supervisor/budget"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/events"
)

// doNow requests an operation for the orchestrator itself.
func doNow(t *Instance, from handlers.Actor, operation string, body any) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return t.Super.Requests.Do(ctx, from, operation, body)
}

// limit sets the budgets of agents to those of a configuration.
func limit(t *Instance, c *config.Config) {
	t.prices.Store(&c.Prices)
	limits := make(map[string]budget.Limit)
	members := make([]budget.Member, 0, len(c.Agents))
	for i := range c.Agents {
		members = append(members, budget.Member{Name: c.Agents[i].Name, Program: !c.Agents[i].IsClient()})
		if b := c.Agents[i].Budget; b != nil {
			limits[c.Agents[i].Name] = *b
		}
	}
	t.members.Store(&members)
	switch {
	case t.keeper != nil:
		t.keeper.Set(limits)
	case len(limits) > 0: // without a budget, no goroutine follows the events
		t.keeper = budget.Start(budgets(t), limits)
	}
}

// budgets returns the options of the Keeper.
func budgets(t *Instance) budget.Options {
	s := t.Super
	do := func(from handlers.Actor, operation string, body any) error {
		_, err := doNow(t, from, operation, body)
		return err
	}
	return budget.Options{
		Log: t.log.Named("budget"), Latest: s.Seq(),
		Events: func(ctx context.Context, since int64, send func(wire.Event) error) error {
			return s.Events(ctx, output.EventQuery{Since: since, Follow: true}, send)
		},
		Oldest: func(ctx context.Context) int64 {
			point, err := s.Requests.ResumePoint(ctx, s.Seq())
			if err != nil {
				t.log.Error("what people have allowed before is not known: they are asked again", "error", err)
				return s.Seq()
			}
			return point.Behind
		},
		Find: func(agent, task string) wire.Task {
			found, _ := s.Held(agent, task)
			return found
		},
		Spending:  s.Spending,
		Members:   func() []budget.Member { return *t.members.Load() },
		Questions: func() []wire.Question { return s.Questions(math.MaxInt) },
		Tell:      func(agent, text string) { s.Note(&wire.Event{Kind: events.AgentBudget, Agent: agent, Text: text}) },
		Park:      s.Park,
		Ask: func(agent, task, question string) error {
			return do(handlers.Actor{Kind: handlers.Agent, Name: agent}, "request-help", &wire.RequestHelp{
				TaskID: task, Question: question, Recall: "its budget is used up, and a person is asked",
				Options: budget.Answers,
			})
		},
		AskAbout: func(agent, question string, until time.Time) error {
			return do(handlers.Actor{Kind: handlers.Agent, Name: agent}, "request-help", &wire.RequestHelp{
				Question: question, Until: until, Options: budget.AnswersAbout,
			})
		},
		Fail: func(_, task, why string) error {
			return do(handlers.Actor{Kind: handlers.Operator}, "fail-task", &wire.FailTask{TaskID: task, Error: why, Class: "budget"})
		},
	}
}

// price adds the cost to what an agent has used, if its program reports none and its model has a price.
func price(prices map[string]config.Price, u *activity.Usage) {
	p, ok := prices[u.Model]
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
