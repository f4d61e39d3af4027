package agents_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// serving runs ServeAs with one skill in the background and returns the channel of its error.
func (t *talk) serving(ctx context.Context, capacity int, skill agents.Skill) <-chan error {
	done := make(chan error, 1)
	server := agents.Server{Agent: "baker", Capacity: capacity, Skills: map[string]agents.Skill{"bake": skill}}
	go func() { done <- t.agent.ServeAs(ctx, server) }()
	return done
}

// hand delegates a job to the agent and waits until the agent is idle.
func (t *talk) hand(id string) {
	t.Helper()
	require.NoError(t, t.peer.Hand(delegation.Request{ID: id, Type: "bake"}))
	synctest.Wait()
}

func (t *talk) act(act delegation.Act) {
	t.Helper()
	require.NoError(t, t.peer.Act(act))
	synctest.Wait()
}

// responds expects a response with a status for a job.
func (t *talk) responds(id, status string) *agents.Response {
	t.Helper()
	line, message, err := t.peer.Hear()
	require.NoError(t, err)
	report, ok := message.(*wire.AgentEvent)
	require.True(t, ok && report.Name == wire.ReportTaskResponse, line)
	response := &agents.Response{Response: report.Body.(*delegation.Response)}
	require.Equal(t, []string{id, status}, []string{response.ID, response.Status}, line)
	return response
}

// untilOver is a skill that waits until its context ends.
func untilOver(ctx context.Context, _ *agents.Delegated) (any, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func TestServeASkillThatPanics(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.serving(t.Context(), 1, func(_ context.Context, job *agents.Delegated) (any, error) {
			if job.ID == "a" {
				panic("no flour")
			}
			return "bread", nil
		})
		t.hand("a")
		var trouble activity.Trouble
		require.NoError(t, object.DecodeOwn(t.report("error").Payload, &trouble))
		require.Equal(t, "a", trouble.TaskID)
		require.Equal(t, "the skill panicked: no flour", trouble.Error)
		require.Contains(t, trouble.Stack, "serve_test.go")
		require.Equal(t, &delegation.Fault{Code: delegation.FaultInternal, Message: "the skill panicked: no flour"}, t.responds("a", delegation.Failed).Fault)
		t.hand("b")
		t.responds("b", delegation.Completed)
		t.peer.End()
		require.NoError(t, <-done)
	})
}

// Each job has exactly one final response, and at most as many run at a time as the capacity
// allows.
func TestServeManyAtATime(t *testing.T) {
	const jobs, capacity = 300, 7
	converse(t, func(t *talk) {
		var mu sync.Mutex
		now, most := 0, 0
		enter := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			now += n
			most = max(most, now)
		}
		done := t.serving(t.Context(), capacity, func(ctx context.Context, job *agents.Delegated) (any, error) {
			enter(+1)
			_ = job.Progress("at work")
			enter(-1)
			if _, err := job.Ask(ctx, "Which?"); err != nil {
				return nil, err // a cancelled job has no place
			}
			enter(+1)
			defer enter(-1)
			return job.ID, nil
		})
		go func() {
			for i := range jobs {
				_ = t.peer.Hand(delegation.Request{ID: fmt.Sprint(i), Type: "bake"})
				_ = t.peer.Act(delegation.Act{ID: fmt.Sprint(i), Type: delegation.ActStatus})
			}
		}()
		ends := make(map[string]string)
		for len(ends) < jobs {
			line, _, err := t.peer.Hear()
			require.NoError(t, err)
			r, wrong := wire.ReadTaskResponse([]byte(line), 100)
			require.Nil(t, wrong, line)
			if end := ends[r.ID]; end != "" { // the status was requested after its end
				require.Equal(t, end, r.Status, line)
				continue
			}
			switch r.Status {
			case delegation.InputRequired:
				act := delegation.Act{ID: r.ID, Type: delegation.ActUpdate, Input: wire.Raw("1")}
				if strings.HasSuffix(r.ID, "3") {
					act.Type = delegation.ActCancel
				}
				go func() { _ = t.peer.Act(act) }()
			case delegation.Completed, delegation.Cancelled:
				ends[r.ID] = r.Status
			}
		}
		for id, status := range ends {
			require.Equal(t, strings.HasSuffix(id, "3"), status == delegation.Cancelled, id)
		}
		require.LessOrEqual(t, most, capacity)
		t.peer.End()
		require.NoError(t, <-done)
	})
}

