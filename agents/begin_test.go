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

// workingAs runs WorkAs in the background and returns where its outcome goes.
func (t *talk) workingAs(worker agents.Worker) <-chan error {
	done := make(chan error, 1)
	go func() { done <- t.agent.WorkAs(t.Context(), worker) }()
	return done
}

// in is a task in a state.
func in(state wire.TaskState, details ...wire.Details) *wire.TaskReply {
	reply := &wire.TaskReply{Task: wire.Task{ID: "task-x", Name: "x", State: state}}
	for i := range details {
		reply.Task.Details = &details[i]
	}
	return reply
}

// looked expects the agent to look at its task, and says how it is.
func (t *talk) looked(reply *wire.TaskReply) {
	t.Helper()
	t.answer(t.request("get-task"), reply)
}

func (t *talk) refuse(to *wire.Request, reason string) {
	t.Helper()
	require.NoError(t, t.peer.Refuse(to.ID, &wire.Error{Code: wire.CodeConflict, Message: "not so", Details: map[string]any{"reason": reason}}))
}

// update tells the agent that something is new about its task.
func (t *talk) update(message string) {
	t.Helper()
	require.NoError(t, t.peer.Notify(agents.TaskUpdated, wire.TaskNotice{TaskID: "task-x", Message: message}))
}

// ends expects the task to be completed, and ends the conversation.
func (t *talk) ends(done <-chan error, result string) {
	t.Helper()
	t.answer(t.settled("complete-task", `{"taskId":"task-x","result":`+result+`}`), in(wire.TaskDone))
	t.peer.End()
	require.NoError(t, <-done)
	requireSilence(t)
}

// summary is a handler that tells how its task was when it began.
func summary(_ context.Context, job *agents.Job) (any, error) {
	return map[string]any{"state": job.Task.State, "inputs": job.Task.ResolvedInputs}, nil
}

// TestWorkThatIsToBeStarted: of a task that was given out by hand or by its
// requirements, its agent says that it starts.
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

// TestWorkThatWaitsForOthers: it begins when there is news, and nothing else
// waits for that.
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

// TestWorkThatIsGoneWhenItStarts: somebody was quicker, and the agent goes on
// with other things.
func TestWorkThatIsGoneWhenItStarts(t *testing.T) {
	for _, then := range []wire.TaskState{wire.TaskCancelled, wire.TaskPending} {
		converse(t, func(t *talk) {
			done := t.workingAs(agents.Worker{Do: summary})
			t.notify(agents.TaskAssigned, "task-x")
			t.looked(in(wire.TaskAssigned))
			t.refuse(t.request("start-task"), agents.ReasonWrongState)
			t.looked(in(then))
			synctest.Wait()

			t.notify(agents.TaskAssigned, "task-x") // once more, and it is new
			t.looked(in(wire.TaskAssigned))
			require.NoError(t, t.peer.Refuse(t.request("start-task").ID, &wire.Error{Code: wire.CodeDenied, Message: "not yours"}))
			require.Contains(t, string(t.report("log").Payload), "not yours")
			t.peer.End()
			require.NoError(t, <-done)
			requireSilence(t)
		})
	}
}

// TestWorkWithoutAPlan: an agent that makes no plans says so, and begins when
// somebody is content with that.
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
		t.looked(in(wire.TaskAssigned)) // and then somebody wants a plan after all
		t.refuse(t.request("start-task"), agents.ReasonWrongState)
		t.looked(in(wire.TaskPlanning))
		t.answer(t.settled("submit-plan", `{"taskId":"task-x","plan":"first"}`), in(wire.TaskPlanReview))
		t.update("Plan to be revised: test first") // before it has looked
		t.looked(in(wire.TaskPlanning, wire.Details{PlanFeedback: "test first"}))
		t.answer(t.settled("submit-plan", `{"taskId":"task-x","plan":{"because":"test first"}}`), in(wire.TaskPlanReview))
		t.looked(in(wire.TaskRunning))
		t.ends(done, `{"state":"running","inputs":{}}`)
	})
}

// TestWorkThatCannotBePlanned: a note says so, and people decide.
func TestWorkThatCannotBePlanned(t *testing.T) {
	for name, each := range map[string]struct {
		plan any
		err  error
		note string
	}{
		"an error": {err: errors.New("no idea"), note: "it cannot be planned: no idea"},
		"no sense": {plan: func() {}, note: "it cannot be planned: spelling func()"}, // the library's words vary
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

// TestWorkThatIsStoppedBeforeItBegins: nobody waits for a plan to be approved
// when the task is off, or the agent has to go.
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
