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
