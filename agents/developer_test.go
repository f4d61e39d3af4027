package agents_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/agents"
	"orchestrator/wire"
	"orchestrator/wire/session"
)

// developing calls DevelopAs in the background and returns the channel of its error.
func (t *talk) developing(d agents.Developer) <-chan error {
	s := t.as(coder)
	return doing(func() error { return s.DevelopAs(t.Context(), d) })
}

// assigned assigns a task to the agent and expects the acknowledgment.
func (t *talk) assigned(id, task string) {
	t.Helper()
	t.deliver(spoken{id: id, from: lead, to: coder, kind: session.TypeTaskAssignment, payload: boil(task)})
	ack := t.hears(session.TypeAcknowledgment, nil)
	require.Equal(t, id, ack.ReplyTo)
	synctest.Wait()
}

func (t *talk) aborted(scope, target string) {
	t.Helper()
	t.deliver(spoken{from: lead, to: coder, kind: session.TypeAbort, payload: agents.Abort{Scope: scope, TargetID: target, Reason: "enough"}})
}

func (t *talk) completed() agents.Completion {
	t.Helper()
	var what agents.Completion
	t.hears(session.TypeTaskCompletion, &what)
	synctest.Wait()
	return what
}

// shutDown tells the agent to shut down and returns the error of its work.
func (t *talk) shutDown(done <-chan error) error {
	t.Helper()
	require.NoError(t, t.peer.Notify(agents.Shutdown, nil))
	return <-done
}

// untilOff returns a Do that waits until its context ends and sends the cause to why.
func untilOff(why chan<- error) func(context.Context, *agents.Assigned) (agents.Completion, error) {
	return func(ctx context.Context, _ *agents.Assigned) (agents.Completion, error) {
		<-ctx.Done()
		why <- context.Cause(ctx)
		return agents.Completion{}, ctx.Err()
	}
}

