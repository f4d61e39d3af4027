// Package budget stops agents at the limits of their use.
//
// A [Keeper] follows the events of a team. When an agent reports the use of a turn, the Keeper compares the sums of the
// record with the limits of the agent. At 80% of a limit it records an event. At 100% it records another one, and the
// task of the agent waits for a person or fails. The agent gets no more tasks if the limit is not for one task.
package budget

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// Values of Limit.Per: the use that a limit adds up.
const (
	PerTask  = "task"
	PerAgent = "agent"
	PerTeam  = "team"
	PerDay   = "day" // an agent, from midnight to midnight in UTC
)

// A Limit is the maximum use of an agent. 0 is no limit.
type Limit struct {
	Tokens int64 // in and out
	Cost   float64
	Time   time.Duration // since a task has begun
	Per    string
	Stop   bool // the task fails; otherwise a person is asked
}

// Options configure a Keeper.
type Options struct {
	Log    hclog.Logger
	Team   Team
	Latest int64 // the last event before the Keeper
}

// A Team is the team of a Keeper.
type Team interface {
	// Follow calls send for each event after one, and goes on until ctx ends.
	Follow(ctx context.Context, since int64, send func(wire.Event) error) error
	// Oldest returns an event before all that is about tasks that are open now. The answers of people are read from
	// there.
	Oldest(ctx context.Context) int64
	// Held returns a task that an agent has, or a task without an id.
	Held(agent, task string) (t wire.Task, completable bool)
	// Spending returns the tasks that an agent works on, and the use of the agent and of its team.
	Spending(agent string) (tasks []wire.Task, ofAgent, ofTeam activity.Used)
	// Members returns the agents of the team.
	Members() []Member
	// Questions returns the first open questions.
	Questions(most int) []wire.Question
	// Tell records a sentence about the budget of an agent.
	Tell(agent, text string)
	// Park keeps an agent from getting tasks until a time, for a reason. A time in the past ends that.
	Park(agent string, until time.Time, why string)
	// Ask makes the task of an agent wait for a person, who answers with one of Answers.
	Ask(agent, task, question string) error
	// AskAbout asks a person about an agent until a time. The person answers with one of AnswersAbout.
	AskAbout(agent, question string, until time.Time) error
	// Fail ends a task of an agent.
	Fail(agent, task, why string) error
}

// A Keeper watches the budgets of a team.
type Keeper struct {
	options Options
	stop    context.CancelFunc
	group   sync.WaitGroup

	mu       sync.Mutex
	limits   map[string]Limit   // of agents
	budgets  map[string]*state  // by the keys of limits
	days     map[string]*dayUse // of agents
	asked    map[string]asked   // the open questions of a Keeper, by their ids
	unpriced map[string]bool    // agents with a logged warning about a missing price
}

// A state is the state of one budget.
type state struct {
	told     int       // the percentage that was announced last: 0, 80 or 100
	raised   int       // the number of times that a person has allowed the same amount again
	raisedAt time.Time // the last of them
}

// An asked is a question of a Keeper. It is about nobody once a person has allowed more.
type asked struct{ about, text string }

// A dayUse is the use of an agent on one day.
type dayUse struct {
	day  string
	used activity.Used
}