// A job has one final response even if it ends at the moment of its cancellation.
func TestServeTheEndAndItsCancellation(t *testing.T) {
	for range 50 {
		converse(t, func(t *talk) {
			finish := make(chan struct{})
			done := t.serving(t.Context(), 0, func(context.Context, *agents.Delegated) (any, error) {
				<-finish
				return "bread", nil
			})
			t.hand("a")
			go close(finish)
			go func() { _ = t.peer.Act(delegation.Act{ID: "a", Type: delegation.ActCancel}) }()
			r, err := t.peer.Response()
			require.NoError(t, err)
			require.Contains(t, []string{delegation.Completed, delegation.Cancelled}, r.Status)
			t.peer.End()
			requireSilence(t)
			require.NoError(t, <-done)
		})
	}
}

func TestServeUntilItsContextEnds(t *testing.T) {
	converse(t, func(t *talk) {
		ctx, stop := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		done := t.serving(ctx, 0, func(ctx context.Context, job *agents.Delegated) (any, error) {
			<-ctx.Done()
			if job.ID == "a" {
				return "in time", nil
			}
			return nil, fmt.Errorf("given up: %w", context.Cause(ctx))
		})
		t.hand("a")
		t.hand("b")
		stop(enough)
		t.responds("a", delegation.Completed)
		require.Equal(t, enough, <-done)

		done = t.serving(t.Context(), 0, untilOver) // the connection stays open and remembers jobs
		t.act(delegation.Act{ID: "a", Type: delegation.ActStatus})
		require.Equal(t, `"in time"`, string(t.responds("a", delegation.Completed).Result))
		t.hand("c")
		require.NoError(t, t.peer.Notify(agents.Shutdown, nil))
		require.EqualError(t, <-done, "1 of the tasks left unfinished: the agent is to shut down")
		requireSilence(t)
	})
}

// Status requests are answered until the last skill has returned.
func TestServeAfterItsContextEnds(t *testing.T) {
	converse(t, func(t *talk) {
		ctx, stop := context.WithCancelCause(t.Context())
		enough, finish := errors.New("enough"), make(chan struct{})
		done := t.serving(ctx, 1, func(context.Context, *agents.Delegated) (any, error) {
			<-finish
			return "in time", nil
		})
		t.hand("a")
		t.hand("b")
		stop(enough)
		synctest.Wait()
		for _, about := range [][2]string{{"a", delegation.InProgress}, {"b", delegation.Pending}} {
			t.act(delegation.Act{ID: about[0], Type: delegation.ActStatus})
			t.responds(about[0], about[1])
		}
		t.act(delegation.Act{ID: "b", Type: delegation.ActCancel})
		t.responds("b", delegation.Cancelled)
		close(finish)
		t.responds("a", delegation.Completed)
		require.Equal(t, enough, <-done)
	})
}

