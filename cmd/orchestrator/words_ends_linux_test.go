package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/events"
)

// holder returns a puppet that gets tasks, with the value of on_exit for them.
func holder(onExit string) string {
	return fmt.Sprintf(`
agent "holder" {
  command = ["puppet", "holder"]
  on_exit = %q
  capabilities {
    names = ["hold"]
  }
  restart {
    policy = "always"
    delay  = "10ms"
    factor = 1
    jitter = 0
    burst  = 1000
  }
}
`, onExit)
}

const toHold = `{"type":"t","name":"held","requiredCapabilities":["hold"]}`

// await waits until a task has a status and returns the task.
func (a *actor) await(id, status string) (task aTask) {
	a.t.Helper()
	waitForThat(a.t, "task that is "+status, func() bool {
		task = a.task(id)
		return task.Status == status
	})
	return task
}

// When an agent exits, its task ends too: done after exit 0, otherwise failed. The next task in
// the queue goes to its next run.
//
// Rows: B-57, T-57.
func TestWordsEndOfTheHolder(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end     func(*actor)
		onExit  string
		status  string
		because string
	}{
		"well":           {func(a *actor) { a.exit(0) }, "auto", "completed", ""},
		"badly":          {func(a *actor) { a.exit(3) }, "auto", "failed", "exit 3"},
		"killed":         {func(a *actor) { a.die() }, "auto", "failed", "killed by SIGKILL"},
		"well, but fail": {func(a *actor) { a.exit(0) }, "fail", "failed", "exit 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := troupe(t, puppets("boss")+holder(test.onExit), "boss", "holder")
			all := h.cast("boss", "holder")
			boss, held := all[0], all[1]
			task, next := boss.submit(toHold), boss.submit(toHold)
			held.assigned(task.ID)
			boss.await(task.ID, "running")
			test.end(held)
			ended := boss.await(task.ID, test.status)
			if test.because == "" {
				require.Equal(t, `{"success":true}`, string(ended.Result))
			} else {
				require.Contains(t, ended.Error, test.because)
				require.Contains(t, ended.Error, "holder")
			}
			h.enter("holder").assigned(next.ID)
			h.stop()
		})
	}
}

// With on_exit = "requeue", a task waits for another run. It fails after two crashes.
//
// Rows: B-57, T-57.
func TestWordsRequeueAndPoison(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss")+holder("requeue"), "boss", "holder")
	all := h.cast("boss", "holder")
	boss, held := all[0], all[1]
	task := boss.submit(toHold)
	held.assigned(task.ID)
	boss.await(task.ID, "running")
	held.say(telling("p", "progress", fmt.Sprintf(`{"taskId":%q,"progress":0.75,"message":"nearly"}`, task.ID)) + "\n")
	held.quiet()
	held.die()
	held = h.enter("holder")
	held.assigned(task.ID)
	again := boss.await(task.ID, "running")
	require.Equal(t, 2, again.Attempts)
	require.Zero(t, again.Progress)
	require.Len(t, h.waitForEvents(1, events.TaskRequeued, ""), 1)
	held.exit(9)
	failed := boss.await(task.ID, "failed")
	require.Contains(t, failed.Error, "poison")
	require.Contains(t, failed.Error, "exit 9")
	held = h.enter("holder")
	held.quiet()
	require.Empty(t, held.notices("task-assigned"), "it is not given to a third")
	h.stop()
}

// When an agent is stopped on request, its task is not failed: it waits for the next run.
//
// Rows: B-57, T-57.
func TestWordsHolderIsStopped(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss")+holder("auto"), "boss", "holder")
	all := h.cast("boss", "holder")
	boss, held := all[0], all[1]
	task := boss.submit(toHold)
	held.assigned(task.ID)
	boss.await(task.ID, "running")
	h.ask("agent", "stop", "holder")
	boss.await(task.ID, "queued")
	h.ask("agent", "start", "holder")
	held = h.enter("holder")
	held.assigned(task.ID)
	held.granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	require.JSONEq(t, `{"success":true}`, string(boss.await(task.ID, "completed").Result))
	h.stop()
}

// The last lines of an agent count: it may report the end of its task and exit.
//
// Rows: B-10, B-57, T-57.
func TestWordsLastWordsOfTheHolder(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss")+holder("auto"), "boss", "holder")
	all := h.cast("boss", "holder")
	boss, held := all[0], all[1]
	task := boss.submit(toHold)
	held.assigned(task.ID)
	held.say(asking("last", "complete-task", fmt.Sprintf(`{"taskId":%q,"result":"done after all"}`, task.ID)))
	held.exit(1)
	require.Equal(t, `{"summary":"done after all","completed_by":"agent:holder"}`, string(boss.await(task.ID, "completed").Result))
	h.stop()
}

// The dependents of a failed task are cancelled, directly or indirectly. The agent of a
// cancelled task is notified of the reason.
//
// Rows: B-49, B-69, B-71.
func TestWordsCancel(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss")+holder("auto"), "boss", "holder")
	all := h.cast("boss", "holder")
	boss, held := all[0], all[1]
	task := boss.submit(toHold)
	after := boss.submit(fmt.Sprintf(`{"type":"t","name":"after","dependencies":[%q]}`, task.ID))
	last := boss.submit(fmt.Sprintf(`{"type":"t","name":"last","dependencies":[%q]}`, after.ID))
	held.assigned(task.ID)
	boss.granted(nil, "cancel-task", fmt.Sprintf(`{"taskId":%q,"reason":"not needed any more"}`, task.ID))
	notice := held.wait("notice", func(m *message) bool { return m.Type == "notify:task-cancelled" })
	require.Equal(t, []string{"id", "payload", "timestamp", "type"}, notice.keys)
	require.JSONEq(t, fmt.Sprintf(`{"taskId":%q,"reason":"not needed any more"}`, task.ID), string(notice.Payload))
	require.Equal(t, "not needed any more", boss.task(task.ID).Reason)
	for _, id := range []string{after.ID, last.ID} {
		require.Equal(t, "cancelled", boss.task(id).Status)
		require.Equal(t, "Dependency failed", boss.task(id).Reason)
	}
	held.refused("INVALID_REQUEST", "complete-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	require.Equal(t, "cancelled", boss.task(task.ID).Status)

	task = boss.submit(toHold)
	held.assigned(task.ID)
	after = boss.submit(fmt.Sprintf(`{"type":"t","name":"after","dependencies":[%q]}`, task.ID))
	held.say(telling("e", "error", fmt.Sprintf(`{"taskId":%q,"error":"TypeError: x","stack":"at y","recoverable":false}`, task.ID)) + "\n")
	require.Equal(t, "TypeError: x", boss.await(task.ID, "failed").Error)
	require.Equal(t, "Dependency failed", boss.task(after.ID).Reason)
	h.stop()
}
