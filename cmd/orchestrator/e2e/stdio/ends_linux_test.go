package stdio

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// holder returns a scripted agent that gets tasks, with the value of on_exit for them.
func holder(onExit string) string {
	return fmt.Sprintf(`
agent "holder" {
  command = ["scripted", "holder"]
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
func await(a *stage.Agent, id, status string) (task stage.Task) {
	a.T.Helper()
	stage.WaitFor(a.T, "task that is "+status, func() bool {
		task = a.Task(id)
		return task.Status == status
	})
	return task
}

// When an agent exits, its task ends too: done after exit 0, otherwise failed. The next task in
// the queue goes to its next run.
//
// Rows: B-57, T-57.
func TestStdioHolderEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end     func(*stage.Agent)
		onExit  string
		status  string
		because string
	}{
		"well":           {func(a *stage.Agent) { a.Exit(0) }, "auto", "completed", ""},
		"badly":          {func(a *stage.Agent) { a.Exit(3) }, "auto", "failed", "exit 3"},
		"killed":         {func(a *stage.Agent) { a.Kill() }, "auto", "failed", "killed by SIGKILL"},
		"well, but fail": {func(a *stage.Agent) { a.Exit(0) }, "fail", "failed", "exit 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := stage.NewTeam(t, stage.Scripted("boss")+holder(test.onExit), "boss", "holder")
			all := h.StartAll("boss", "holder")
			boss, held := all[0], all[1]
			task, next := boss.Submit(toHold), boss.Submit(toHold)
			held.Assigned(task.ID)
			await(boss, task.ID, "running")
			test.end(held)
			ended := await(boss, task.ID, test.status)
			if test.because == "" {
				require.Equal(t, `{"success":true}`, string(ended.Result))
			} else {
				require.Contains(t, ended.Error, test.because)
				require.Contains(t, ended.Error, "holder")
			}
			h.NextRun("holder").Assigned(next.ID)
			h.Stop()
		})
	}
}

// With on_exit = "requeue", a task waits for another run. It fails after two crashes.
//
// Rows: B-57, T-57.
func TestStdioRequeueAndPoison(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("boss")+holder("requeue"), "boss", "holder")
	all := h.StartAll("boss", "holder")
	boss, held := all[0], all[1]
	task := boss.Submit(toHold)
	held.Assigned(task.ID)
	await(boss, task.ID, "running")
	held.Say(stage.Event("p", "progress", fmt.Sprintf(`{"taskId":%q,"progress":0.75,"message":"nearly"}`, task.ID)) + "\n")
	held.Settle()
	held.Kill()
	held = h.NextRun("holder")
	held.Assigned(task.ID)
	again := await(boss, task.ID, "running")
	require.Equal(t, 2, again.Attempts)
	require.Zero(t, again.Progress)
	require.Len(t, h.WaitForEvents(1, events.TaskRequeued, ""), 1)
	held.Exit(9)
	failed := await(boss, task.ID, "failed")
	require.Contains(t, failed.Error, "poison")
	require.Contains(t, failed.Error, "exit 9")
	held = h.NextRun("holder")
	held.Settle()
	require.Empty(t, held.Notices("task-assigned"), "it is not given to a third")
	h.Stop()
}

// When an agent is stopped on request, its task is not failed: it waits for the next run.
//
// Rows: B-57, T-57.
func TestStdioHolderIsStopped(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("boss")+holder("auto"), "boss", "holder")
	all := h.StartAll("boss", "holder")
	boss, held := all[0], all[1]
	task := boss.Submit(toHold)
	held.Assigned(task.ID)
	await(boss, task.ID, "running")
	h.Ask("agent", "stop", "holder")
	await(boss, task.ID, "queued")
	h.Ask("agent", "start", "holder")
	held = h.NextRun("holder")
	held.Assigned(task.ID)
	held.Granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	require.JSONEq(t, `{"success":true}`, string(await(boss, task.ID, "completed").Result))
	h.Stop()
}

// The last lines of an agent count: it may report the end of its task and exit.
//
// Rows: B-10, B-57, T-57.
func TestStdioLastOutputOfTheHolder(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("boss")+holder("auto"), "boss", "holder")
	all := h.StartAll("boss", "holder")
	boss, held := all[0], all[1]
	task := boss.Submit(toHold)
	held.Assigned(task.ID)
	held.Say(stage.Request("last", "complete-task", fmt.Sprintf(`{"taskId":%q,"result":"done after all"}`, task.ID)))
	held.Exit(1)
	require.Equal(t, `{"summary":"done after all","completed_by":"agent:holder"}`, string(await(boss, task.ID, "completed").Result))
	h.Stop()
}

// The dependents of a failed task are cancelled, directly or indirectly. The agent of a
// cancelled task is notified of the reason.
//
// Rows: B-49, B-69, B-71.
func TestStdioCancel(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("boss")+holder("auto"), "boss", "holder")
	all := h.StartAll("boss", "holder")
	boss, held := all[0], all[1]
	task := boss.Submit(toHold)
	after := boss.Submit(fmt.Sprintf(`{"type":"t","name":"after","dependencies":[%q]}`, task.ID))
	last := boss.Submit(fmt.Sprintf(`{"type":"t","name":"last","dependencies":[%q]}`, after.ID))
	held.Assigned(task.ID)
	boss.Granted(nil, "cancel-task", fmt.Sprintf(`{"taskId":%q,"reason":"no longer needed"}`, task.ID))
	notice := held.Wait("notice", func(m *stage.Message) bool { return m.Type == "notify:task-cancelled" })
	require.Equal(t, []string{"id", "payload", "timestamp", "type"}, notice.Keys)
	require.JSONEq(t, fmt.Sprintf(`{"taskId":%q,"reason":"no longer needed"}`, task.ID), string(notice.Payload))
	require.Equal(t, "no longer needed", boss.Task(task.ID).Reason)
	for _, id := range []string{after.ID, last.ID} {
		require.Equal(t, "cancelled", boss.Task(id).Status)
		require.Equal(t, "Dependency failed", boss.Task(id).Reason)
	}
	held.Refused("INVALID_REQUEST", "complete-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	require.Equal(t, "cancelled", boss.Task(task.ID).Status)

	task = boss.Submit(toHold)
	held.Assigned(task.ID)
	after = boss.Submit(fmt.Sprintf(`{"type":"t","name":"after","dependencies":[%q]}`, task.ID))
	held.Say(stage.Event("e", "error", fmt.Sprintf(`{"taskId":%q,"error":"TypeError: x","stack":"at y","recoverable":false}`, task.ID)) + "\n")
	require.Equal(t, "TypeError: x", await(boss, task.ID, "failed").Error)
	require.Equal(t, "Dependency failed", boss.Task(after.ID).Reason)
	h.Stop()
}

// Tests that state is restored after an ordered stop, a kill, and a kill while the record is
// read.

// An orchestrator that is killed repeatedly during its start loses no data and leaves no
// process.
func TestStdioKilledAtTheStart(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
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
`).Up("--json")
	s.WaitForEvents(4, events.AgentStarted, "")
	const many = 50
	names := make(map[string]bool)
	for n := range many {
		name := fmt.Sprint("task ", n)
		names[name] = true
		s.Operated(nil, "submit-task", fmt.Sprintf(`{"type":"t","name":%q,"requiredRole":"worker"}`, name))
	}
	s.Signal(syscall.SIGKILL)
	<-s.Ended
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range stage.Rounds(t, 4) {
		s.Up("--json")
		<-time.After(time.Duration(random.IntN(300)) * time.Millisecond)
		s.Signal(syscall.SIGKILL)
		<-s.Ended
	}
	s.Up("--json")
	s.WaitForEvents(4, events.AgentStarted, "")
	stage.WaitFor(t, "end of what was left over", func() bool {
		return len(s.Processes()) == 4+3 // three run sleep
	})
	stage.RequireNoGaps(t, s)
	var list struct{ Tasks []stage.Task }
	s.Operated(&list, "query-tasks", `{"limit":1000}`)
	require.Len(t, list.Tasks, many)
	for _, task := range list.Tasks {
		require.True(t, names[task.Name])
		delete(names, task.Name)
	}
	s.Stop()
}

