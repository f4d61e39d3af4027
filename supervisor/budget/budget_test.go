package budget

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// A ledger is a Team with a record.
type ledger struct {
	t     *testing.T
	heard chan wire.Event

	mu     sync.Mutex // a Keeper also looks when it is time
	record []wire.Event
	used   map[string]activity.Used // by task
	tasks  map[string][]wire.Task   // by agent
	did    []string
}

func newLedger(t *testing.T) *ledger {
	return &ledger{t: t, heard: make(chan wire.Event), used: make(map[string]activity.Used), tasks: make(map[string][]wire.Task)}
}

// holds makes agents work on tasks.
func (l *ledger) holds(agent string, tasks ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tasks[agent] = nil
	for _, id := range tasks {
		l.tasks[agent] = append(l.tasks[agent], wire.Task{ID: id, StartedAt: object.Timestamp(time.Now())})
	}
}

// takes makes an agent work on one more task.
func (l *ledger) takes(agent, task string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tasks[agent] = append(l.tasks[agent], wire.Task{ID: task, StartedAt: object.Timestamp(time.Now())})
}

// event records an event, and shows it to the Keeper if there is one.
func (l *ledger) event(keeps bool, e wire.Event) {
	l.mu.Lock()
	e.Seq, e.At = int64(len(l.record)+1), object.Timestamp(time.Now())
	l.record = append(l.record, e)
	l.mu.Unlock()
	if keeps {
		l.heard <- e
		synctest.Wait()
	}
}

// uses records that a turn of an agent has used tokens for a task.
func (l *ledger) uses(keeps bool, agent, task string, tokens int64) {
	u := activity.Usage{}
	u.Input = tokens
	l.mu.Lock()
	sum := l.used[task]
	sum.Add(u.Sum())
	l.used[task] = sum
	l.mu.Unlock()
	payload, err := object.Encode(u)
	require.NoError(l.t, err)
	l.event(keeps, wire.Event{Kind: events.AgentUsage, Agent: agent, Task: task, Payload: payload})
}

// keep starts a Keeper behind all that is recorded.
func (l *ledger) keep(limits map[string]Limit) *Keeper {
	k := Start(Options{Log: hclog.NewNullLogger(), Team: l, Latest: int64(len(l.record))}, limits)
	synctest.Wait()
	return k
}

func (l *ledger) Follow(ctx context.Context, since int64, send func(wire.Event) error) error {
	for _, e := range l.record[since:] {
		if err := send(e); err != nil {
			return err
		}
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-l.heard:
			if err := send(e); err != nil {
				return err
			}
		}
	}
}

func (l *ledger) Oldest(context.Context) int64 { return int64(len(l.record)) }

func (l *ledger) Held(_, task string) (wire.Task, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	used := l.used[task]
	return wire.Task{ID: task, Details: &wire.Details{Used: &used}}, true
}

func (l *ledger) Members() []Member { return []Member{{Name: "a"}, {Name: "b"}, {Name: "c"}} }

func (l *ledger) Spending(agent string) ([]wire.Task, activity.Used, activity.Used) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ofAgent, ofTeam activity.Used
	for task, used := range l.used {
		ofTeam.Add(used)
		for _, e := range l.record {
			if e.Task == task && e.Agent == agent {
				ofAgent.Add(used)
				break
			}
		}
	}
	return l.tasks[agent], ofAgent, ofTeam
}

func (l *ledger) Questions(int) []wire.Question { return nil }

// note notes a deed of a Keeper.
func (l *ledger) note(format string, args ...any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.did = append(l.did, fmt.Sprintf(format, args...))
	return nil
}

func (l *ledger) Tell(agent, text string)                  { _ = l.note("tell %s: %s", agent, text) }
func (l *ledger) Park(agent string, _ time.Time, _ string) { _ = l.note("park %s", agent) }
func (l *ledger) Ask(agent, task, _ string) error          { return l.note("ask about %s of %s", task, agent) }
func (l *ledger) Fail(agent, task, _ string) error         { return l.note("fail %s of %s", task, agent) }

func (l *ledger) AskAbout(agent, _ string, _ time.Time) error { return l.note("ask about %s", agent) }

// done returns the deeds of the Keepers since the last call.
func (l *ledger) done() []string {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	did := l.did
	l.did = nil
	return did
}

