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
)

// asked returns the details of a task with a question to a person. An empty answer means that it
// waits.
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

// inNeed brings a task to the state of waiting for a person.
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

// TestUpdates checks that a handler receives all updates of its task, from the first on.
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

// workingAs runs WorkAs in the background and returns the channel of its error.
func (t *talk) workingAs(worker agents.Worker) <-chan error {
	done := make(chan error, 1)
	go func() { done <- t.agent.WorkAs(t.Context(), worker) }()
	return done
}

// in returns an answer to get-task with a task in the given state.
func in(state wire.TaskState, details ...wire.Details) *wire.TaskReply {
	reply := &wire.TaskReply{Task: wire.Task{ID: "task-x", Name: "x", State: state}}
	for i := range details {
		reply.Task.Details = &details[i]
	}
	return reply
}

// looked expects a get-task request and answers it with reply.
func (t *talk) looked(reply *wire.TaskReply) {
	t.Helper()
	t.answer(t.request("get-task"), reply)
}

func (t *talk) refuse(to *wire.Request, reason string) {
	t.Helper()
	require.NoError(t, t.peer.Refuse(to.ID, &wire.Error{Code: wire.CodeConflict, Message: "not so", Details: map[string]any{"reason": reason}}))
}

// update notifies the agent of an update of its task.
func (t *talk) update(message string) {
	t.Helper()
	require.NoError(t, t.peer.Notify(agents.TaskUpdated, wire.TaskNotice{TaskID: "task-x", Message: message}))
}

// ends expects the task to be completed with result and closes the connection.
func (t *talk) ends(done <-chan error, result string) {
	t.Helper()
	t.answer(t.settled("complete-task", `{"taskId":"task-x","result":`+result+`}`), in(wire.TaskDone))
	t.peer.End()
	require.NoError(t, <-done)
	requireSilence(t)
}

// summary is a handler that shows in its result the state and inputs at the beginning of its task.
func summary(_ context.Context, job *agents.Job) (any, error) {
	return map[string]any{"state": job.Task.State, "inputs": job.Task.ResolvedInputs}, nil
}

// TestWorkThatIsToBeStarted checks that an agent starts a task itself if the task was assigned
// manually or by its requirements.
//
// Rows.
func TestWorkThatIsToBeStarted(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.workingAs(agents.Worker{Do: summary})
		t.notify(agents.TaskAssigned, "task-x")
		given := in(wire.TaskAssigned)
		given.Task.ResolvedInputs = wire.Inputs{{Key: "k", Data: wire.Raw(delicate)}}
		t.looked(given)
		request := t.request("start-task")
		require.JSONEq(t, `{"taskId":"task-x"}`, string(request.Payload))
		t.answer(request, in(wire.TaskRunning))
		t.ends(done, `{"state":"running","inputs":{"k":`+delicate+`}}`)
	})
}

// TestWorkThatWaitsForOthers checks that a task with open dependencies begins after news about
// it, and that other tasks do not wait for it.
//
// Rows: A-95.
func TestWorkThatWaitsForOthers(t *testing.T) {
	for name, news := range map[string]func(t *talk){
		"it is told":           func(t *talk) { t.update("It waits for nothing any more.") },
		"it is assigned again": func(t *talk) { t.notify(agents.TaskAssigned, "task-x") },
		"it looks by itself":   func(t *talk) {},
	} {
		t.Run(name, func(t *testing.T) {
			converse(t, func(t *talk) {
				done := t.workingAs(agents.Worker{Do: summary})
				t.notify(agents.TaskAssigned, "task-x")
				t.looked(in(wire.TaskAssigned))
				t.refuse(t.request("start-task"), agents.ReasonBlocked)

				t.assign("other")
				t.answer(t.settled("complete-task", `{"taskId":"task-other","result":{"state":"running","inputs":{}}}`), taskNamed("other"))

				begun := time.Now()
				news(t)
				t.looked(in(wire.TaskAssigned))
				require.Equal(t, name == "it looks by itself", time.Since(begun) > 0)
				t.answer(t.request("start-task"), in(wire.TaskRunning))
				t.ends(done, `{"state":"running","inputs":{}}`)
			})
		})
	}
}

// TestWorkThatIsGoneWhenItStarts checks that an agent drops a task that was cancelled or taken
// away before start-task.
func TestWorkThatIsGoneWhenItStarts(t *testing.T) {
	for _, then := range []wire.TaskState{wire.TaskCancelled, wire.TaskPending} {
		converse(t, func(t *talk) {
			done := t.workingAs(agents.Worker{Do: summary})
			t.notify(agents.TaskAssigned, "task-x")
			t.looked(in(wire.TaskAssigned))
			t.refuse(t.request("start-task"), agents.ReasonWrongState)
			t.looked(in(then))
			synctest.Wait()

			t.notify(agents.TaskAssigned, "task-x") // assigned again, as a new task
			t.looked(in(wire.TaskAssigned))
			require.NoError(t, t.peer.Refuse(t.request("start-task").ID, &wire.Error{Code: wire.CodeDenied, Message: "not yours"}))
			require.Contains(t, string(t.report("log").Payload), "not yours")
			t.peer.End()
			require.NoError(t, <-done)
			requireSilence(t)
		})
	}
}

