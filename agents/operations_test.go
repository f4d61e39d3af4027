package agents_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/hub"
)

// TestOperations checks that the orchestrator can read the request of each method, and that the
// method returns the answer.
func TestOperations(t *testing.T) {
	task := taskNamed("one")
	for operation, each := range map[string]exchange{
		"query-agents": {
			ask: func(t *talk) (any, error) {
				return t.agent.QueryAgents(t.Context(), wire.QueryAgents{Role: wire.RoleWorker})
			},
			want:   &wire.QueryAgents{Role: wire.RoleWorker},
			answer: &wire.AgentList{Agents: []wire.Agent{{ID: "a", Status: "idle"}}},
			got:    []wire.Agent{{ID: "a", Status: "idle", Capabilities: []string{}}},
		},
		"query-tasks": {
			ask:    func(t *talk) (any, error) { return t.agent.QueryTasks(t.Context(), wire.QueryTasks{Limit: 2}) },
			want:   &wire.QueryTasks{Limit: 2},
			answer: &wire.TaskList{Tasks: []wire.Task{task.Task}},
			got:    []wire.Task{asHeard(task)},
		},
		"submit-task": {
			ask: func(t *talk) (any, error) {
				return t.agent.SubmitTask(t.Context(), wire.SubmitTask{Type: "t", Name: "one", Payload: wire.Raw(delicate), Priority: wire.Raw("2.50")})
			},
			want:   &wire.SubmitTask{Type: "t", Name: "one", Payload: wire.Raw(delicate), Priority: wire.Raw("2.50")},
			answer: task,
			got:    asHeard(task),
		},
		"get-task": {
			ask:    func(t *talk) (any, error) { return t.agent.GetTask(t.Context(), "task-one") },
			want:   &wire.TaskID{TaskID: "task-one"},
			answer: task,
			got:    asHeard(task),
		},
		"ask-user": {
			ask: func(t *talk) (any, error) {
				return t.agent.AskUser(t.Context(), wire.AskUser{Question: "why?", Options: []wire.Option{{Label: "A", Value: "a"}}, Timeout: 1000})
			},
			want:   &wire.AskUser{Question: "why?", Options: []wire.Option{{Label: "A", Value: "a"}}, Timeout: 1000},
			answer: wire.UserAnswer{Answer: "a", Metadata: wire.AnswerMetadata{AnsweredAt: "2026-02-04T14:35:00Z"}},
			got:    wire.UserAnswer{Answer: "a", Metadata: wire.AnswerMetadata{AnsweredAt: "2026-02-04T14:35:00Z"}},
		},
		"start-task": {
			ask:    func(t *talk) (any, error) { return t.agent.StartTask(t.Context(), "task-one") },
			want:   &wire.TaskID{TaskID: "task-one"},
			answer: task,
			got:    asHeard(task),
		},
		"complete-task": {
			ask:    func(t *talk) (any, error) { return t.agent.CompleteTask(t.Context(), "task-one", "it went well") },
			want:   &wire.CompleteTask{TaskID: "task-one", Result: &hub.Result{Document: wire.Raw(`"it went well"`)}},
			answer: task,
			got:    asHeard(task),
		},
		"fail-task": {
			ask:    func(t *talk) (any, error) { return t.agent.FailTask(t.Context(), "task-one", "no luck") },
			want:   &wire.FailTask{TaskID: "task-one", Error: "no luck"},
			answer: task,
			got:    asHeard(task),
		},
		"cancel-task": {
			ask:    func(t *talk) (any, error) { return t.agent.CancelTask(t.Context(), "task-one", "changed my mind") },
			want:   &wire.CancelTask{TaskID: "task-one", Reason: "changed my mind"},
			answer: task,
			got:    asHeard(task),
		},
	} {
		each.require(t, operation)
	}
}

// An exchange is a request, the payload that the orchestrator reads, its answer, and the value
// that the method returns.
type exchange struct {
	ask    func(t *talk) (any, error)
	want   any
	answer any
	got    any
}

func (e exchange) require(t *testing.T, operation string) {
	t.Helper()
	converse(t, func(t *talk) {
		type outcome struct {
			got any
			err error
		}
		done := make(chan outcome, 1)
		go func() {
			got, err := e.ask(t)
			done <- outcome{got, err}
		}()
		request := t.request(operation)
		body, wrong := readRequest(operation, request.Payload)
		require.Nil(t, wrong)
		require.Equal(t, e.want, body)
		t.answer(request, e.answer)
		o := <-done
		require.NoError(t, o.err)
		require.Equal(t, e.got, o.got)
	})
}

func TestAResultOfNothing(t *testing.T) {
	for _, nothing := range []any{nil, wire.Raw(nil), (*wire.Task)(nil)} {
		converse(t, func(t *talk) {
			done := make(chan error, 1)
			go func() {
				_, err := t.agent.CompleteTask(t.Context(), "x", nothing)
				done <- err
			}()
			request := t.request("complete-task")
			require.Equal(t, `{"taskId":"x"}`, string(request.Payload))
			t.answer(request, taskNamed("x"))
			require.NoError(t, <-done)
		})
	}
	converse(t, func(t *talk) {
		_, err := t.agent.CompleteTask(t.Context(), "x", func() {})
		require.Error(t, err)
	})
}

// readRequest reads a payload as the orchestrator does.
func readRequest(operation string, payload []byte) (any, *wire.Error) {
	return wire.ReadRequest(operation, payload, 64)
}

// asHeard returns a task as the agent decodes it: its lists are never nil.
func asHeard(reply *wire.TaskReply) wire.Task {
	task := reply.Task
	task.RequiredCapabilities, task.Dependencies = []string{}, []string{}
	return task
}