// After an ordered stop all state is restored: tasks wait for their agents and questions for
// people, request keys are known, and opaque payloads are unchanged.
//
// Rows: B-30, B-46, B-53, B-61, T-48.
func TestStdioTasksAfterAStop(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("boss")+holder("auto"), "boss", "holder")
	all := h.StartAll("boss", "holder")
	boss, held := all[0], all[1]
	const opaque = `{"n":12345678901234567890,"html":"<a&b>","e":1E400,"u":"\u00e9\ud83d\ude00\/","nested":{"payload":{}},"z":[]}`
	with := `{"type":"t","name":"n","payload":` + opaque + `,"requiredCapabilities":["hold"]}`
	done, running, waiting := boss.Submit(with), boss.Submit(with), boss.Submit(with)
	held.Assigned(done.ID)
	held.Granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q,"result":%s}`, done.ID, opaque))
	held.Assigned(running.ID)
	line := stage.Request("why", "ask-user", `{"question":"why?","timeout":3600000}`) + "\n"
	boss.Say(line)
	asked := h.WaitForQuestions(1)[0]
	var issued wire.IssuedKey
	h.Operated(&issued, "issue-key", `{"agent":"boss"}`)
	h.Stop()
	require.Empty(t, boss.Answers("why"), "nobody has answered")

	all = h.StartAll("boss", "holder")
	boss, held = all[0], all[1]
	for _, id := range []string{done.ID, running.ID, waiting.ID} {
		require.Equal(t, opaque, string(boss.Task(id).Payload))
	}
	require.Equal(t, opaque, string(boss.Task(done.ID).Result))
	held.Assigned(running.ID)
	held.Granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, running.ID))
	held.Assigned(waiting.ID)
	require.Equal(t, []wire.Question{asked}, h.Questions())
	boss.Say(line)
	h.AnswerQuestion(asked.ID, "because")
	require.Contains(t, string(boss.Answer("why").Payload), "because")
	status, body := h.Operate("query-tasks", `{}`, issued.Key)
	require.Equal(t, http.StatusOK, status, "%s", body)
	require.Len(t, boss.Tasks(`{}`), 3)
	stage.RequireNoGaps(t, h.Orchestrator)
	h.Stop()
}

// With a store in memory, everything works until the orchestrator ends.
func TestStdioRecordInMemory(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("boss")+holder("auto")+stage.InMemory, "boss", "holder")
	all := h.StartAll("boss", "holder")
	task := all[0].Submit(toHold)
	all[1].Assigned(task.ID)
	all[1].Granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	require.Equal(t, "completed", all[0].Task(task.ID).Status)
	stage.RequireNoGaps(t, h.Orchestrator)
	h.Stop()
	require.NoFileExists(t, h.Path("state/events.db"))
	boss := h.StartAll("boss", "holder")[0]
	boss.Refused("NOT_FOUND", "get-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	h.Stop()
}

// Every operation is available at the API. Its errors equal the errors for agents, and the HTTP
// status tells them apart.
//
// Rows: B-54, B-62, B-74.
func TestStdioMessagesOverHTTP(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a"), "a")
	a := h.StartAll("a")[0]
	task := a.Submit(`{"type":"t","name":"of a"}`)
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
		status, body := h.Operate(test.operation, test.payload)
		require.Equal(t, test.status, status, "%s %s: %s", test.operation, test.payload, body)
		var refusal wire.Refusal
		require.NoError(t, json.Unmarshal(body, &refusal))
		if test.code != "" {
			require.EqualValues(t, test.code, refusal.Error.Code)
		}
	}
	require.Equal(t, "by hand", a.Task(task.ID).Reason)
	h.Stop()
}