// TestWorkWithoutAPlan checks that an agent without a plan submits a plan that says so, and
// begins once it is approved.
//
// Rows.
func TestWorkWithoutAPlan(t *testing.T) {
	for name, plan := range map[string]func(context.Context, *agents.Job) (any, error){
		"it makes none": nil,
		"it has none":   func(context.Context, *agents.Job) (any, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			converse(t, func(t *talk) {
				done := t.workingAs(agents.Worker{Do: summary, Plan: plan})
				t.notify(agents.TaskAssigned, "task-x")
				t.looked(in(wire.TaskPlanning))
				request := t.settled("submit-plan", `{"taskId":"task-x","plan":"no plan: this agent works as it is told"}`)
				t.answer(request, in(wire.TaskPlanReview))
				t.looked(in(wire.TaskPlanReview))
				t.update("Plan approved. The task is yours to do.")
				t.looked(in(wire.TaskRunning))
				t.ends(done, `{"state":"running","inputs":{}}`)
			})
		})
	}
}

// Rows: A-55.
func TestWorkWithAPlanThatIsSentBack(t *testing.T) {
	converse(t, func(t *talk) {
		plan := func(_ context.Context, job *agents.Job) (any, error) {
			if job.Task.Details == nil {
				return "first", nil
			}
			return map[string]string{"because": job.Task.Details.PlanFeedback}, nil
		}
		done := t.workingAs(agents.Worker{Do: summary, Plan: plan})
		t.notify(agents.TaskAssigned, "task-x")
		t.looked(in(wire.TaskAssigned)) // a plan is requested after this look
		t.refuse(t.request("start-task"), agents.ReasonWrongState)
		t.looked(in(wire.TaskPlanning))
		t.answer(t.settled("submit-plan", `{"taskId":"task-x","plan":"first"}`), in(wire.TaskPlanReview))
		t.update("Plan to be revised: test first") // arrives before the agent looks at the task
		t.looked(in(wire.TaskPlanning, wire.Details{PlanFeedback: "test first"}))
		t.answer(t.settled("submit-plan", `{"taskId":"task-x","plan":{"because":"test first"}}`), in(wire.TaskPlanReview))
		t.looked(in(wire.TaskRunning))
		t.ends(done, `{"state":"running","inputs":{}}`)
	})
}

// TestWorkThatCannotBePlanned checks that a failed Plan function leads to a note for people.
func TestWorkThatCannotBePlanned(t *testing.T) {
	for name, each := range map[string]struct {
		plan any
		err  error
		note string
	}{
		"an error": {err: errors.New("no idea"), note: "it cannot be planned: no idea"},
		"no sense": {plan: func() {}, note: "it cannot be planned: spelling func()"}, // the rest varies by Go version
	} {
		t.Run(name, func(t *testing.T) {
			converse(t, func(t *talk) {
				done := t.workingAs(agents.Worker{Do: summary, Plan: func(context.Context, *agents.Job) (any, error) { return each.plan, each.err }})
				t.notify(agents.TaskAssigned, "task-x")
				t.looked(in(wire.TaskPlanning))
				request := t.request("add-note")
				require.Contains(t, string(request.Payload), each.note)
				t.answer(request, wire.NoteReply{})
				require.Contains(t, string(t.report("log").Payload), each.note)
				t.peer.End()
				require.NoError(t, <-done, "the agent lives on")
				requireSilence(t)
			})
		})
	}
	converse(t, func(t *talk) {
		done := t.workingAs(agents.Worker{Do: summary, Plan: func(context.Context, *agents.Job) (any, error) { return []int{1}, nil }})
		t.notify(agents.TaskAssigned, "task-x")
		t.looked(in(wire.TaskPlanning))
		request := t.request("submit-plan")
		_, wrong := readRequest("submit-plan", request.Payload)
		require.NoError(t, t.peer.Refuse(request.ID, wrong))
		note := t.request("add-note")
		require.Contains(t, string(note.Payload), "plan must be an object or a text")
		t.answer(note, wire.NoteReply{})
		t.report("log")
		t.peer.End()
		require.NoError(t, <-done)
	})
}

// TestWorkThatIsStoppedBeforeItBegins checks that an agent stops waiting for the approval of a
// plan if the task is cancelled or the agent shuts down.
func TestWorkThatIsStoppedBeforeItBegins(t *testing.T) {
	converse(t, func(t *talk) {
		done := t.workingAs(agents.Worker{Do: summary})
		t.notify(agents.TaskAssigned, "task-x")
		t.looked(in(wire.TaskPlanReview))
		t.notify(agents.TaskCancelled, "task-x")
		t.peer.End()
		require.NoError(t, <-done)
		requireSilence(t)
	})
	converse(t, func(t *talk) {
		done := t.workingAs(agents.Worker{Do: summary})
		t.notify(agents.TaskAssigned, "task-x")
		t.looked(in(wire.TaskNeedsHuman))
		require.NoError(t, t.peer.Notify(agents.Shutdown, nil))
		err := <-done
		require.ErrorIs(t, err, agents.ErrShutdown)
		require.ErrorContains(t, err, "left unfinished")
		requireSilence(t)
	})
}
