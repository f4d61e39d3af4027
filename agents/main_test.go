package agents_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"orchestrator/agents"
	"orchestrator/wire"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A talk is a connection between an agent and a test that plays the orchestrator. It runs in a
// synctest bubble, so a deadlock fails the test.
type talk struct {
	*testing.T
	agent *agents.Conn
	peer  *agents.Peer
}

func converse(t *testing.T, about func(t *talk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		conn, peer := agents.Pipe()
		about(&talk{T: t, agent: conn, peer: peer})
		peer.Close()
		_ = conn.Wait()
	})
}

// request expects a request for an operation and returns it.
func (t *talk) request(operation string) *wire.Request {
	t.Helper()
	request, err := t.peer.Request()
	require.NoError(t, err)
	require.Equal(t, operation, request.Operation)
	require.NotEmpty(t, request.ID)
	return request
}

// report expects an event and returns it.
func (t *talk) report(name string) *wire.AgentEvent {
	t.Helper()
	line, message, err := t.peer.Hear()
	require.NoError(t, err)
	report, ok := message.(*wire.AgentEvent)
	require.True(t, ok, line)
	require.Equal(t, name, report.Name)
	return report
}

func (t *talk) answer(to *wire.Request, payload any) {
	t.Helper()
	require.NoError(t, t.peer.Answer(to.ID, payload))
}

func (t *talk) say(line string) {
	t.Helper()
	require.NoError(t, t.peer.Say(line))
}

func (t *talk) notify(name, task string) {
	t.Helper()
	require.NoError(t, t.peer.Notify(name, wire.TaskNotice{TaskID: task, Reason: "for a test"}))
}

// asking sends get-task in the background and returns the channel of its outcome.
func (t *talk) asking(ctx context.Context, id string) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		task, err := t.agent.GetTask(ctx, id)
		done <- outcome{task, err}
	}()
	return done
}

type outcome struct {
	task wire.Task
	err  error
}

func taskNamed(name string) *wire.TaskReply {
	return &wire.TaskReply{Task: wire.Task{ID: "task-" + name, Name: name, State: wire.TaskRunning}}
}

func answerLine(to *wire.Request, payload string) string {
	return fmt.Sprintf(`{"type":"response:success","id":"r","correlationId":%q,"timestamp":"2026-02-04T14:30:00Z","payload":%s}`, to.ID, payload)
}
