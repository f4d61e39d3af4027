package agents_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// delegating delegates a task and returns the request that the orchestrator receives.
func (t *talk) delegating(id string) (*agents.Delegation, *delegation.Request) {
	t.Helper()
	heard := make(chan *delegation.Request, 1)
	go func() {
		request, _ := t.peer.Delegated()
		heard <- request
	}()
	d, err := t.agent.Delegate(t.Context(), delegation.Request{ID: id, Type: "bake"})
	require.NoError(t, err)
	return d, <-heard
}

func (t *talk) respond(r delegation.Response) {
	t.Helper()
	require.NoError(t, t.peer.Respond(r))
	synctest.Wait()
}

func TestDelegateToTheOrchestrator(t *testing.T) {
	converse(t, func(t *talk) {
		go func() {
			_, _ = t.agent.Delegate(t.Context(), delegation.Request{Type: "bake", Payload: wire.Raw("{\n \"n\": 1.50\n}")})
		}()
		line, message, err := t.peer.Hear()
		require.NoError(t, err)
		request, ok := message.(*wire.Request)
		require.True(t, ok, line)
		require.Equal(t, "submit-task-request", request.Operation)
		require.Equal(t, `{"n":1.50}`, string(request.Body.(*delegation.Request).Payload))
	})
}

// All callers that wait for a delegation receive its result.
func TestManyWaitForOneDelegation(t *testing.T) {
	converse(t, func(t *talk) {
		d, _ := t.delegating("a")
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				r, err := d.Wait(t.Context())
				var made struct{ Loaves int }
				require.NoError(t, errors.Join(err, r.Read(&made)))
			})
		}
		taken := make(chan string, 100)
		for range 5 {
			all.Go(func() {
				for r := range d.Responses(t.Context()) {
					taken <- r.Status
				}
			})
		}
		for range 20 {
			t.respond(delegation.Response{ID: "a", Status: delegation.InProgress})
		}
		t.respond(delegation.Response{ID: "a", Status: delegation.Completed, Result: wire.Raw(`{"loaves":2}`)})
		all.Wait()
		require.Len(t, taken, 21, "each is taken once")
	})
}

func TestResponsesThatNobodyTakesAreBounded(t *testing.T) {
	converse(t, func(t *talk) {
		d, _ := t.delegating("a")
		for range 200 {
			t.respond(delegation.Response{ID: "a", Status: delegation.InProgress})
		}
		t.respond(delegation.Response{ID: "a", Status: delegation.Completed})
		var all []string
		for r := range d.Responses(t.Context()) {
			all = append(all, r.Status)
		}
		require.Len(t, all, 64)
		require.Equal(t, delegation.Completed, all[63])
	})
}

// The answer to an abandoned act is not taken for the answer to another.
func TestAnActThatIsLeftAlone(t *testing.T) {
	converse(t, func(t *talk) {
		d, _ := t.delegating("a")
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := d.Status(ctx)
			done <- err
		}()
		line, _, err := t.peer.Hear()
		require.NoError(t, err)
		require.JSONEq(t, `{"id":"a","type":"task.status","payload":{}}`, line)
		stop()
		require.ErrorIs(t, <-done, context.Canceled)
		require.NoError(t, t.peer.Refuse("a", &wire.Error{Code: wire.CodeLimited, Message: "too much"}))
		t.respond(delegation.Response{ID: "a", Status: delegation.Completed})
		_, err = d.Wait(t.Context())
		require.NoError(t, err, "the task was not refused")
		require.NoError(t, t.peer.Refuse("a", &wire.Error{Code: wire.CodeLimited, Message: "which is about nothing"}))

		_, err = t.agent.Delegate(ctx, delegation.Request{ID: "b", Type: "bake"})
		require.ErrorIs(t, err, context.Canceled)
		t.delegating("b") // the request was not sent, so its id is free
	})
}

func TestADelegationThatCannotBeWritten(t *testing.T) {
	in, say := io.Pipe()
	conn := agents.Connect(in, brokenPipe{})
	for range 2 {
		_, err := conn.Delegate(t.Context(), delegation.Request{ID: "a", Type: "bake"})
		require.ErrorIs(t, err, io.ErrClosedPipe)
	}
	require.NoError(t, say.Close())
	require.NoError(t, conn.Wait())
}

