package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
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
	boss.asks("t-1", "cook")
	boss.asks("t-2", "wash")
	mute.gets("t-2")
	cook.gets("t-1")
	boss.acts("t-2", delegation.ActStatus, `{}`) // answered a second later
	for n, status := range []string{delegation.Pending, delegation.InProgress, delegation.Completed} {
		boss.acts("t-1", delegation.ActStatus, `{"deep":{"n":1.50}}`)
		require.JSONEq(t, `{"id":"t-1","type":"task.status","payload":{}}`, cook.hear(n+1, "t-1", delegation.ActStatus).line)
		cook.says("t-1", status, fmt.Sprintf(`"n":%d.00`, n))
		require.Contains(t, boss.hear(1, "t-1", status).line, fmt.Sprintf(`"n":%d.00`, n))
	}
	boss.acts("t-1", delegation.ActStatus, `{}`)
	require.Contains(t, boss.hear(2, "t-1", delegation.Completed).line, `"n":2.00`, "what it said in the end")
	boss.quiet()
	cook.quiet()
	require.Equal(t, []string{"pending", "in_progress", "completed", "completed"}, boss.kinds("t-1"))
	require.Equal(t, []string{aRequest, "task.status", "task.status", "task.status"}, cook.kinds("t-1"), "nobody asks when it is over")
	require.Len(t, h.tasksNow(), 2, "what is said about a task is no task")

	require.Equal(t, "help", boss.hear(1, "t-2", delegation.Pending).Metadata.Agent)
	mute.says("t-2", "in_progress", `"message":"after all"`)
	require.Equal(t, "after all", boss.hear(1, "t-2", delegation.InProgress).Message)

	boss.acts("t-3", delegation.ActStatus, `{}`)
	require.Equal(t, "NOT_FOUND", boss.declined("t-3").Code)
	boss.acts("t-1", delegation.ActStatus, `[]`)
	require.Equal(t, "/payload", boss.declined("t-1").Details["pointer"])
	cook.acts("t-2", delegation.ActStatus, `{}`) // not its task
	require.Equal(t, "UNAUTHORIZED", cook.declined("t-2").Code)
	require.Equal(t, wire.TaskRunning, h.taskState("t-2"))
	h.stop()
}

// tasksNow returns all tasks.
func (s *stage) tasksNow() []wire.Task {
	s.t.Helper()
	var all wire.TaskList
	s.operated(&all, "query-tasks", `{"limit":100000}`)
	return all.Tasks
}

