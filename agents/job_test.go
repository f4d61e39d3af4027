package agents_test

import (
	"context"
	"testing"
	"testing/synctest"

	"orchestrator/agents"
	"orchestrator/wire"

	"github.com/stretchr/testify/require"
)

// asked returns the details of a task whose agent has asked a person. An empty answer means that
// it waits.
func asked(id, answer string) wire.Details {
	help := &wire.Help{QuestionID: id, Question: "why?", Answer: answer}
	if answer != "" {
		help.AnsweredAt = "2026-02-04T14:30:00.000Z"
	}
	return wire.Details{Help: help}
}

// needy is a handler that asks for help and returns the answer.
func needy(ctx context.Context, job *agents.Job) (any, error) {
	return job.Help(ctx, "why?", map[string]int{"n": 1})
}

// inNeed brings a task to the state in which its agent waits for a person.
func (t *talk) inNeed() {
	t.Helper()
	t.notify(agents.TaskAssigned, "task-x")
	t.looked(in(wire.TaskRunning, asked("q1", "of an earlier question")))
	request := t.request("request-help")
	require.JSONEq(t, `{"taskId":"task-x","question":"why?","context":{"n":1}}`, string(request.Payload))
	t.answer(request, in(wire.TaskNeedsHuman, asked("q2", "")))
	t.looked(in(wire.TaskNeedsHuman, asked("q2", "")))
	synctest.Wait()
}

// Rows.
func TestHelp(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.workingAs(agents.Worker{Do: needy})
		t.inNeed()
		t.update("Note: somebody thinks about it")
		t.looked(in(wire.TaskNeedsHuman, asked("q2", "")))
		t.update("Answer: because")
		t.looked(in(wire.TaskRunning, asked("q2", "because")))
		t.ends(done, `"because"`)
	})
}

func TestHelpThatDoesNotCome(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.workingAs(agents.Worker{Do: needy})
		t.inNeed()
		t.update("somebody lets it go on")
		t.looked(in(wire.TaskRunning, asked("q2", "")))
		t.answer(t.settled("fail-task", `{"taskId":"task-x","error":"the question was withdrawn"}`), in(wire.TaskFailed))
		t.peer.End()
		require.NoError(t, <-done)
	})
	converse(t, func(t *talk) {
		done := t.workingAs(agents.Worker{Do: needy})
		t.inNeed()
		t.notify(agents.TaskCancelled, "task-x")
		t.peer.End()
		require.NoError(t, <-done)
		requireSilence(t)
	})
	converse(t, func(t *talk) {
		done := t.workingAs(agents.Worker{Do: needy})
		t.notify(agents.TaskAssigned, "task-x")
		t.looked(in(wire.TaskRunning))
		t.refuse(t.request("request-help"), "too_many_questions")
		t.answer(t.settled("fail-task", `{"taskId":"task-x","error":"request-help: not so (INVALID_REQUEST)"}`), in(wire.TaskFailed))
		t.peer.End()
		require.NoError(t, <-done)
	})
}

// TestUpdates checks that a handler receives all updates of its own task, from the first on.
func TestUpdates(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.workingAs(agents.Worker{Do: func(ctx context.Context, job *agents.Job) (any, error) {
			heard := []string{}
			for message := range job.Updates(ctx) {
				heard = append(heard, message)
				if message == "Note: enough" {
					break
				}
			}
			ended, stop := context.WithCancel(ctx)
			stop()
			for range job.Updates(ended) {
				t.Error("it has ended")
			}
			return map[string]any{"heard": heard}, nil
		}})
		t.notify(agents.TaskAssigned, "task-x")
		request := t.request("get-task")
		t.update("Note: first")
		t.update("Note: second")
		require.NoError(t, t.peer.Notify(agents.TaskUpdated, wire.TaskNotice{TaskID: "task-y", Message: "Note: for nobody"}))
		t.answer(request, in(wire.TaskRunning))
		synctest.Wait()
		t.update("Note: enough")
		t.ends(done, `{"heard":["Note: first","Note: second","Note: enough"]}`)
	})
}

func TestUpdatesEndWithTheJob(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.workingAs(agents.Worker{Do: func(ctx context.Context, job *agents.Job) (any, error) {
			for range job.Updates(ctx) {
				t.Error("there was nothing to hear")
			}
			return nil, nil
		}})
		t.notify(agents.TaskAssigned, "task-x")
		t.looked(in(wire.TaskRunning))
		synctest.Wait()
		t.notify(agents.TaskCancelled, "task-x")
		t.peer.End()
		require.NoError(t, <-done)
		requireSilence(t)
	})
}