// Start starts a Keeper with the limits of agents. It reads earlier permissions of people and today's use from the
// record.
func Start(o Options, limits map[string]Limit) *Keeper {
	ctx, stop := context.WithCancel(context.Background())
	k := &Keeper{
		options: o, stop: stop, limits: limits, budgets: make(map[string]*state), days: make(map[string]*dayUse),
		asked: make(map[string]asked), unpriced: make(map[string]bool),
	}
	for _, q := range o.Team.Questions(math.MaxInt) { // of an earlier Keeper; an agent may ask with any options, but not for help
		task, _ := o.Team.Held(q.Agent, q.Task)
		if help := task.Details; help != nil && help.Help != nil && help.Help.QuestionID == q.ID && isOurs(q.Options) {
			k.asked[q.ID] = asked{about: q.Agent, text: q.Question}
		}
	}
	k.group.Go(func() {
		since := k.since(ctx, limits)
		if err := o.Team.Follow(ctx, since, k.hear); err != nil && ctx.Err() == nil {
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

// since returns the event behind which a Keeper reads, to find permissions of people and today's use.
func (k *Keeper) since(ctx context.Context, limits map[string]Limit) int64 {
	for _, l := range limits {
		if l.Per != PerTask {
			return 0
		}
	}
	return k.options.Team.Oldest(ctx)
}

// Close ends a Keeper.
func (k *Keeper) Close() {
	k.stop()
	k.group.Wait()
}

// Set replaces the limits of the agents. A limit for a day counts only later use, unless the agent had one before.
func (k *Keeper) Set(limits map[string]Limit) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.limits = limits
}

// hear handles an event.
func (k *Keeper) hear(e wire.Event) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch e.Kind {
	case events.TaskDone, events.TaskFailed, events.TaskCancelled:
		delete(k.budgets, taskKey(e.Task))
	case events.QuestionWithdrawn, events.QuestionExpired:
		k.unanswered(&e)
	case events.OrchestratorClockSet:
		k.clockSet(&e)
	}
	l, limited := k.limits[e.Agent]
	switch {
	case !limited:
	case e.Kind == events.AgentUsage:
		k.used(&e, l)
	case e.Kind == events.TaskHelpWanted, e.Kind == events.QuestionAsked:
		k.asks(&e)
	case e.Kind == events.QuestionAnswered:
		k.answered(&e, l)
	}
	return nil
}

// clockSet moves permissions of people with the clock. The State does so with the beginnings of tasks.
func (k *Keeper) clockSet(e *wire.Event) {
	var f struct {
		By int64 `json:"by_ms"`
	}
	if object.DecodeOwn(e.Payload, &f) != nil {
		return
	}
	for _, b := range k.budgets {
		b.raisedAt = b.raisedAt.Add(time.Duration(f.By) * time.Millisecond)
	}
}

// Answers are the answers to a question of a Keeper about a task, and AnswersAbout to one about an agent.
var (
	Answers      = []wire.Option{{Label: "Continue, with the same amount again", Value: goOn}, {Label: "Stop: the task fails", Value: stop}}
	AnswersAbout = []wire.Option{Answers[0], {Label: "Stop: it gets no more tasks", Value: stop}}
)

const (
	goOn = "go on"
	stop = "stop"
)

// isOurs reports whether options are Answers. An agent that requests help with its task cannot give options, so help
// with these was requested by a Keeper.
func isOurs(options []wire.Option) bool { return slices.Equal(options, Answers) }

// asks notes a question of the Keeper. One about an agent is marked, because agents can ask with any options.
func (k *Keeper) asks(e *wire.Event) {
	var q struct {
		ID       string        `json:"question_id"`
		Question string        `json:"question"`
		Options  []wire.Option `json:"options"`
		Own      bool          `json:"own"`
	}
	if object.DecodeOwn(e.Payload, &q) == nil && (q.Own || e.Kind == events.TaskHelpWanted && isOurs(q.Options)) {
		delete(k.asked, asking+e.Agent)
		k.asked[q.ID] = asked{about: e.Agent, text: q.Question}
	}
}

// asking begins the keys of questions about agents that have no id yet.
const asking = "about "

// unanswered forgets a question that gets no answer. If its task went on or ended without one, the agent would still
// get no tasks and nobody would decide, so the question is asked about the agent.
func (k *Keeper) unanswered(e *wire.Event) {
	id, _ := object.TextOf(e.Payload, "question_id")
	q := k.asked[id]
	delete(k.asked, id)
	if l, limited := k.limits[q.about]; limited && l.Per != PerTask && e.Seq > k.options.Latest && e.Kind == events.QuestionWithdrawn {
		k.askAbout(q.about, l, q.text)
	}
}

// askAbout asks a person about an agent, unless a question about it is open.
func (k *Keeper) askAbout(agent string, l Limit, question string) {
	for _, q := range k.asked {
		if q.about == agent {
			return
		}
	}
	k.asked[asking+agent] = asked{about: agent, text: question}
	if err := k.options.Team.AskAbout(agent, question, l.until(time.Now())); err != nil {
		delete(k.asked, asking+agent)
		k.options.Log.Error("cannot ask a person about an agent that has used up its budget", "agent", agent, "error", err)
	}
}

// used handles a report of use.
func (k *Keeper) used(e *wire.Event, l Limit) {
	var u activity.Usage
	if err := object.DecodeOwn(e.Payload, &u); err != nil {
		k.options.Log.Error("the usage of an agent cannot be read", "agent", e.Agent, "error", err)
		return
	}
	at, _ := object.ParseTime(e.At)
	d := k.days[e.Agent]
	if day := at.UTC().Format(time.DateOnly); d == nil || d.day != day {
		d = &dayUse{day: day}
		k.days[e.Agent] = d
	}
	d.used.Add(u.Sum())
	if e.Seq <= k.options.Latest {
		return
	}
	if l.Cost > 0 && u.Cost == 0 && u.Input+u.Output > 0 && !k.unpriced[e.Agent] {
		k.unpriced[e.Agent] = true
		k.options.Team.Tell(e.Agent, "reports no cost, and "+cmp.Or(u.Model, "its model")+" has no price: its budget limits no cost")
	}
	_, used, ofTeam := k.options.Team.Spending(e.Agent)
	switch l.Per {
	case PerTask:
		t, _ := k.options.Team.Held(e.Agent, e.Task)
		if t.Details == nil || t.Used == nil {
			return
		}
		used = *t.Used
	case PerTeam:
		team := k.options.Team.Members()
		share, times := l.divided(len(team)), 1+k.budget(l.key("", "", at)).raised
		if part, text := share.share(used, times); part >= 1 && slices.Contains(team, Member{Name: e.Agent, Program: true}) {
			k.compare(e.Agent, e.Task, share, k.budget("share "+e.Agent), part, text+", its share of the team's")
			return
		}
		used = k.believed(team, share, times, ofTeam)
	case PerDay:
		used = d.used
	}
	b := k.budget(l.key(e.Agent, e.Task, at))
	part, text := l.share(used, 1+b.raised)
	k.compare(e.Agent, e.Task, l, b, part, text)
}

// A Member is an agent of the team.
type Member struct {
	Name    string
	Program bool // the program itself reports its use; no adapter does
}

// divided returns the equal share of each of n agents in a budget of the team.
func (l Limit) divided(n int) Limit {
	n = max(n, 1)
	tokens := l.Tokens / int64(n)
	if l.Tokens > 0 {
		tokens = max(tokens, 1)
	}
	return Limit{Tokens: tokens, Cost: l.Cost / float64(n), Per: PerAgent, Stop: l.Stop}
}

// believed returns the use of the team. A program's reports about itself count only up to its share: otherwise one
// event with an absurd cost would stop all agents.
func (k *Keeper) believed(team []Member, share Limit, times int, all activity.Used) activity.Used {
	var sum activity.Used
	absurd := false
	for _, m := range team {
		_, used, _ := k.options.Team.Spending(m.Name)
		if part, _ := share.share(used, times); m.Program && part > 1 {
			absurd = true
			used.Cost = min(used.Cost, share.Cost*float64(times))
			if most := share.Tokens * int64(times); most > 0 && used.Input+used.Output > most {
				used.Input, used.Output = most, 0
			}
		}
		sum.Add(used)
	}
	if !absurd {
		return all // including agents that are no longer in the file
	}
	return sum
}

// share returns the part of n times the limit that was used, as a number and as text.
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
		tasks, _, _ := k.options.Team.Spending(agent)
		for _, t := range tasks {
			began, ok := object.ParseTime(t.StartedAt)
			if !ok {
				continue
			}
			b := k.budget(taskKey(t.ID))
			if b.raisedAt.After(began) {
				began = b.raisedAt
			}
			took := now.Sub(began)
			k.compare(agent, t.ID, l, b, took.Seconds()/l.Time.Seconds(), fmt.Sprintf("%s of %s", took.Round(time.Second), l.Time))
		}
	}
}