// An agent may ask for input repeatedly. People see the question in the inbox, and the source
// gets it too. An answer from either is passed on unchanged, and the same task continues.
//
// Rows: D-19, D-25, D-26, D-38, K-22.
func TestDelegationInput(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(9), "boss", "cook", "help")
	boss, cook := all[0], all[1]
	boss.asks("t-1", "cook")
	cook.gets("t-1")
	cook.says("t-1", "in_progress")
	cook.says("t-1", "input_required", `"message":"Rye or wheat?"`, `"input":{"options":["rye",{"value":"wheat"}],"options2":1.0}`)
	boss.hear(1, "t-1", delegation.InputRequired)
	q := h.waitForQuestions(1)[0]
	require.Equal(t, []string{"t-1", "cook", "Rye or wheat?"}, []string{q.Task, q.Agent, q.Question})
	require.Contains(t, h.ask("inbox"), "Rye or wheat?")
	require.Equal(t, wire.TaskNeedsHuman, h.taskState("t-1"))
	h.ask("inbox", "answer", q.ID, "rye")
	require.JSONEq(t, `{"id":"t-1","type":"task.update","payload":{"input":"rye"}}`, cook.hear(1, "t-1", delegation.ActUpdate).line)
	require.Equal(t, wire.TaskRunning, h.taskState("t-1"))
	cook.says("t-1", "in_progress")

	cook.says("t-1", "input_required", `"input":{"question":"How much?"}`)
	boss.hear(2, "t-1", delegation.InputRequired)
	q = h.waitForQuestions(1)[0]
	require.Equal(t, "How much?", q.Question)
	const input = `{"n":12345678901234567890.50,"e":"\u00e9<&>","l":[null,{}]}`
	boss.acts("t-1", delegation.ActUpdate, `{"input":`+input+`,"other":1}`)
	require.Equal(t, `{"id":"t-1","type":"task.update","payload":{"input":`+input+`,"other":1}}`, cook.hear(2, "t-1", delegation.ActUpdate).line)
	require.Empty(t, h.questions(), "nobody is asked any more")
	require.Equal(t, cli.ExitNotFound, h.fails("inbox", "answer", q.ID, "late"))

	cook.says("t-1", "input_required")
	boss.hear(3, "t-1", delegation.InputRequired)
	h.waitForQuestions(1)
	h.ask("task", "input", "t-1", "--json-input", "null")
	require.JSONEq(t, `{"id":"t-1","type":"task.update","payload":{"input":null}}`, cook.hear(3, "t-1", delegation.ActUpdate).line)
	cook.says("t-1", "input_required", `"error":{"code":"X","message":"Where?"}`)
	require.Equal(t, "Where?", h.waitForQuestions(1)[0].Question)
	cook.says("t-1", "completed", `"result":7`) // it continues without input
	boss.hear(1, "t-1", delegation.Completed)
	require.Empty(t, h.questions())

	boss.acts("t-1", delegation.ActUpdate, `{"input":1}`)
	require.Equal(t, "wrong_state", boss.declined("t-1").Details["reason"])
	boss.acts("t-1", delegation.ActUpdate, `{}`)
	waitForThat(t, "second refusal", func() bool { return len(boss.answers("t-1")) == 2 })
	require.Equal(t, "/payload/input", boss.answers("t-1")[1].Error.Details["pointer"])
	cook.quiet()
	require.Equal(t, []string{aRequest, "task.update", "task.update", "task.update"}, cook.kinds("t-1"))
	require.Len(t, h.tasksNow(), 1)
	require.Equal(t, 1, h.shownTask("t-1").Attempts)
	h.stop()
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
		{func(id string) { boss.acts(id, delegation.ActCancel, `{"reason":"there is no hunger left"}`) }, "there is no hunger left"},
		{func(id string) { h.ask("task", "cancel", id, "-m", "said by a person") }, "said by a person"},
		{func(id string) { h.operated(nil, "cancel-task", fmt.Sprintf(`{"taskId":%q,"reason":"over HTTP"}`, id)) }, "over HTTP"},
	} {
		id, part := fmt.Sprint("t-", n), fmt.Sprint("p-", n)
		boss.asks(id, "cook")
		cook.gets(id)
		cook.says(id, "in_progress")
		cook.asks(part, "wash", fmt.Sprintf(`"context":{"parentTaskId":%q}`, id))
		help.gets(part)
		help.says(part, "in_progress")
		cook.hear(1, part, delegation.InProgress)
		way.cancel(id)
		require.JSONEq(t, fmt.Sprintf(`{"id":%q,"type":"task.cancel","payload":{"reason":%q}}`, id, way.reason), cook.hear(1, id, delegation.ActCancel).line)
		help.hear(1, part, delegation.ActCancel)
		last := boss.hear(1, id, delegation.Cancelled)
		require.Nil(t, last.Error)
		require.Contains(t, last.line, way.reason)
		require.Equal(t, "cook", last.Metadata.Agent)
		cook.hear(1, part, delegation.Cancelled)
		cook.says(id, "cancelled")
		cook.says(id, "completed", `"result":1`)
		help.says(part, "failed", failing("X", true))
		for _, a := range all {
			a.quiet()
		}
		require.Equal(t, []string{"in_progress", "cancelled"}, boss.kinds(id))
		require.Equal(t, []string{"in_progress", "cancelled"}, cook.kinds(part))
		require.Equal(t, []wire.TaskState{wire.TaskCancelled, wire.TaskCancelled}, []wire.TaskState{h.taskState(id), h.taskState(part)})
		require.Equal(t, way.reason, h.shownTask(id).Reason)
	}
	boss.acts("t-0", delegation.ActCancel, `{}`)
	require.Equal(t, "wrong_state", boss.declined("t-0").Details["reason"])

	boss.asks("t-9", "cook")
	cook.gets("t-9")
	cook.says("t-9", "cancelled", `"error":{"code":"TIRED","message":"not today"}`)
	require.Contains(t, boss.hear(1, "t-9", delegation.Cancelled).line, `"message":"not today"`)
	cook.quiet()
	require.Equal(t, []string{aRequest}, cook.kinds("t-9"), "it knows that")
	require.Equal(t, "not today", h.shownTask("t-9").Reason)
	h.stop()
}

// An agent with capacity one gets the most urgent task first, and the oldest of these. A task
// that waits for its own parts does not use capacity.
//
// Rows: D-09, D-20, D-36, K-02.
func TestDelegationPriority(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(1), "boss", "cook", "help")
	boss, cook, help := all[0], all[1], all[2]
	boss.asks("t-0", "cook")
	cook.gets("t-0")
	for _, each := range []string{"low", "normal", "high", "urgent", "high", "low", "urgent", ""} {
		context := fmt.Sprintf(`"context":{"priority":%q}`, each)
		if each == "" {
			context = `"context":{}`
		}
		boss.asks(fmt.Sprintf("t-%s-%d", each, len(h.tasksNow())), "cook", context)
		boss.quiet()
	}
	var order []string
	next := "t-0"
	for range 8 {
		cook.says(next, "completed")
		got := cook.wait("the next task", func(m *message) bool {
			return strings.HasPrefix(m.ID, "t-") && m.ID != "t-0" && !strings.Contains(strings.Join(order, " ")+" ", m.ID+" ")
		})
		next = got.ID
		order = append(order, next)
	}
	require.Equal(t, []string{"t-urgent-4", "t-urgent-7", "t-high-3", "t-high-5", "t-normal-2", "t--8", "t-low-1", "t-low-6"}, order)
	require.Equal(t, "normal", fmt.Sprint(strings.Trim(string(h.shownTask("t--8").Priority), `"`)))

	boss.asks("t-last", "cook")
	boss.quiet()
	require.Empty(t, cook.words("t-last"))
	cook.says(next, "in_progress")
	cook.asks("p-1", "wash", fmt.Sprintf(`"context":{"parentTaskId":%q}`, next))
	help.gets("p-1")
	cook.gets("t-last") // while the other task waits
	h.stop()
}
