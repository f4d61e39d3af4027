package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
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

// Tests that state is restored after an ordered stop, a kill, and a kill while the record is
// read.

// An orchestrator that is killed repeatedly during its start loses no data and leaves no
// process.
func TestWordsKilledAtTheStart(t *testing.T) {
	t.Parallel()
	s := newStage(t, quick+`
agent "worker" {
  command = ["cat"]
  on_exit = "requeue"
  capabilities {
    max_concurrent_tasks = 3
  }
}

agent "other" {
  command  = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]
  replicas = 3
}
`).up("--json")
	s.waitForEvents(4, events.AgentStarted, "")
	const many = 50
	names := make(map[string]bool)
	for n := range many {
		name := fmt.Sprint("task ", n)
		names[name] = true
		s.operated(nil, "submit-task", fmt.Sprintf(`{"type":"t","name":%q,"requiredRole":"worker"}`, name))
	}
	s.signal(syscall.SIGKILL)
	<-s.ended
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range rounds(t, 4) {
		s.up("--json")
		<-time.After(time.Duration(random.IntN(300)) * time.Millisecond)
		s.signal(syscall.SIGKILL)
		<-s.ended
	}
	s.up("--json")
	s.waitForEvents(4, events.AgentStarted, "")
	waitForThat(t, "end of what was left over", func() bool {
		return len(s.processes()) == 4+3 // three run sleep
	})
	requireNoHoles(t, s)
	var list struct{ Tasks []aTask }
	s.operated(&list, "query-tasks", `{"limit":1000}`)
	require.Len(t, list.Tasks, many)
	for _, task := range list.Tasks {
		require.True(t, names[task.Name])
		delete(names, task.Name)
	}
	s.stop()
}

// After an ordered stop all state is restored: tasks wait for their agents and questions for
// people, request keys are known, and opaque payloads are unchanged.
//
// Rows: B-30, B-46, B-53, B-61, T-48.
func TestWordsAfterAStop(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss")+holder("auto"), "boss", "holder")
	all := h.cast("boss", "holder")
	boss, held := all[0], all[1]
	const opaque = `{"n":12345678901234567890,"html":"<a&b>","e":1E400,"u":"\u00e9\ud83d\ude00\/","nested":{"payload":{}},"z":[]}`
	with := `{"type":"t","name":"n","payload":` + opaque + `,"requiredCapabilities":["hold"]}`
	done, running, waiting := boss.submit(with), boss.submit(with), boss.submit(with)
	held.assigned(done.ID)
	held.granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q,"result":%s}`, done.ID, opaque))
	held.assigned(running.ID)
	line := asking("why", "ask-user", `{"question":"why?","timeout":3600000}`) + "\n"
	boss.say(line)
	asked := h.waitForQuestions(1)[0]
	var issued wire.IssuedKey
	h.operated(&issued, "issue-key", `{"agent":"boss"}`)
	h.stop()
	require.Empty(t, boss.answers("why"), "nobody has answered")

	all = h.cast("boss", "holder")
	boss, held = all[0], all[1]
	for _, id := range []string{done.ID, running.ID, waiting.ID} {
		require.Equal(t, opaque, string(boss.task(id).Payload))
	}
	require.Equal(t, opaque, string(boss.task(done.ID).Result))
	held.assigned(running.ID)
	held.granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, running.ID))
	held.assigned(waiting.ID)
	require.Equal(t, []wire.Question{asked}, h.questions())
	boss.say(line)
	h.answerQuestion(asked.ID, "because")
	require.Contains(t, string(boss.answer("why").Payload), "because")
	status, body := h.operate("query-tasks", `{}`, issued.Key)
	require.Equal(t, http.StatusOK, status, "%s", body)
	require.Len(t, boss.tasks(`{}`), 3)
	requireNoHoles(t, h.stage)
	h.stop()
}

// With a store in memory, everything works until the orchestrator ends.
func TestWordsInMemory(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss")+holder("auto")+unkept, "boss", "holder")
	all := h.cast("boss", "holder")
	task := all[0].submit(toHold)
	all[1].assigned(task.ID)
	all[1].granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	require.Equal(t, "completed", all[0].task(task.ID).Status)
	requireNoHoles(t, h.stage)
	h.stop()
	require.NoFileExists(t, h.path("state/events.db"))
	boss := h.cast("boss", "holder")[0]
	boss.refused("NOT_FOUND", "get-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	h.stop()
}

// Every operation is available at the API. Its errors are those that agents get, and the HTTP
// status tells them apart.
//
// Rows: B-54, B-62, B-74.
func TestWordsAtTheDoor(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	task := a.submit(`{"type":"t","name":"of a"}`)
	for _, test := range []struct {
		operation, payload string
		status             int
		code               string
	}{
		{"query-agents", `{}`, http.StatusOK, ""},
		{"query-agents", ``, http.StatusOK, ""},
		{"query-agents", `{"role":"boss"}`, http.StatusBadRequest, "invalid"},
		{"query-agents", `[]`, http.StatusBadRequest, "invalid"},
		{"query-agents", `{"a":1} {"b":2}`, http.StatusBadRequest, "invalid"},
		{"get-task", fmt.Sprintf(`{"taskId":%q}`, task.ID), http.StatusOK, ""},
		{"get-task", `{"taskId":"task-nope"}`, http.StatusNotFound, "not_found"},
		{"complete-task", fmt.Sprintf(`{"taskId":%q}`, task.ID), http.StatusConflict, "conflict"},
		{"ask-user", `{"question":"who?"}`, http.StatusForbidden, "denied"},
		{"cancel-task", fmt.Sprintf(`{"taskId":%q,"reason":"by hand"}`, task.ID), http.StatusOK, ""},
		{"nope", `{}`, http.StatusNotFound, "not_found"},
	} {
		status, body := h.operate(test.operation, test.payload)
		require.Equal(t, test.status, status, "%s %s: %s", test.operation, test.payload, body)
		var refusal wire.Refusal
		require.NoError(t, json.Unmarshal(body, &refusal))
		if test.code != "" {
			require.EqualValues(t, test.code, refusal.Error.Code)
		}
	}
	require.Equal(t, "by hand", a.task(task.ID).Reason)
	h.stop()
}