// key returns the key of the budget of an agent at a time.
func (l Limit) key(agent, task string, at time.Time) string {
	switch l.Per {
	case PerAgent:
		return "agent " + agent
	case PerTeam:
		return "team"
	case PerDay:
		return "day " + at.UTC().Format(time.DateOnly) + " " + agent
	}
	return taskKey(task)
}

func taskKey(task string) string { return "task " + task }

// budget returns the state of a budget.
func (k *Keeper) budget(key string) *state {
	if k.budgets[key] == nil {
		k.budgets[key] = new(state)
	}
	return k.budgets[key]
}

// compare acts on the part of a limit that was used.
func (k *Keeper) compare(agent, task string, l Limit, b *state, part float64, text string) {
	switch {
	case part >= 1:
		why := fmt.Sprintf("the budget is used up: %s, per %s", text, l.Per)
		if b.told < 100 {
			b.told = 100
			k.options.Team.Tell(agent, why)
		}
		k.reached(agent, task, l, why)
	case part >= 0.8 && b.told < 80:
		b.told = 80
		k.options.Team.Tell(agent, fmt.Sprintf("has used %.0f%% of its budget: %s, per %s", part*100, text, l.Per))
	}
}

// park keeps the agents that use from the budget of an agent from getting tasks until a time. The budget of a task
// does not do that.
func (k *Keeper) park(agent string, l Limit, until time.Time, why string) {
	for other, of := range k.limits {
		if l.Per != PerTask && (other == agent || l.Per == PerTeam && of.Per == PerTeam) {
			k.options.Team.Park(other, until, why)
		}
	}
}