// TestTaskBudgetIsItsOwn checks that a task that has used up its budget stops neither the other tasks of its agent nor
// the agent.
func TestTaskBudgetIsItsOwn(t *testing.T) {
	for name, stop := range map[string]bool{"ask": false, "fail": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLedger(t)
				l.holds("coder", "greedy", "modest")
				k := l.keep(map[string]Limit{"coder": {Tokens: 100, Per: PerTask, Stop: stop}})
				defer k.Close()
				l.uses(true, "coder", "modest", 90)
				require.Equal(t, []string{"tell coder: has used 90% of its budget: 90 of 100 tokens, per task"}, l.done())
				l.uses(true, "coder", "greedy", 110)
				what := map[bool]string{false: "ask about greedy of coder", true: "fail greedy of coder"}[stop]
				require.Equal(t, []string{"tell coder: the budget is used up: 110 of 100 tokens, per task", what}, l.done())
			})
		})
	}
}

// TestSharedBudgets checks whom the budget of an agent, of a team and of a day stops.
func TestSharedBudgets(t *testing.T) {
	for _, per := range []string{PerAgent, PerDay} {
		t.Run(per, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLedger(t)
				l.holds("a", "one", "two")
				l.holds("b", "three")
				k := l.keep(map[string]Limit{"a": {Tokens: 100, Per: per}, "b": {Tokens: 100, Per: per}})
				defer k.Close()
				l.uses(true, "a", "one", 70)
				l.uses(true, "b", "three", 70)
				require.Empty(t, l.done(), "each agent has its own")
				l.uses(true, "a", "two", 40)
				require.Equal(t, []string{
					"tell a: the budget is used up: 110 of 100 tokens, per " + per, "park a", "ask about one of a", "ask about two of a",
				}, l.done())
			})
		})
	}
	t.Run(PerTeam, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLedger(t)
			l.holds("a", "one")
			k := l.keep(map[string]Limit{"a": {Tokens: 100, Per: PerTeam}, "b": {Tokens: 100, Per: PerTeam}, "c": {Tokens: 100, Per: PerAgent}})
			defer k.Close()
			l.uses(true, "b", "three", 70)
			l.uses(true, "a", "one", 40)
			then := l.done()
			require.Equal(t, "tell a: the budget is used up: 110 of 100 tokens, per team", then[0])
			require.ElementsMatch(t, []string{"park a", "park b"}, then[1:3])
			require.Equal(t, []string{"ask about one of a"}, then[3:])
		})
	})
}

// TestBudgetsAfterAStart checks that a Keeper knows the usage of today before it was started, also in tasks that have
// ended, and that yesterday does not count.
func TestBudgetsAfterAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(t)
		limits := map[string]Limit{"coder": {Tokens: 100, Per: PerDay}}
		l.uses(false, "coder", "yesterday", 1000)
		<-time.After(25 * time.Hour)
		l.holds("coder", "first")
		k := l.keep(limits)
		l.uses(true, "coder", "first", 70)
		l.event(true, wire.Event{Kind: events.TaskDone, Agent: "coder", Task: "first"})
		require.Empty(t, l.done())
		k.Close()

		l.holds("coder", "second")
		k = l.keep(limits)
		defer k.Close()
		require.Empty(t, l.done(), "what is past is not acted on again")
		l.uses(true, "coder", "second", 40)
		then := l.done()
		require.Equal(t, "tell coder: the budget is used up: 110 of 100 tokens, per day", then[0])
		require.Equal(t, []string{"ask about second of coder"}, then[2:])
	})
}

// TestAllowedBefore checks that a person's allowance counts after a start.
func TestAllowedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(t)
		l.holds("coder", "only")
		limits := map[string]Limit{"coder": {Tokens: 100, Per: PerAgent}}
		k := l.keep(limits)
		l.uses(true, "coder", "only", 110)
		asked, err := object.Encode(map[string]any{"question_id": "q", "options": Answers})
		require.NoError(t, err)
		l.event(true, wire.Event{Kind: events.TaskHelpWanted, Agent: "coder", Task: "only", Payload: asked})
		l.event(true, wire.Event{Kind: events.QuestionAnswered, Agent: "coder", Task: "only", Payload: []byte(`{"question_id":"q","answer":"go on"}`)})
		k.Close()
		l.done()
		k = l.keep(limits)
		defer k.Close()
		l.uses(true, "coder", "only", 40)
		require.Empty(t, l.done(), "150 of 200")
		l.uses(true, "coder", "only", 60)
		require.Equal(t, "tell coder: the budget is used up: 210 of 200 tokens, per agent", l.done()[0])
	})
}

