package agents_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

// enough is a number of tasks beyond the number that is remembered.
const enough = 9000

// TestTasksThatAreForgotten checks that a task to which the program holds no reference is
// forgotten after many others.
func TestTasksThatAreForgotten(t *testing.T) {
	converse(t, func(t *talk) {
		lone, many := make(chan struct{}), make(chan struct{})
		done := t.leading(func(ctx context.Context, a *agents.Architect) error {
			held, err := a.Assign(ctx, "coder", boil("held"))
			if err != nil {
				return err
			}
			<-lone
			runtime.GC()
			_, err = held.Completion(ctx)
			<-many
			runtime.GC()
			ended, stop := context.WithTimeout(ctx, time.Second)
			defer stop()
			if _, known := a.Task(fmt.Sprint(enough - 1)).Completion(ended); known != nil {
				err = errors.Join(err, fmt.Errorf("the latest is gone: %w", known))
			}
			if _, forgotten := a.Task("0").Completion(ended); !errors.Is(forgotten, context.DeadlineExceeded) {
				err = errors.Join(err, errors.New("the oldest is still known"))
			}
			return err
		})
		assignment := t.hears(session.TypeTaskAssignment, nil)
		for n := range enough {
			t.say(spoken{from: coder, to: lead, kind: session.TypeTaskCompletion, payload: agents.Completion{TaskID: fmt.Sprint(n), Status: session.OutcomeCompleted}}.line())
		}
		synctest.Wait()
		close(lone)
		synctest.Wait()
		t.completes(assignment, agents.Completion{})
		close(many)
		require.NoError(t, <-done)
	})
}

// TestTidingsThatNobodyLooksFor checks that the number of unread messages of a kind is bounded,
// and that a completion is kept.
func TestTidingsThatNobodyLooksFor(t *testing.T) {
	converse(t, func(t *talk) {
		look := make(chan struct{})
		done := t.leading(func(ctx context.Context, a *agents.Architect) error {
			<-look
			completion, err := a.Task("kettle").Completion(ctx)
			if err == nil && completion.Summary != "it boils" {
				err = errors.New(completion.Summary)
			}
			for n := 100 - 64; n < 100 && err == nil; n++ {
				completion, err = a.Task("lid").Completion(ctx)
				if err == nil && completion.Summary != fmt.Sprint(n) {
					err = fmt.Errorf("%s in place of %d", completion.Summary, n)
				}
			}
			return err
		})
		say := func(task, summary string) {
			t.say(spoken{from: coder, to: lead, kind: session.TypeTaskCompletion, payload: agents.Completion{TaskID: task, Status: session.OutcomeCompleted, Summary: summary}}.line())
		}
		say("kettle", "it boils")
		for n := range 100 {
			say("lid", fmt.Sprint(n))
			t.say(spoken{from: judge, to: lead, kind: session.TypeFeedback, replyTo: "msg-1", payload: agents.Feedback{
				Type: session.FeedbackClarification, ActionRequired: true, TaskID: "kettle",
			}}.line())
			t.notify(agents.TaskUpdated, "kettle")
		}
		synctest.Wait()
		close(look)
		require.NoError(t, <-done)
	})
}

// A busy context runs a function of the test before its owner waits for it.
type busy struct {
	context.Context
	with chan func() // at most one
}

func (b busy) Done() <-chan struct{} {
	select {
	case do := <-b.with:
		do()
	default:
	}
	return b.Context.Done()
}

// TestTheLastWordInTheLastMoment checks that a result that has arrived counts, even if the
// context ends at the same time.
func TestTheLastWordInTheLastMoment(t *testing.T) {
	for range 20 { // it depends on chance which of the two is seen first
		converse(t, func(t *talk) {
			with := make(chan func(), 1)
			done := t.leading(func(ctx context.Context, a *agents.Architect) error {
				task, err := a.Assign(ctx, "coder", boil("kettle"))
				if err == nil {
					_, err = task.Completion(busy{Context: ctx, with: with})
				}
				return err
			})
			assignment := t.hears(session.TypeTaskAssignment, nil)
			t.notify(agents.TaskUpdated, "kettle")
			request := t.request("get-session")
			synctest.Wait()
			with <- func() { <-time.After(time.Minute) }
			t.answer(request, map[string]any{"tasks": []wire.SessionTask{{TaskID: "kettle", Phase: wire.PhaseOver, State: wire.TaskDone}}})
			synctest.Wait()
			<-time.After(30 * time.Second)
			t.completes(assignment, agents.Completion{})
			require.NoError(t, <-done)
		})
	}
}

// TestNumbersFarAhead checks that high sequence numbers of others do not exhaust an agent's
// numbers.
func TestNumbersFarAhead(t *testing.T) {
	converse(t, func(t *talk) {
		s := t.as(coder)
		for _, each := range []struct{ heard, said int64 }{{1 << 20, 1<<20 + 1}, {1 << 40, 1<<20 + 2}, {1<<20 + 7, 1<<20 + 8}} {
			t.deliver(spoken{seq: each.heard, from: lead, to: coder, kind: session.TypeStatusQuery, payload: map[string]any{}})
			var query *agents.Said
			for query = range t.agent.Talk(t.Context()) {
				break
			}
			done := doing(func() error { _, err := s.TellStatus(t.Context(), query, agents.Status{}); return err })
			require.Equal(t, each.said, t.hears(session.TypeStatusResponse, nil).SequenceNumber)
			require.NoError(t, <-done)
		}
	})
}