// A job that waits for several parts at once releases its place once, and takes one again to
// continue.
func TestAJobThatWaitsForSeveral(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.serving(t.Context(), 1, func(ctx context.Context, job *agents.Delegated) (any, error) {
			if job.ID != "a" {
				return job.ID, nil
			}
			var all sync.WaitGroup
			for i := range 5 {
				d, err := job.Delegate(ctx, delegation.Request{ID: fmt.Sprint(i), Type: "mill"})
				if err != nil {
					return nil, err
				}
				if i == 4 { // the skill does not wait for this one
					go func() { _, _ = d.Wait(t.Context()) }()
					continue
				}
				all.Go(func() { _, _ = d.Wait(ctx) })
			}
			all.Wait()
			return nil, nil
		})
		go func() { _ = t.peer.Hand(delegation.Request{ID: "a", Type: "bake"}) }()
		for range 5 {
			request, err := t.peer.Delegated()
			require.NoError(t, err)
			require.Equal(t, "a", request.Context.ParentTaskID)
		}
		t.hand("b")
		t.responds("b", delegation.Completed)
		for i := range 4 {
			t.respond(delegation.Response{ID: fmt.Sprint(i), Status: delegation.Completed})
		}
		t.responds("a", delegation.Completed)
		t.respond(delegation.Response{ID: "4", Status: delegation.Failed})
		for _, id := range []string{"c", "d"} {
			t.hand(id)
			t.responds(id, delegation.Completed)
		}
		t.peer.End()
		require.NoError(t, <-done)
	})
}

// All parts of a job may complete at once. The job then takes one place, which no other job has.
func TestAJobForWhichAllComesAtOnce(t *testing.T) {
	const parts = 20
	converse(t, func(t *talk) {
		done := t.serving(t.Context(), 1, func(ctx context.Context, job *agents.Delegated) (any, error) {
			var all sync.WaitGroup
			for i := range parts {
				d, err := job.Delegate(ctx, delegation.Request{ID: fmt.Sprint(job.ID, i), Type: "mill"})
				if err != nil {
					return nil, err
				}
				all.Go(func() { _, _ = d.Wait(ctx) })
			}
			all.Wait()
			return nil, job.Progress("")
		})
		for _, id := range []string{"a", "b", "c"} {
			t.hand(id)
			for range parts {
				_, err := t.peer.Delegated()
				require.NoError(t, err)
			}
			synctest.Wait()
		}
		go func() {
			for i := range parts {
				for _, id := range []string{"a", "b", "c"} {
					_ = t.peer.Respond(delegation.Response{ID: fmt.Sprint(id, i), Status: delegation.Completed})
				}
			}
		}()
		for range 3 {
			r, err := t.peer.Response()
			require.NoError(t, err)
			require.Equal(t, delegation.InProgress, r.Status)
			t.responds(r.ID, delegation.Completed)
		}
		t.peer.End()
		require.NoError(t, <-done)
	})
}

// Input is not lost if it arrives before the job has reported that it continues without it.
func TestInputThatComesAsTheLimitDoes(t *testing.T) {
	converse(t, func(t *talk) {
		soon, stop := context.WithCancel(t.Context())
		done := t.serving(t.Context(), 0, func(_ context.Context, job *agents.Delegated) (any, error) {
			return job.Ask(soon, "Which?")
		})
		t.hand("a")
		t.responds("a", delegation.InputRequired)
		go func() { _ = t.agent.Log("info", "which nobody reads so far", nil) }()
		synctest.Wait()
		t.act(delegation.Act{ID: "a", Type: delegation.ActUpdate, Input: wire.Raw(`"rye"`)}) // processed when its turn comes
		stop()
		synctest.Wait()
		t.report("log")
		t.responds("a", delegation.InProgress)
		require.Equal(t, `"rye"`, string(t.responds("a", delegation.Completed).Result))
		t.peer.End()
		require.NoError(t, <-done)
	})
}

// An agent that does not serve keeps the latest job messages and reports how many it dropped.
func TestWhatIsAskedWhileNobodyServes(t *testing.T) {
	converse(t, func(t *talk) {
		require.NoError(t, t.peer.Notify(agents.Shutdown, nil))
		for i := range 1500 {
			require.NoError(t, t.peer.Hand(delegation.Request{ID: fmt.Sprint(i), Type: "bake"}))
		}
		var told activity.LogEntry
		require.NoError(t, object.DecodeOwn(t.report("log").Payload, &told))
		require.Equal(t, "501 of the messages that ask this agent for work were dropped: the agent does not serve", told.Message)
		skill := func(context.Context, *agents.Delegated) (any, error) { return nil, nil }
		require.NoError(t, <-t.serving(t.Context(), 1, skill), "the agent is to go, and nothing begins")
		done := t.serving(t.Context(), 1, skill)
		for i := 501; i < 1500; i++ {
			t.responds(fmt.Sprint(i), delegation.Completed)
		}
		t.peer.End()
		require.NoError(t, <-done)
	})
}