// TestQuestionAboutAgent checks that a person is asked about an agent with a spent budget if no task of it waits for
// the answer, and only once.
func TestQuestionAboutAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(t)
		k := l.keep(map[string]Limit{"coder": {Tokens: 100, Per: PerAgent}, "other": {Tokens: 100, Per: PerTask}})
		defer k.Close()
		question := func(kind, agent, task, id string, more map[string]any) {
			more["question_id"] = id
			payload, err := object.Encode(more)
			require.NoError(t, err)
			l.event(true, wire.Event{Kind: kind, Agent: agent, Task: task, Payload: payload})
		}
		l.holds("coder", "only")
		l.uses(true, "coder", "only", 110)
		require.Contains(t, l.done(), "ask about only of coder")
		question(events.TaskHelpWanted, "coder", "only", "q1", map[string]any{"options": Answers})
		l.holds("coder")
		question(events.QuestionWithdrawn, "coder", "only", "q1", map[string]any{})
		require.Equal(t, []string{"ask about coder"}, l.done())
		l.uses(true, "coder", "only", 1)
		require.NotContains(t, l.done(), "ask about coder", "it has been asked")
		question(events.QuestionAsked, "coder", "", "q2", map[string]any{"own": true, "options": AnswersAbout})
		question(events.QuestionAsked, "coder", "", "q3", map[string]any{"options": AnswersAbout})
		question(events.QuestionAnswered, "coder", "", "q3", map[string]any{"answer": "go on"})
		require.Empty(t, l.done(), "the agent asked that itself")
		question(events.QuestionAnswered, "coder", "", "q2", map[string]any{"answer": "go on"})
		require.Equal(t, []string{"park coder"}, l.done(), "until a time in the past")
		l.uses(true, "coder", "only", 100)
		require.Contains(t, l.done(), "ask about coder", "211 of 200")
		question(events.QuestionAsked, "coder", "", "q4", map[string]any{"own": true, "options": AnswersAbout})
		question(events.QuestionAnswered, "coder", "", "q4", map[string]any{"answer": "stop"})
		require.Empty(t, l.done(), "it has no task that could fail")

		l.holds("other", "its")
		l.uses(true, "other", "its", 110)
		question(events.TaskHelpWanted, "other", "its", "q5", map[string]any{"options": Answers})
		l.done()
		question(events.QuestionWithdrawn, "other", "its", "q5", map[string]any{})
		require.Empty(t, l.done(), "the budget of a task stops no agent")
	})
}

// TestBudgetOfTime checks that the time of each task counts for itself.
func TestBudgetOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(t)
		k := l.keep(map[string]Limit{"coder": {Time: time.Hour, Per: PerTask, Stop: true}})
		defer k.Close()
		l.holds("coder", "early")
		<-time.After(30 * time.Minute)
		l.takes("coder", "late")
		<-time.After(31*time.Minute + time.Millisecond)
		did := l.done()
		require.Contains(t, did, "fail early of coder")
		require.NotContains(t, did, "fail late of coder")
	})
}

// TestBudgetOfTimeAndClock checks that the time of a budget that a person has raised continues when the clock is set
// back.
func TestBudgetOfTimeAndClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger(t)
		k := l.keep(map[string]Limit{"coder": {Time: time.Hour, Per: PerTask}})
		defer k.Close()
		l.holds("coder", "only")
		<-time.After(time.Hour + time.Millisecond)
		require.Contains(t, l.done(), "ask about only of coder")
		asked, err := object.Encode(map[string]any{"question_id": "q", "options": Answers})
		require.NoError(t, err)
		l.event(true, wire.Event{Kind: events.TaskHelpWanted, Agent: "coder", Task: "only", Payload: asked})
		l.event(true, wire.Event{Kind: events.QuestionAnswered, Agent: "coder", Task: "only", Payload: []byte(`{"question_id":"q","answer":"go on"}`)})
		l.done()
		l.event(true, wire.Event{Kind: events.OrchestratorClockSet, Payload: []byte(`{"by_ms":-1800000}`)}) // in half an hour
		<-time.After(31 * time.Minute)
		require.Contains(t, l.done(), "ask about only of coder")
	})
}
