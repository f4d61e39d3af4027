// Package budget stops agents that have used what they may use.
//
// A [Keeper] follows the events of a team. When an agent reports what a turn has used, the Keeper compares the sums
// that the record has with the limits of the agent. At 80 % of a limit it says so. At 100 % the task of the agent
// waits for a person, or fails, and the agent gets no more tasks.
package budget

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// What a budget is for.
const (
	PerTask  = "task"
	PerAgent = "agent"
	PerTeam  = "team"
	PerDay   = "day" // an agent, from midnight to midnight in UTC
)

// A Limit is what an agent may use. 0 is no limit.
type Limit struct {
	Tokens int64 // in and out
	Cost   float64
	Time   time.Duration // since a task has begun
	Per    string
	Stop   bool // the task fails; otherwise a person is asked
}

// Answers of a person to the question what is to be done.
const (
	GoOn = "go on"
	Stop = "stop"
)

// Options configure a Keeper.
type Options struct {
	Log hclog.Logger
	// Events calls send for each event after one, and goes on until ctx ends.
	Events func(ctx context.Context, since int64, send func(wire.Event) error) error
	Latest int64 // the last event before the Keeper
	// Find returns a task that an agent has, or a task without an id.
	Find func(agent, task string) wire.Task
	// Spending returns the tasks that an agent works on, and what it and its team have used.
	Spending func(agent string) (tasks []wire.Task, ofAgent, ofTeam activity.Used)
	// Tell records a sentence about the budget of an agent.
	Tell func(agent, text string)
	// Park keeps an agent from getting tasks until a time, for a reason. A time in the past ends that.
	Park func(agent string, until time.Time, why string)
	// Ask makes the task of an agent wait for a person.
	Ask func(agent, task, question string) error
	// Fail ends a task.
	Fail func(agent, task, why string) error
}

// A Keeper watches the budgets of a team.
type Keeper struct {
	options Options
	stop    context.CancelFunc
	group   sync.WaitGroup

	mu     sync.Mutex
	limits map[string]Limit // of agents
	spent  map[string]*account
	days   map[string]*today // of agents
}

// An account is what is known of one budget: that of a task, an agent or a team, or of an agent on a day.
type account struct {
	said   int       // percent that were announced
	raised int       // how often a person has allowed as much again
	since  time.Time // when that was the last time
}

// today is what an agent has used on a day.
type today struct {
	day  string
	used activity.Used
}

// Start starts a Keeper with the limits of agents. If one is for a day, it reads the record for what was used today.
func Start(o Options, limits map[string]Limit) *Keeper {
	ctx, stop := context.WithCancel(context.Background())
	k := &Keeper{options: o, stop: stop, limits: limits, spent: make(map[string]*account), days: make(map[string]*today)}
	since := o.Latest
	for _, l := range limits {
		if l.Per == PerDay {
			since = 0
		}
	}
	k.group.Go(func() {
		if err := o.Events(ctx, since, k.hear); err != nil && ctx.Err() == nil {
			o.Log.Error("budgets are no longer watched", "error", err)
		}
	})
	k.group.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				k.look(now)
			}
		}
	})
	return k
}

// Close ends a Keeper.
func (k *Keeper) Close() {
	k.stop()
	k.group.Wait()
}

// Set replaces the limits of the agents. What was used before counts, but for a day: that is counted from then on.
func (k *Keeper) Set(limits map[string]Limit) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.limits = limits
}

// hear handles an event.
func (k *Keeper) hear(e wire.Event) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e.Kind == events.TaskDone || e.Kind == events.TaskFailed || e.Kind == events.TaskCancelled {
		delete(k.spent, key(PerTask, "", e.Task))
	}
	l, limited := k.limits[e.Agent]
	switch {
	case !limited:
	case e.Kind == events.AgentUsage:
		k.used(&e, l)
	case e.Kind == events.QuestionAnswered:
		k.answered(&e, l)
	}
	return nil
}

// used handles what an agent reports to have used.
func (k *Keeper) used(e *wire.Event, l Limit) {
	var u activity.Usage
	if err := object.DecodeOwn(e.Payload, &u); err != nil {
		k.options.Log.Error("what an agent has used cannot be read", "agent", e.Agent, "error", err)
		return
	}
	at, _ := object.ParseTime(e.At)
	d := k.days[e.Agent]
	if day := at.UTC().Format(time.DateOnly); d == nil || d.day != day {
		d = &today{day: day}
		k.days[e.Agent] = d
	}
	d.used.Add(u.Sum())
	if e.Seq <= k.options.Latest {
		return
	}
	if l.Cost > 0 && u.Cost == 0 && u.Input+u.Output > 0 {
		k.once(e.Agent, key("price", "", u.Model), "reports no cost, and "+cmp.Or(u.Model, "its model")+" has no price: its budget limits no cost")
	}
	_, ofAgent, ofTeam := k.options.Spending(e.Agent)
	used, of := ofAgent, e.Agent
	switch l.Per {
	case PerTask:
		t := k.options.Find(e.Agent, e.Task)
		if t.Details == nil || t.Used == nil {
			return
		}
		used, of = *t.Used, e.Task
	case PerTeam:
		used, of = ofTeam, ""
	case PerDay:
		used, of = d.used, d.day
	}
	k.compare(e.Agent, e.Task, l, key(l.Per, e.Agent, of), func(a *account) (float64, string) {
		return l.share(used, 1+a.raised)
	})
}

