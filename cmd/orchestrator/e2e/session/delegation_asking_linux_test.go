package session

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// A source can query the status of its task. The agent answers each query with the current
// status; the orchestrator answers for an agent that does not.
//
// Rows: D-19, D-20, D-21, D-22, D-36, D-37, T-32.
func TestDelegationStatus(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(9), "boss", "cook", "help")
	boss, cook, mute := all[0], all[1], all[2]
	asks(boss, "t-1", "cook")
	asks(boss, "t-2", "wash")
	gets(mute, "t-2")
	gets(cook, "t-1")
	acts(boss, "t-2", delegation.ActStatus, `{}`) // answered a second later
	for n, status := range []string{delegation.Pending, delegation.InProgress, delegation.Completed} {
		acts(boss, "t-1", delegation.ActStatus, `{"deep":{"n":1.50}}`)
		require.JSONEq(t, `{"id":"t-1","type":"task.status","payload":{}}`, hear(cook, n+1, "t-1", delegation.ActStatus).line)
		says(cook, "t-1", status, fmt.Sprintf(`"n":%d.00`, n))
		require.Contains(t, hear(boss, 1, "t-1", status).line, fmt.Sprintf(`"n":%d.00`, n))
	}
	acts(boss, "t-1", delegation.ActStatus, `{}`)
	require.Contains(t, hear(boss, 2, "t-1", delegation.Completed).line, `"n":2.00`, "what it said in the end")
	boss.Settle()
	cook.Settle()
	require.Equal(t, []string{"pending", "in_progress", "completed", "completed"}, kinds(boss, "t-1"))
	require.Equal(t, []string{aRequest, "task.status", "task.status", "task.status"}, kinds(cook, "t-1"), "nobody asks when it is over")
	require.Len(t, h.TasksNow(), 2, "what is said about a task is no task")

	require.Equal(t, "help", hear(boss, 1, "t-2", delegation.Pending).Metadata.Agent)
	says(mute, "t-2", "in_progress", `"message":"after all"`)
	require.Equal(t, "after all", hear(boss, 1, "t-2", delegation.InProgress).Message)

	acts(boss, "t-3", delegation.ActStatus, `{}`)
	require.Equal(t, "NOT_FOUND", declined(boss, "t-3").Code)
	acts(boss, "t-1", delegation.ActStatus, `[]`)
	require.Equal(t, "/payload", declined(boss, "t-1").Details["pointer"])
	acts(cook, "t-2", delegation.ActStatus, `{}`) // not its task
	require.Equal(t, "UNAUTHORIZED", declined(cook, "t-2").Code)
	require.Equal(t, wire.TaskRunning, h.TaskState("t-2"))
	h.Stop()
}

// An agent may ask for input repeatedly. People see the question in the inbox, and the source
// gets it too. An answer from either is passed on unchanged, and the same task continues.
//
// Rows: D-19, D-25, D-26, D-38, K-22.
func TestDelegationInput(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(9), "boss", "cook", "help")
	boss, cook := all[0], all[1]
	asks(boss, "t-1", "cook")
	gets(cook, "t-1")
	says(cook, "t-1", "in_progress")
	says(cook, "t-1", "input_required", `"message":"Rye or wheat?"`, `"input":{"options":["rye",{"value":"wheat"}],"options2":1.0}`)
	hear(boss, 1, "t-1", delegation.InputRequired)
	q := h.WaitForQuestions(1)[0]
	require.Equal(t, []string{"t-1", "cook", "Rye or wheat?"}, []string{q.Task, q.Agent, q.Question})
	require.Contains(t, h.Ask("inbox"), "Rye or wheat?")
	require.Equal(t, wire.TaskNeedsHuman, h.TaskState("t-1"))
	h.Ask("inbox", "answer", q.ID, "rye")
	require.JSONEq(t, `{"id":"t-1","type":"task.update","payload":{"input":"rye"}}`, hear(cook, 1, "t-1", delegation.ActUpdate).line)
	require.Equal(t, wire.TaskRunning, h.TaskState("t-1"))
	says(cook, "t-1", "in_progress")

	says(cook, "t-1", "input_required", `"input":{"question":"How much?"}`)
	hear(boss, 2, "t-1", delegation.InputRequired)
	q = h.WaitForQuestions(1)[0]
	require.Equal(t, "How much?", q.Question)
	const input = `{"n":12345678901234567890.50,"e":"\u00e9<&>","l":[null,{}]}`
	acts(boss, "t-1", delegation.ActUpdate, `{"input":`+input+`,"other":1}`)
	require.Equal(t, `{"id":"t-1","type":"task.update","payload":{"input":`+input+`,"other":1}}`, hear(cook, 2, "t-1", delegation.ActUpdate).line)
	require.Empty(t, h.Questions(), "nobody is asked any more")
	require.Equal(t, cli.ExitNotFound, fails(h.Orchestrator, "inbox", "answer", q.ID, "late"))

	says(cook, "t-1", "input_required")
	hear(boss, 3, "t-1", delegation.InputRequired)
	h.WaitForQuestions(1)
	h.Ask("task", "input", "t-1", "--json-input", "null")
	require.JSONEq(t, `{"id":"t-1","type":"task.update","payload":{"input":null}}`, hear(cook, 3, "t-1", delegation.ActUpdate).line)
	says(cook, "t-1", "input_required", `"error":{"code":"X","message":"Where?"}`)
	require.Equal(t, "Where?", h.WaitForQuestions(1)[0].Question)
	says(cook, "t-1", "completed", `"result":7`) // it continues without input
	hear(boss, 1, "t-1", delegation.Completed)
	require.Empty(t, h.Questions())

	acts(boss, "t-1", delegation.ActUpdate, `{"input":1}`)
	require.Equal(t, "wrong_state", declined(boss, "t-1").Details["reason"])
	acts(boss, "t-1", delegation.ActUpdate, `{}`)
	stage.WaitFor(t, "second refusal", func() bool { return len(boss.Answers("t-1")) == 2 })
	require.Equal(t, "/payload/input", boss.Answers("t-1")[1].Error.Details["pointer"])
	cook.Settle()
	require.Equal(t, []string{aRequest, "task.update", "task.update", "task.update"}, kinds(cook, "t-1"))
	require.Len(t, h.TasksNow(), 1)
	require.Equal(t, 1, h.ShownTask("t-1").Attempts)
	h.Stop()
}

