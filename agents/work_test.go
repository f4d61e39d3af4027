package agents_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
)

// working runs Work in the background and returns the channel of its error.
func (t *talk) working(ctx context.Context, do agents.Handler) <-chan error {
	done := make(chan error, 1)
	go func() { done <- t.agent.Work(ctx, do) }()
	return done
}

// assign assigns a task to the agent, answers its get-task, and waits until the handler runs.
func (t *talk) assign(name string) {
	t.Helper()
	t.notify(agents.TaskAssigned, "task-"+name)
	request := t.request("get-task")
	require.JSONEq(t, `{"taskId":"task-`+name+`"}`, string(request.Payload))
	t.answer(request, taskNamed(name))
	synctest.Wait()
}

// settled expects a request with this payload, such as the outcome of a task.
func (t *talk) settled(operation, payload string) *wire.Request {
	t.Helper()
	request := t.request(operation)
	require.JSONEq(t, payload, string(request.Payload))
	return request
}

// untilStopped is a handler that waits until its context ends.
func untilStopped(ctx context.Context, _ wire.Task) (any, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func TestWork(t *testing.T) {
	for name, each := range map[string]struct {
		result            any
		err               error
		operation, report string
	}{
		"a document": {result: wire.Raw(delicate), operation: "complete-task", report: `{"taskId":"task-x","result":` + delicate + `}`},
		"a text":     {result: "done", operation: "complete-task", report: `{"taskId":"task-x","result":"done"}`},
		"nothing":    {operation: "complete-task", report: `{"taskId":"task-x"}`},
		"an error":   {err: errors.New("no luck"), operation: "fail-task", report: `{"taskId":"task-x","error":"no luck"}`},
		"no word":    {err: errors.New(" "), operation: "fail-task", report: `{"taskId":"task-x","error":"it failed without a word"}`},
		"no sense": {
			result: func() {}, operation: "fail-task",
			report: `{"taskId":"task-x","error":"its result cannot be told: spelling func(): `, // the rest varies by Go version
		},
		"no text": {
			result: wire.Raw(`"\ud800"`), operation: "fail-task",
			report: `{"taskId":"task-x","error":"its result cannot be told: complete-task: it cannot be said: the request: it contains half of a character, an escape such as \\ud800 without its other half"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			converse(t, func(t *talk) {
				done := t.working(t.Context(), func(_ context.Context, task wire.Task) (any, error) {
					if task.ID != "task-x" || task.State != wire.TaskRunning {
						t.Errorf("it was given %+v", task)
					}
					return each.result, each.err
				})
				t.assign("x")
				request := t.request(each.operation)
				require.Contains(t, string(request.Payload), each.report)
				t.answer(request, taskNamed("x"))
				require.NoError(t, t.peer.Notify(agents.Shutdown, wire.ShutdownNotice{GracePeriod: 1000}))
				require.NoError(t, <-done)
			})
		})
	}
}

func TestWorkAtSeveralTasks(t *testing.T) {
	converse(t, func(t *talk) {
		finish := map[string]chan struct{}{"one": make(chan struct{}), "two": make(chan struct{})}
		done := t.working(t.Context(), func(_ context.Context, task wire.Task) (any, error) {
			<-finish[task.Name]
			return task.Name, nil
		})
		t.assign("one")
		t.assign("two")
		t.notify(agents.TaskAssigned, "task-one") // again, which has no effect
		synctest.Wait()
		close(finish["two"])
		t.answer(t.settled("complete-task", `{"taskId":"task-two","result":"two"}`), taskNamed("two"))
		close(finish["one"])
		t.answer(t.settled("complete-task", `{"taskId":"task-one","result":"one"}`), taskNamed("one"))
		t.peer.End()
		require.NoError(t, <-done)
	})
}

func TestWorkThatIsCancelled(t *testing.T) {
	converse(t, func(t *talk) {
		why, let := make(chan error, 2), make(chan struct{})
		done := t.working(t.Context(), func(ctx context.Context, task wire.Task) (any, error) {
			<-ctx.Done()
			why <- context.Cause(ctx)
			<-let // a slow handler
			return nil, nil
		})
		t.assign("x")
		t.notify(agents.TaskCancelled, "task-nobody-has")
		t.notify(agents.TaskCancelled, "task-x")
		cause := <-why
		require.ErrorIs(t, cause, agents.ErrCancelled)
		require.EqualError(t, cause, "the task was cancelled: for a test")

		t.assign("x") // while the first handler is still running
		close(let)
		synctest.Wait()
		t.notify(agents.TaskCancelled, "task-x")
		require.ErrorIs(t, <-why, agents.ErrCancelled)
		require.NoError(t, t.peer.Notify(agents.Shutdown, nil))
		require.NoError(t, <-done)
		requireSilence(t)
	})
}

// TestWorkThatEndedBeforeItBegan checks that a handler is not called for a task that has ended
// or was cancelled before it began.
func TestWorkThatEndedBeforeItBegan(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.working(t.Context(), func(context.Context, wire.Task) (any, error) {
			t.Error("there was nothing to do")
			return nil, nil
		})
		t.notify(agents.TaskAssigned, "task-1")
		t.answer(t.request("get-task"), &wire.TaskReply{Task: wire.Task{ID: "task-1", State: wire.TaskDone}})

		t.notify(agents.TaskAssigned, "task-2")
		request := t.request("get-task")
		t.notify(agents.TaskCancelled, "task-2")
		synctest.Wait()
		t.answer(request, taskNamed("2"))

		t.notify(agents.TaskAssigned, "task-3")
		require.NoError(t, t.peer.Refuse(t.request("get-task").ID, &wire.Error{Code: wire.CodeDenied, Message: "not yours"}))
		require.Contains(t, string(t.report("log").Payload), "not yours")

		t.say(`{"type":"notify:task-assigned","payload":{"taskId":7}}`)
		t.say(`{"type":"notify:task-assigned","payload":{}}`)
		t.peer.End()
		require.NoError(t, <-done)
		requireSilence(t)
	})
}

func TestWorkThatPanics(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.working(t.Context(), func(context.Context, wire.Task) (any, error) { panic("oh no") })
		t.assign("x")
		trouble := string(t.report("error").Payload)
		require.Contains(t, trouble, "work_test.go")
		require.Contains(t, trouble, `"recoverable":true`, "the report alone fails the task")
		t.answer(t.settled("fail-task", `{"taskId":"task-x","error":"the handler panicked: oh no"}`), taskNamed("x"))
		t.peer.End()
		require.NoError(t, <-done, "the agent lives on")
	})
}

// TestTheLastWords checks that the outcome is still sent during a shutdown, when stdin is closed
// and no answer can arrive.
func TestTheLastWords(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.working(t.Context(), func(ctx context.Context, task wire.Task) (any, error) {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), agents.ErrShutdown) {
				t.Error(context.Cause(ctx))
			}
			<-time.After(time.Second)
			if task.Name == "bad" {
				return nil, errors.New("no luck")
			}
			return "in time", nil
		})
		t.assign("good")
		require.NoError(t, t.peer.Notify(agents.Shutdown, wire.ShutdownNotice{GracePeriod: 3000}))
		t.peer.End()
		t.settled("complete-task", `{"taskId":"task-good","result":"in time"}`)
		require.NoError(t, <-done)
	})
	converse(t, func(t *talk) {
		finish := make(chan struct{})
		done := t.working(t.Context(), func(ctx context.Context, task wire.Task) (any, error) {
			<-finish
			return nil, errors.New("no luck")
		})
		t.assign("bad")
		close(finish)
		t.settled("fail-task", `{"taskId":"task-bad","error":"no luck"}`)
		t.peer.End() // while the request waits for its answer
		require.NoError(t, <-done)
	})
}

func TestWorkThatIsLeftUnfinished(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.working(t.Context(), untilStopped)
		t.assign("x")
		t.assign("y")
		require.NoError(t, t.peer.Notify(agents.Shutdown, nil))
		t.peer.End()
		err := <-done
		require.ErrorIs(t, err, agents.ErrShutdown)
		require.ErrorContains(t, err, "2 of the tasks left unfinished")
		requireSilence(t)
	})
	converse(t, func(t *talk) {
		done := t.working(t.Context(), func(ctx context.Context, _ wire.Task) (any, error) {
			answer, err := t.agent.AskUser(context.WithoutCancel(ctx), wire.AskUser{Question: "why?"})
			return answer, err
		})
		t.assign("x")
		t.request("ask-user")
		t.peer.End()
		require.ErrorIs(t, <-done, io.EOF, "nobody will ever answer, which is no fault of the task")
		requireSilence(t)
	})
	converse(t, func(t *talk) {
		done := t.working(t.Context(), untilStopped)
		t.notify(agents.TaskAssigned, "task-x")
		t.request("get-task")
		require.NoError(t, t.peer.Notify(agents.Shutdown, nil))
		require.ErrorIs(t, <-done, agents.ErrShutdown)
	})
}

func TestWorkUntilItsContextEnds(t *testing.T) {
	converse(t, func(t *talk) {
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		done := t.working(ctx, untilStopped)
		t.assign("x")
		require.ErrorIs(t, <-done, context.DeadlineExceeded)
		requireSilence(t)
	})
}

// TestWorkAboveTheRateLimit checks that a result over the rate limit is sent again until
// accepted.
func TestWorkAboveTheRateLimit(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.working(t.Context(), func(context.Context, wire.Task) (any, error) { return "done", nil })
		t.assign("x")
		limited := &wire.Error{Code: wire.CodeLimited, Message: "too many messages"}
		first := t.request("complete-task")
		require.NoError(t, t.peer.Refuse(first.ID, limited))
		second := t.request("complete-task")
		require.NotEqual(t, first.ID, second.ID, "the same id would be given the same answer")
		require.NoError(t, t.peer.Refuse(second.ID, limited))
		t.peer.End() // while it waits before the next attempt
		t.settled("complete-task", `{"taskId":"task-x","result":"done"}`)
		require.NoError(t, <-done)
	})
	converse(t, func(t *talk) {
		done := t.working(t.Context(), untilStopped)
		t.notify(agents.TaskAssigned, "task-x")
		require.NoError(t, t.peer.Refuse(t.request("get-task").ID, &wire.Error{Code: wire.CodeLimited, Message: "too many messages"}))
		synctest.Wait()
		t.notify(agents.TaskCancelled, "task-x") // while it waits
		t.peer.End()
		require.NoError(t, <-done)
	})
}

func TestResultsThatAreRefused(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.working(t.Context(), func(context.Context, wire.Task) (any, error) {
			return map[string]string{"$schema": "orchestratia/task-result/v1"}, nil
		})
		t.assign("x")
		request := t.settled("complete-task", `{"taskId":"task-x","result":{"$schema":"orchestratia/task-result/v1"}}`)
		require.NoError(t, t.peer.Refuse(request.ID, &wire.Error{Code: wire.CodeInvalid, Message: "result.summary is missing"}))
		t.answer(t.settled("fail-task", `{"taskId":"task-x","error":"its result was refused: result.summary is missing"}`), taskNamed("x"))

		t.assign("y")
		require.NoError(t, t.peer.Refuse(t.request("complete-task").ID, &wire.Error{Code: wire.CodeConflict, Message: "it has ended"}))
		require.Contains(t, string(t.report("log").Payload), "it has ended", "there is nothing left to fail")
		t.peer.End()
		require.NoError(t, <-done)
	})
}

func TestWorkWithoutAVoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, say := io.Pipe()
		broken := errors.New("broken")
		conn := agents.Connect(in, failing{broken})
		done := make(chan error, 1)
		go func() { done <- conn.Work(t.Context(), untilStopped) }()
		_, err := io.WriteString(say, `{"type":"notify:task-assigned","payload":{"taskId":"x"}}`+"\n")
		require.NoError(t, err)
		require.ErrorIs(t, <-done, broken, "an agent that cannot report must not go on")
		require.NoError(t, say.Close())
		require.NoError(t, conn.Wait())
	})
}

// requireSilence requires that the agent sends nothing and is not blocked in a write.
func requireSilence(t *talk) {
	t.Helper()
	synctest.Wait()
	heard := make(chan string, 1)
	go func() {
		line, _, _ := t.peer.Hear()
		heard <- line
	}()
	synctest.Wait()
	select {
	case line := <-heard:
		require.Empty(t, line)
	default:
	}
}