// share returns which part of a limit was used, and says so. The limit is n times what is configured.
func (l Limit) share(used activity.Used, n int) (part float64, text string) {
	if limit := l.Tokens * int64(n); limit > 0 {
		part = float64(used.Input+used.Output) / float64(limit)
		text = fmt.Sprintf("%d of %d tokens", used.Input+used.Output, limit)
	}
	if limit := l.Cost * float64(n); limit > 0 && used.Cost/limit >= part {
		part = used.Cost / limit
		text = strings.TrimSpace(fmt.Sprintf("%.2f of %.2f %s", used.Cost, limit, used.Currency))
	}
	return part, text
}

// look compares the time of the tasks with the limits.
func (k *Keeper) look(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for agent, l := range k.limits {
		if l.Time == 0 {
			continue
		}
		tasks, _, _ := k.options.Spending(agent)
		for _, t := range tasks {
			began, ok := object.ParseTime(t.StartedAt)
			if !ok {
				continue
			}
			k.compare(agent, t.ID, l, key(PerTask, agent, t.ID), func(a *account) (float64, string) {
				if a.since.After(began) {
					began = a.since
				}
				took := now.Sub(began)
				return took.Seconds() / l.Time.Seconds(), fmt.Sprintf("%s of %s", took.Round(time.Second), l.Time)
			})
		}
	}
}

// key returns the key of an account.
func key(per, agent, of string) string {
	if per == PerDay {
		return per + " " + agent + " " + of
	}
	return per + " " + of
}

// compare says and does what follows from the part of a limit that was used.
func (k *Keeper) compare(agent, task string, l Limit, key string, share func(*account) (float64, string)) {
	a := k.spent[key]
	if a == nil {
		a = new(account)
		k.spent[key] = a
	}
	part, text := share(a)
	switch {
	case part >= 1:
		why := fmt.Sprintf("the budget is used up: %s, per %s", text, l.Per)
		if a.said < 100 {
			a.said = 100
			k.options.Tell(agent, why)
		}
		k.reached(agent, task, l, why)
	case part >= 0.8 && a.said < 80:
		a.said = 80
		k.options.Tell(agent, fmt.Sprintf("has used %.0f %% of its budget: %s, per %s", part*100, text, l.Per))
	}
}

// once tells something about an agent once.
func (k *Keeper) once(agent, key, text string) {
	if k.spent[key] == nil {
		k.spent[key] = new(account)
		k.options.Tell(agent, text)
	}
}

// reached stops an agent whose budget is used up. A task that waits for a person is not stopped again.
func (k *Keeper) reached(agent, task string, l Limit, why string) {
	if l.Per != PerTask {
		for other, of := range k.limits {
			if other == agent || l.Per == PerTeam && of.Per == PerTeam {
				k.options.Park(other, l.until(time.Now()), why)
			}
		}
	}
	tasks, _, _ := k.options.Spending(agent)
	for _, t := range tasks {
		if l.Per == PerTask && t.ID != task {
			continue
		}
		var err error
		if l.Stop {
			err = k.options.Fail(agent, t.ID, why)
		} else {
			err = k.options.Ask(agent, t.ID, asks+strings.ToUpper(why[:1])+why[1:]+".")
		}
		if err != nil {
			k.options.Log.Error("a task whose budget is used up goes on", "agent", agent, "task", t.ID, "error", err)
		}
	}
}

// asks is how the question begins that a person gets.
const asks = "May it go on, with as much again? "

// until returns when a budget ends.
func (l Limit) until(now time.Time) time.Time {
	if l.Per == PerDay {
		return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	}
	return now.Add(activity.MaxLimit)
}

// answered handles the answer of a person to the question of a Keeper. The question is known by the task, so that it
// survives the orchestrator.
func (k *Keeper) answered(e *wire.Event, l Limit) {
	t := k.options.Find(e.Agent, e.Task)
	if t.Details == nil || t.Help == nil || !strings.HasPrefix(t.Help.Question, asks) {
		return
	}
	switch t.Help.Answer {
	case GoOn:
		of := e.Task
		switch l.Per {
		case PerAgent:
			of = e.Agent
		case PerTeam:
			of = ""
		case PerDay:
			of = time.Now().UTC().Format(time.DateOnly)
		}
		a := k.spent[key(l.Per, e.Agent, of)]
		if a == nil {
			a = new(account)
			k.spent[key(l.Per, e.Agent, of)] = a
		}
		a.raised, a.said, a.since = a.raised+1, 0, time.Now()
		for other, x := range k.limits {
			if e.Seq > k.options.Latest && l.Per != PerTask && (other == e.Agent || l.Per == PerTeam && x.Per == PerTeam) {
				k.options.Park(other, time.Time{}, "")
			}
		}
	case Stop:
		if e.Seq <= k.options.Latest {
			return
		}
		if err := k.options.Fail(e.Agent, e.Task, "a person stopped it, because its budget was used up"); err != nil {
			k.options.Log.Warn("a task whose budget is used up has not failed", "task", e.Task, "error", err)
		}
	}
}