// reached stops an agent after its budget is used up. A task that waits for a person is not stopped again.
func (k *Keeper) reached(agent, task string, l Limit, why string) {
	k.park(agent, l, l.until(time.Now()), why)
	question := "May it continue, with the same amount again? " + strings.ToUpper(why[:1]) + why[1:] + "."
	waits := false
	tasks, _, _ := k.options.Team.Spending(agent)
	for _, t := range tasks {
		if l.Per == PerTask && t.ID != task {
			continue
		}
		var err error
		if l.Stop {
			err = k.options.Team.Fail(agent, t.ID, why)
		} else {
			err = k.options.Team.Ask(agent, t.ID, question)
			waits = waits || err == nil
		}
		if err != nil {
			k.options.Log.Error("a task continues although its budget is used up", "agent", agent, "task", t.ID, "error", err)
		}
	}
	if !waits && !l.Stop && l.Per != PerTask {
		k.askAbout(agent, l, question)
	}
}

// until returns when a budget ends.
func (l Limit) until(now time.Time) time.Time {
	if l.Per == PerDay {
		return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	}
	return now.Add(activity.MaxLimit)
}

// answered acts on the answer of a person to a question of the Keeper.
func (k *Keeper) answered(e *wire.Event, l Limit) {
	id, _ := object.TextOf(e.Payload, "question_id")
	answer, _ := object.TextOf(e.Payload, "answer")
	if _, ours := k.asked[id]; !ours {
		return
	}
	delete(k.asked, id)
	at, _ := object.ParseTime(e.At)
	past := e.Seq <= k.options.Latest
	switch {
	case answer == goOn:
		b := k.budget(l.key(e.Agent, e.Task, at))
		b.raised, b.told, b.raisedAt = b.raised+1, 0, at
		for other, q := range k.asked {
			if q.about == e.Agent || l.Per == PerTeam && k.limits[q.about].Per == PerTeam {
				k.asked[other] = asked{}
			}
		}
		if !past {
			k.park(e.Agent, l, time.Time{}, "")
		}
	case !past && e.Task != "":
		if err := k.options.Team.Fail(e.Agent, e.Task, "a person stopped it, because its budget was used up"); err != nil {
			k.options.Log.Warn("cannot fail a task that has used up its budget", "task", e.Task, "error", err)
		}
	}
}