func TestDevelop(t *testing.T) {
	for name, each := range map[string]struct {
		do   func(context.Context, *agents.Assigned) (agents.Completion, error)
		want string
	}{
		"it is done": {
			do: func(_ context.Context, task *agents.Assigned) (agents.Completion, error) {
				return agents.Completion{Summary: task.Task.Description + ": done", SelfReview: agents.SelfReview{TestsRun: true, TestsPassed: true}}, nil
			},
			want: `{"task_id":"kettle","status":"completed","changes":{"files_created":[],"files_modified":[],"files_deleted":[]},
				"summary":"boil water: done","self_review":{"tests_run":true,"tests_passed":true,"type_check_passed":false}}`,
		},
		"it fails": {
			do: func(context.Context, *agents.Assigned) (agents.Completion, error) {
				return agents.Completion{Summary: "half of it", Status: session.OutcomePartial}, errors.New("no gas")
			},
			want: `{"task_id":"kettle","status":"failed","changes":{"files_created":[],"files_modified":[],"files_deleted":[]},
				"summary":"half of it","self_review":{"tests_run":false,"tests_passed":false,"type_check_passed":false},"blockers":["no gas"],
				"error":{"task_id":"kettle","error_type":"exception","error_message":"no gas","recoverable":true,"suggested_action":"retry"}}`,
		},
		"it fails without a word": {
			do: func(context.Context, *agents.Assigned) (agents.Completion, error) {
				return agents.Completion{}, context.DeadlineExceeded
			},
			want: `{"task_id":"kettle","status":"failed","changes":{"files_created":[],"files_modified":[],"files_deleted":[]},
				"summary":"context deadline exceeded","self_review":{"tests_run":false,"tests_passed":false,"type_check_passed":false},"blockers":["context deadline exceeded"],
				"error":{"task_id":"kettle","error_type":"timeout","error_message":"context deadline exceeded","recoverable":true,"suggested_action":"retry"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			converse(t, func(t *talk) {
				s := t.as(coder)
				done := doing(func() error { return s.Develop(t.Context(), each.do) })
				t.assigned("msg-1", "kettle")
				said := t.hears(session.TypeTaskCompletion, nil)
				require.JSONEq(t, each.want, string(said.Payload))
				require.Equal(t, []string{"msg-1", "chain"}, []string{said.ReplyTo, said.CorrelationID})
				require.NoError(t, t.shutDown(done))
			})
		})
	}
}

func TestDevelopersThatPanicOrMakeNoSense(t *testing.T) {
	converse(t, func(t *talk) {
		panics := true
		done := t.developing(agents.Developer{Do: func(context.Context, *agents.Assigned) (agents.Completion, error) {
			if panics {
				panic("oh no")
			}
			return agents.Completion{Status: "splendid"}, nil
		}})
		t.assigned("msg-1", "kettle")
		require.Contains(t, string(t.report("error").Payload), "developer_test.go")
		require.Equal(t, []string{"it panicked: oh no"}, t.completed().Blockers)

		panics = false
		t.assigned("msg-2", "kettle")
		what := t.completed()
		require.Equal(t, session.OutcomeFailed, what.Status)
		require.Contains(t, what.Summary, "status must be one of")
		require.NoError(t, t.shutDown(done))
	})
}

// TestProgressByItself checks that progress is reported every 30 seconds for a task that takes
// longer than two minutes.
func TestProgressByItself(t *testing.T) {
	converse(t, func(t *talk) {
		begun := time.Now()
		done := t.developing(agents.Developer{Do: func(_ context.Context, task *agents.Assigned) (agents.Completion, error) {
			<-time.After(140 * time.Second)
			if err := task.Progress(40, "heating", "kettle/lid"); err != nil {
				return agents.Completion{}, err
			}
			<-time.After(55 * time.Second)
			return agents.Completion{}, nil
		}})
		t.assigned("msg-1", "kettle")
		for _, want := range []struct {
			at time.Duration
			agents.Progress
		}{
			{120 * time.Second, agents.Progress{TaskID: "kettle", Step: "at work", Files: []string{}}},
			{140 * time.Second, agents.Progress{TaskID: "kettle", Percent: 40, Step: "heating", Files: []string{"kettle/lid"}}},
			{170 * time.Second, agents.Progress{TaskID: "kettle", Percent: 40, Step: "heating", Files: []string{"kettle/lid"}}},
		} {
			var how agents.Progress
			said := t.hears(session.TypeTaskProgress, &how)
			require.Equal(t, want.Progress, how)
			require.Equal(t, want.at, time.Since(begun))
			require.Equal(t, "chain", said.CorrelationID)
			require.Equal(t, "msg-1", said.ReplyTo)
		}
		t.completed()
		require.Equal(t, 195*time.Second, time.Since(begun))
		require.NoError(t, t.shutDown(done))
	})
}

func TestTasksThatAreAborted(t *testing.T) {
	for name, end := range map[string]func(t *talk){
		"the task":            func(t *talk) { t.aborted(session.AbortTask, "kettle") },
		"the session":         func(t *talk) { t.aborted(session.AbortSession, "kitchen") },
		"by the orchestrator": func(t *talk) { t.notify(agents.TaskCancelled, "kettle") },
	} {
		t.Run(name, func(t *testing.T) {
			converse(t, func(t *talk) {
				why := make(chan error, 1)
				done := t.developing(agents.Developer{Do: untilOff(why)})
				t.assigned("msg-1", "kettle")
				t.aborted(session.AbortTask, "another")
				t.aborted(session.AbortSession, "another")
				end(t)
				require.ErrorIs(t, <-why, agents.ErrCancelled)
				require.NoError(t, t.shutDown(done))
				requireSilence(t)
			})
		})
	}
}

// TestAssignmentsInTheOrderOfTheLine checks that a task cancelled after its assignment is not
// begun, although the two arrive as a message and a notice.
func TestAssignmentsInTheOrderOfTheLine(t *testing.T) {
	converse(t, func(t *talk) {
		t.notify(agents.TaskCancelled, "kettle")
		t.deliver(spoken{id: "msg-1", from: lead, to: coder, kind: session.TypeTaskAssignment, payload: boil("kettle")})
		t.deliver(spoken{id: "msg-2", from: lead, to: coder, kind: session.TypeTaskAssignment, payload: boil("lid")})
		t.notify(agents.TaskCancelled, "lid")
		done := t.developing(agents.Developer{Capacity: 2, Do: func(ctx context.Context, task *agents.Assigned) (agents.Completion, error) {
			<-time.After(time.Second)
			return agents.Completion{}, ctx.Err()
		}})
		said := &agents.Said{Message: &session.Message{}}
		for said.MessageType != session.TypeTaskCompletion { // there may be two acknowledgments
			var err error
			said, err = t.peer.Said()
			require.NoError(t, err)
		}
		require.Equal(t, "msg-1", said.ReplyTo)
		require.NoError(t, t.shutDown(done))
		requireSilence(t)
	})
}

func TestAssignmentsThatComeAgain(t *testing.T) {
	converse(t, func(t *talk) {
		why := make(chan error, 2)
		done := t.developing(agents.Developer{Do: untilOff(why)})
		t.assigned("msg-1", "kettle")
		t.deliver(spoken{id: "msg-1", from: lead, to: coder, kind: session.TypeTaskAssignment, payload: boil("kettle")})
		require.Empty(t, why, "the same message changes nothing")
		t.assigned("msg-2", "kettle")
		require.EqualError(t, <-why, "the task was assigned again")
		require.ErrorContains(t, t.shutDown(done), "1 of the tasks left unfinished")
		require.ErrorIs(t, <-why, agents.ErrShutdown)
		requireSilence(t)
	})
}

// TestCapacity checks that assignments beyond the capacity are acknowledged and wait.
func TestCapacity(t *testing.T) {
	converse(t, func(t *talk) {
		finish := make(chan struct{})
		begun := make(chan string, 3)
		done := t.developing(agents.Developer{Capacity: 2, Do: func(_ context.Context, task *agents.Assigned) (agents.Completion, error) {
			begun <- task.Task.TaskID
			<-finish
			return agents.Completion{}, nil
		}})
		t.assigned("msg-1", "a")
		t.assigned("msg-2", "b")
		t.assigned("msg-3", "c")
		require.Len(t, begun, 2)

		query := spoken{id: "msg-4", from: lead, to: coder, kind: session.TypeStatusQuery, payload: agents.StatusQuery{}}
		t.deliver(query)
		var status agents.Status
		require.Equal(t, "msg-4", t.hears(session.TypeStatusResponse, &status).ReplyTo)
		require.Equal(t, agents.Status{State: "busy", Tasks: []agents.TaskStatus{
			{TaskID: "a", Step: "at work"}, {TaskID: "b", Step: "at work"}, {TaskID: "c", Step: "waiting for its turn"},
		}}, status)
		query.id, query.payload = "msg-5", agents.StatusQuery{TaskID: "b"}
		t.deliver(query)
		t.hears(session.TypeStatusResponse, &status)
		require.Equal(t, []agents.TaskStatus{{TaskID: "b", Step: "at work"}}, status.Tasks)

		close(finish)
		for range 3 {
			t.completed()
		}
		require.NoError(t, t.shutDown(done))
	})
}

var outside = &wire.Error{Code: wire.CodeConflict, Message: "lid.go is not to be changed", Details: map[string]any{"scope": []string{"kettle/**"}}}

// TestRescope checks that Rescope may correct a completion that was out of scope, a limited
// number of times.
func TestRescope(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.developing(agents.Developer{
			Do: func(context.Context, *agents.Assigned) (agents.Completion, error) {
				return agents.Completion{Summary: "first", Changes: agents.FileChanges{Deleted: []string{"lid.go"}}}, nil
			},
			Rescope: func(_ context.Context, task *agents.Assigned, refused *agents.Undelivered) (agents.Completion, error) {
				scope, _ := refused.Scope()
				if task.Task.TaskID == "lid" {
					panic("no idea")
				}
				return agents.Completion{Summary: "within " + scope[0]}, nil
			},
		})
		t.assigned("msg-1", "kettle")
		for _, want := range []string{"first", "within kettle/**", "within kettle/**"} {
			said := t.hears(session.TypeTaskCompletion, nil)
			require.Contains(t, string(said.Payload), want)
			t.undeliver(said, outside)
		}
		var what agents.Completion
		last := t.hears(session.TypeTaskCompletion, &what)
		require.Equal(t, []string{"failed", session.ExecutionScopeViolation}, []string{what.Status, what.Error.ErrorType})
		require.Equal(t, "not delivered: lid.go is not to be changed (INVALID_REQUEST); what may be changed: kettle/**", what.Summary)
		t.undeliver(last, outside)
		require.Contains(t, string(t.report("log").Payload), "task kettle, given up")

		t.assigned("msg-2", "lid")
		t.undeliver(t.hears(session.TypeTaskCompletion, nil), outside)
		t.report("error")
		require.Equal(t, "it panicked: no idea", t.completed().Summary)
		require.NoError(t, t.shutDown(done))
	})
}

// TestCompletionsThatAreRefused checks that an invalid completion fails the task, and that one
// that is too late is reported as trouble.
func TestCompletionsThatAreRefused(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.developing(agents.Developer{Do: func(context.Context, *agents.Assigned) (agents.Completion, error) {
			return agents.Completion{}, nil
		}})
		t.assigned("msg-1", "kettle")
		t.undeliver(t.hears(session.TypeTaskCompletion, nil), outside)
		require.Equal(t, session.OutcomeFailed, t.completed().Status)

		t.assigned("msg-2", "kettle")
		t.undeliver(t.hears(session.TypeTaskCompletion, nil), &wire.Error{Code: wire.CodeInvalid, Message: "no sense"})
		require.Equal(t, "not delivered: no sense (INVALID_REQUEST)", t.completed().Summary)

		t.assigned("msg-3", "kettle")
		t.undeliver(t.hears(session.TypeTaskCompletion, nil), &wire.Error{Code: wire.CodeConflict, Message: "it has ended"})
		require.Contains(t, string(t.report("log").Payload), "it has ended")
		require.NoError(t, t.shutDown(done))
		requireSilence(t)
	})
}

// TestDevelopersThatHaveToGo checks that work finished during a shutdown is reported, and that
// unfinished work is not.
func TestDevelopersThatHaveToGo(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.developing(agents.Developer{Capacity: 2, Do: func(ctx context.Context, task *agents.Assigned) (agents.Completion, error) {
			<-ctx.Done()
			if task.Task.TaskID == "kettle" {
				return agents.Completion{Summary: "in time"}, nil
			}
			return agents.Completion{}, ctx.Err()
		}})
		t.assigned("msg-1", "kettle")
		t.assigned("msg-2", "lid")
		require.NoError(t, t.peer.Notify(agents.Shutdown, nil))
		t.peer.End()
		require.Equal(t, "in time", t.completed().Summary)
		err := <-done
		require.ErrorIs(t, err, agents.ErrShutdown)
		require.ErrorContains(t, err, "1 of the tasks left unfinished")
		requireSilence(t)
	})
}

// TestDevelopAndWork checks that a developer can do tasks of its session and of the queue
// concurrently. It reports each in the protocol of the task.
func TestDevelopAndWork(t *testing.T) {
	converse(t, func(t *talk) {
		boiled := make(chan struct{})
		done := t.developing(agents.Developer{
			Do: func(context.Context, *agents.Assigned) (agents.Completion, error) {
				<-boiled
				return agents.Completion{Summary: "it boils"}, nil
			},
			Work: &agents.Worker{Do: func(context.Context, *agents.Job) (any, error) { return "swept", nil }},
		})
		t.assigned("msg-1", "kettle")
		t.notify(agents.TaskAssigned, "task-x")
		t.looked(in(wire.TaskRunning))
		t.answer(t.settled("complete-task", `{"taskId":"task-x","result":"swept"}`), in(wire.TaskDone))
		close(boiled)
		require.Equal(t, "it boils", t.completed().Summary)
		require.NoError(t, t.shutDown(done))
		requireSilence(t)
	})
}

// TestDevelopAndWorkUnfinished checks that unfinished work of either kind is an error, and that
// cancelling a task of one kind does not affect the other.
func TestDevelopAndWorkUnfinished(t *testing.T) {
	converse(t, func(t *talk) {
		why, off := make(chan error, 1), make(chan error, 1)
		done := t.developing(agents.Developer{
			Do: untilOff(off),
			Work: &agents.Worker{Do: func(ctx context.Context, _ *agents.Job) (any, error) {
				<-ctx.Done()
				why <- context.Cause(ctx)
				return nil, context.Cause(ctx)
			}},
		})
		t.assigned("msg-1", "kettle")
		t.notify(agents.TaskAssigned, "task-x")
		t.looked(in(wire.TaskRunning))
		synctest.Wait()
		t.notify(agents.TaskCancelled, "kettle")
		require.ErrorIs(t, <-off, agents.ErrCancelled)
		err := t.shutDown(done)
		require.ErrorIs(t, err, agents.ErrShutdown)
		require.ErrorContains(t, err, "1 of the tasks left unfinished")
		require.ErrorIs(t, <-why, agents.ErrShutdown)
	})
}