func TestServeOnAStreamThatBreaks(t *testing.T) {
	in, say := io.Pipe()
	conn := agents.Connect(in, brokenPipe{})
	done := make(chan error, 1)
	go func() { done <- conn.Serve(t.Context(), map[string]agents.Skill{"bake": untilOver}) }()
	_, err := io.WriteString(say, `{"id":"a","type":"bake","payload":{}}`+"\n"+`{"id":"a","type":"task.status","payload":{}}`+"\n")
	require.NoError(t, err)
	require.ErrorIs(t, <-done, io.ErrClosedPipe)
	require.NoError(t, say.Close())
	require.NoError(t, conn.Wait())
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// The memory for ended jobs is bounded, and so is the one for messages that arrive while the
// agent does not serve.
func TestServeForALongTime(t *testing.T) {
	converse(t, func(t *talk) {
		for range 1000 {
			require.NoError(t, t.peer.Act(delegation.Act{ID: "a", Type: delegation.ActStatus}))
		}
		require.NoError(t, t.peer.Hand(delegation.Request{ID: "a", Type: "bake"}))
		for range 1000 {
			require.NoError(t, t.peer.Act(delegation.Act{ID: "a", Type: delegation.ActStatus}))
		}
		synctest.Wait()
		let := make(chan struct{})
		done := t.serving(t.Context(), 0, func(context.Context, *agents.Delegated) (any, error) {
			<-let
			return strings.Repeat("x", 5<<20), nil
		})
		r, err := t.peer.Response()
		require.NoError(t, err)
		require.Contains(t, []string{delegation.Pending, delegation.InProgress}, r.Status)
		close(let)
		t.responds("a", delegation.Completed)
		t.act(delegation.Act{ID: "a", Type: delegation.ActStatus})
		t.responds("a", delegation.Completed)
		t.hand("b")
		t.responds("b", delegation.Completed)
		t.act(delegation.Act{ID: "a", Type: delegation.ActStatus}) // the request is dropped
		t.act(delegation.Act{ID: "b", Type: delegation.ActStatus})
		t.responds("b", delegation.Completed)
		for i := range 5000 {
			require.NoError(t, t.peer.Notify(agents.TaskUpdated, wire.TaskNotice{TaskID: fmt.Sprint(i)}))
		}
		t.peer.End()
		require.NoError(t, <-done)
		count := 0
		for range t.agent.News(t.Context()) {
			count++
		}
		require.Equal(t, 4096, count, "notices that nobody takes")
	})
}

func TestWhatASkillMaySay(t *testing.T) {
	converse(t, func(t *talk) {
		jobs := make(chan *agents.Delegated, 1)
		done := t.serving(t.Context(), 0, func(ctx context.Context, job *agents.Delegated) (any, error) {
			jobs <- job
			_, err := job.Ask(ctx, " ")
			require.ErrorContains(t, err, "a question needs words")
			_, err = job.Ask(ctx, "Which?", wire.Option{Value: "r"}, wire.Option{Value: "r"})
			require.ErrorContains(t, err, "options that differ")
			require.ErrorContains(t, job.Artifact(" ", "text/plain", ""), "name must not be empty")
			require.ErrorContains(t, job.Artifact("crumbs", "", ""), "type must not be empty")
			_, err = job.Delegate(ctx, delegation.Request{Type: "mill", Payload: wire.Raw(`{},"id":"another"`)})
			require.ErrorContains(t, err, "it cannot be said")
			soon, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			_, err = job.Ask(soon, "Which?")
			require.ErrorIs(t, err, context.DeadlineExceeded)
			return nil, fmt.Errorf("in the end: %w", &agents.Fault{Code: "NO_ANSWER", Message: "nobody knows", Recoverable: true})
		})
		t.hand("a")
		require.Equal(t, "Which?", t.responds("a", delegation.InputRequired).Question)
		job := <-jobs
		require.NoError(t, job.Progress("which is not said while it asks"))
		t.responds("a", delegation.InProgress) // the job continues without input
		require.Equal(t, &delegation.Fault{Code: "NO_ANSWER", Message: "nobody knows", Recoverable: true}, t.responds("a", delegation.Failed).Fault)
		synctest.Wait()
		require.EqualError(t, job.Progress(""), "the task is over")
		require.ErrorContains(t, job.Artifact("crumbs", "text/plain", ""), "the task is over")
		_, err := job.Ask(t.Context(), "Which?")
		require.ErrorContains(t, err, "the task is over")
		t.peer.End()
		require.NoError(t, <-done)
	})
}

// Concurrent questions of a job are asked one at a time.
func TestTwoWhoAsk(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.serving(t.Context(), 1, func(ctx context.Context, job *agents.Delegated) (any, error) {
			var both sync.WaitGroup
			var inputs [2]wire.Raw
			var errs [2]error
			for i := range 2 {
				both.Go(func() { inputs[i], errs[i] = job.Ask(ctx, "Which?") })
			}
			both.Wait()
			return inputs[:], errors.Join(errs[:]...)
		})
		t.hand("a")
		for range 2 {
			t.responds("a", delegation.InputRequired)
			t.act(delegation.Act{ID: "a", Type: delegation.ActUpdate, Input: wire.Raw("1.50")})
			t.responds("a", delegation.InProgress)
		}
		require.Equal(t, `[1.50,1.50]`, string(t.responds("a", delegation.Completed).Result))
		t.hand("b")
		t.responds("b", delegation.InputRequired)
		t.peer.End()
		require.Error(t, <-done)
	})
}

// A job that is cancelled and delegated again begins when the first skill has returned.
func TestAJobThatIsCancelledAgainAndAgain(t *testing.T) {
	converse(t, func(t *talk) {
		let, count := make(chan struct{}), make(chan int, 10)
		done := t.serving(t.Context(), 0, func(_ context.Context, job *agents.Delegated) (any, error) {
			count <- len(count)
			<-let // ignores its context
			return "bread", nil
		})
		for range 3 {
			t.hand("a")
			t.act(delegation.Act{ID: "a", Type: delegation.ActCancel})
			t.responds("a", delegation.Cancelled)
		}
		t.hand("a")
		require.Len(t, count, 1)
		close(let)
		t.responds("a", delegation.Completed)
		require.Len(t, count, 2)
		t.peer.End()
		require.NoError(t, <-done)
	})
}
