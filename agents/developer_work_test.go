package agents_test

import (
	"context"
	"testing"
	"testing/synctest"

	"orchestrator/agents"
	"orchestrator/wire"

	"github.com/stretchr/testify/require"
)

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