// A task can be cancelled by its source, by people on the command line or over HTTP, and by its
// agent. Agents of the task and its parts are notified, and each source gets one final response.
// Later responses are ignored.
//
// Rows: D-19, D-24, D-26, D-36, K-21.
func TestDelegationCancelled(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(9), "boss", "cook", "help")
	boss, cook, help := all[0], all[1], all[2]
	for n, way := range []struct {
		cancel func(id string)
		reason string
	}{
		{func(id string) { acts(boss, id, delegation.ActCancel, `{"reason":"there is no hunger left"}`) }, "there is no hunger left"},
		{func(id string) { h.Ask("task", "cancel", id, "-m", "said by a person") }, "said by a person"},
		{func(id string) { h.Operated(nil, "cancel-task", fmt.Sprintf(`{"taskId":%q,"reason":"over HTTP"}`, id)) }, "over HTTP"},
	} {
		id, part := fmt.Sprint("t-", n), fmt.Sprint("p-", n)
		asks(boss, id, "cook")
		gets(cook, id)
		says(cook, id, "in_progress")
		asks(cook, part, "wash", fmt.Sprintf(`"context":{"parentTaskId":%q}`, id))
		gets(help, part)
		says(help, part, "in_progress")
		hear(cook, 1, part, delegation.InProgress)
		way.cancel(id)
		require.JSONEq(t, fmt.Sprintf(`{"id":%q,"type":"task.cancel","payload":{"reason":%q}}`, id, way.reason), hear(cook, 1, id, delegation.ActCancel).line)
		hear(help, 1, part, delegation.ActCancel)
		last := hear(boss, 1, id, delegation.Cancelled)
		require.Nil(t, last.Error)
		require.Contains(t, last.line, way.reason)
		require.Equal(t, "cook", last.Metadata.Agent)
		hear(cook, 1, part, delegation.Cancelled)
		says(cook, id, "cancelled")
		says(cook, id, "completed", `"result":1`)
		says(help, part, "failed", failing("X", true))
		for _, a := range all {
			a.Settle()
		}
		require.Equal(t, []string{"in_progress", "cancelled"}, kinds(boss, id))
		require.Equal(t, []string{"in_progress", "cancelled"}, kinds(cook, part))
		require.Equal(t, []wire.TaskState{wire.TaskCancelled, wire.TaskCancelled}, []wire.TaskState{h.TaskState(id), h.TaskState(part)})
		require.Equal(t, way.reason, h.ShownTask(id).Reason)
	}
	acts(boss, "t-0", delegation.ActCancel, `{}`)
	require.Equal(t, "wrong_state", declined(boss, "t-0").Details["reason"])

	asks(boss, "t-9", "cook")
	gets(cook, "t-9")
	says(cook, "t-9", "cancelled", `"error":{"code":"TIRED","message":"not today"}`)
	require.Contains(t, hear(boss, 1, "t-9", delegation.Cancelled).line, `"message":"not today"`)
	cook.Settle()
	require.Equal(t, []string{aRequest}, kinds(cook, "t-9"), "it knows that")
	require.Equal(t, "not today", h.ShownTask("t-9").Reason)
	h.Stop()
}

// An agent with capacity one gets the most urgent task first, and the oldest of these. A task
// that waits for its own parts does not use capacity.
//
// Rows: D-09, D-20, D-36, K-02.
func TestDelegationPriority(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(1), "boss", "cook", "help")
	boss, cook, help := all[0], all[1], all[2]
	asks(boss, "t-0", "cook")
	gets(cook, "t-0")
	for _, each := range []string{"low", "normal", "high", "urgent", "high", "low", "urgent", ""} {
		context := fmt.Sprintf(`"context":{"priority":%q}`, each)
		if each == "" {
			context = `"context":{}`
		}
		asks(boss, fmt.Sprintf("t-%s-%d", each, len(h.TasksNow())), "cook", context)
		boss.Settle()
	}
	var order []string
	next := "t-0"
	for range 8 {
		says(cook, next, "completed")
		got := cook.Wait("the next task", func(m *stage.Message) bool {
			return strings.HasPrefix(m.ID, "t-") && m.ID != "t-0" && !strings.Contains(strings.Join(order, " ")+" ", m.ID+" ")
		})
		next = got.ID
		order = append(order, next)
	}
	require.Equal(t, []string{"t-urgent-4", "t-urgent-7", "t-high-3", "t-high-5", "t-normal-2", "t--8", "t-low-1", "t-low-6"}, order)
	require.Equal(t, "normal", fmt.Sprint(strings.Trim(string(h.ShownTask("t--8").Priority), `"`)))

	asks(boss, "t-last", "cook")
	boss.Settle()
	require.Empty(t, words(cook, "t-last"))
	says(cook, next, "in_progress")
	asks(cook, "p-1", "wash", fmt.Sprintf(`"context":{"parentTaskId":%q}`, next))
	gets(help, "p-1")
	gets(cook, "t-last") // while the other task waits
	h.Stop()
}
