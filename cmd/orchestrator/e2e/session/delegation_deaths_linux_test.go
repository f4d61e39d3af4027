package session

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
)

// A task with a recoverable failure is retried, up to the configured number, and each try has
// its retry count. The source gets only the final response. Other failures are not retried.
//
// Rows: D-29, D-30, D-34, D-44.
func TestDelegationRetries(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(9)+"\nscheduler {\n  delegation_retries = 3\n}\n", "boss", "cook", "help")
	boss, cook := all[0], all[1]
	asks(boss, "t-well", "cook")
	asks(boss, "t-badly", "cook")
	asks(boss, "t-never", "cook")
	for _, id := range []string{"t-well", "t-badly", "t-never"} {
		gets(cook, id)
		says(cook, id, "failed", failing(delegation.FaultMCPRateLimited, id != "t-never"))
	}
	require.Equal(t, delegation.FaultMCPRateLimited, hear(boss, 1, "t-never", delegation.Failed).Error.Code)
	for _, id := range []string{"t-well", "t-badly"} {
		require.Equal(t, gets(cook, id).line, hear(cook, 2, id, aRequest).line, "the same request")
	}
	says(cook, "t-well", "completed", `"result":"at last"`)
	require.Equal(t, `"at last"`, string(hear(boss, 1, "t-well", delegation.Completed).Result))
	for tries := range 2 {
		says(cook, "t-badly", "failed", failing(delegation.FaultMCPRateLimited, true))
		hear(cook, 3+tries, "t-badly", aRequest)
	}
	says(cook, "t-badly", "failed", failing("WORN_OUT", true))
	last := hear(boss, 1, "t-badly", delegation.Failed)
	require.Equal(t, "WORN_OUT", last.Error.Code)
	require.JSONEq(t, `{"n":1.50}`, string(last.Error.Details))
	for id, tried := range map[string]int64{"t-well": 1, "t-badly": 3, "t-never": 0} {
		require.Len(t, words(boss, id), 1, "of what comes before the end it hears nothing")
		require.Len(t, words(cook, id), int(tried)+1)
		require.Equal(t, tried, *responseOf(h.Orchestrator, id).Metadata.RetryCount)
		require.Equal(t, int(tried)+1, h.ShownTask(id).Attempts)
	}
	h.Stop()
}

// After an agent is killed, its next run gets the task again, unchanged. If that run is killed
// too, the task fails and is not given to the agent again. The parts of a lost run are
// cancelled.
//
// Rows: D-17, D-23, D-36, D-41, T-57.
func TestDelegationTargetIsKilled(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(9), "boss", "cook", "help")
	boss, cook, help := all[0], all[1], all[2]
	asks(boss, "t-1", "cook", of("cook"))
	first := gets(cook, "t-1")
	says(cook, "t-1", "in_progress")
	hear(boss, 1, "t-1", delegation.InProgress)
	asks(cook, "p-1", "wash")
	gets(help, "p-1")
	cook.Kill()
	cook = h.NextRun("cook")
	require.Equal(t, first.line, gets(cook, "t-1").line)
	hear(help, 1, "p-1", delegation.ActCancel)
	require.Equal(t, wire.TaskAssigned, h.TaskState("t-1"))
	require.Equal(t, 2, h.ShownTask("t-1").Attempts)
	asks(boss, "t-2", "cook", of("cook"))
	gets(cook, "t-2")
	says(cook, "t-2", "completed")
	hear(boss, 1, "t-2", delegation.Completed)
	cook.Kill()
	last := hear(boss, 1, "t-1", delegation.Failed)
	require.Equal(t, delegation.FaultAgentUnavailable, last.Error.Code)
	require.Contains(t, last.Error.Message, "poison")
	require.Equal(t, int64(1), *last.Metadata.RetryCount)
	cook = h.NextRun("cook")
	cook.Settle()
	require.Empty(t, words(cook, "t-1"))
	require.Empty(t, words(cook, "t-2"), "what is done is not done again")
	require.Equal(t, []string{"in_progress", "failed"}, kinds(boss, "t-1"))
	h.Stop()
}

// A task that several agents can do goes to another one if its agent is killed.
//
// Rows: D-16, D-36.
func TestDelegationGoesToAnother(t *testing.T) {
	t.Parallel()
	h, all := plot(t, stage.Unlimited+doer("boss", 9)+doer("ann", 9, "cook")+doer("bea", 9, "cook"), "boss", "ann", "bea")
	boss, cooks := all[0], map[string]*stage.Agent{"ann": all[1], "bea": all[2]}
	asks(boss, "t-1", "cook")
	boss.Settle()
	has := h.ShownTask("t-1").AssignedTo
	other := cooks[map[string]string{"ann": "bea", "bea": "ann"}[has]]
	gets(cooks[has], "t-1")
	cooks[has].Kill()
	again := gets(other, "t-1")
	require.Equal(t, other.Name, again.Routing.Target)
	require.Equal(t, []string{"boss"}, again.Routing.Chain)
	says(other, "t-1", "completed")
	hear(boss, 1, "t-1", delegation.Completed)
	h.Stop()
}

// After a kill of the orchestrator all tasks continue. Agents get their tasks again, queued
// tasks wait, ended tasks stay ended, and a source gets the responses in its next run.
//
// Rows: D-12, D-14, D-17, D-36, D-39, T-57.
func TestDelegationOrchestratorIsKilled(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(2), "boss", "cook", "help")
	boss, cook := all[0], all[1]
	const more = `"observability":{"baggage":{"n":12345678901234567890}}`
	for _, id := range []string{"t-done", "t-held", "t-asking", "t-waiting"} {
		asks(boss, id, "cook", of("cook"), more)
	}
	gets(cook, "t-done")
	held := gets(cook, "t-held")
	says(cook, "t-done", "completed", `"result":1.50`)
	hear(boss, 1, "t-done", delegation.Completed)
	says(cook, "t-held", "in_progress")
	hear(boss, 1, "t-held", delegation.InProgress)
	gets(cook, "t-asking")
	says(cook, "t-asking", "input_required", `"message":"how?"`)
	h.WaitForQuestions(1)
	hear(boss, 1, "t-asking", delegation.InputRequired)
	boss.Settle()
	require.Empty(t, words(cook, "t-waiting"))
	stage.WaitFor(t, "receipts", func() bool { return len(h.Events(events.TaskAnswered, "")) == 3 })

	require.NoError(t, h.Process.Process.Kill())
	h.Await()
	all = h.StartAll("boss", "cook", "help")
	boss, cook = all[0], all[1]
	require.Equal(t, held.line, gets(cook, "t-held").line)
	gets(cook, "t-asking")
	require.Empty(t, h.Questions())
	says(cook, "t-held", "completed", `"result":{"again":true}`)
	require.Equal(t, `{"again":true}`, string(hear(boss, 1, "t-held", delegation.Completed).Result))
	gets(cook, "t-waiting")
	asks(boss, "t-done", "cook", of("cook"), more) // the new run does not know this
	require.Equal(t, "1.50", string(hear(boss, 1, "t-done", delegation.Completed).Result))
	asks(boss, "t-held", "taste", of("cook"))
	require.Equal(t, "id_reused", declined(boss, "t-held").Details["reason"])
	cook.Settle()
	require.Empty(t, words(cook, "t-done"))
	require.Zero(t, *responseOf(h.Orchestrator, "t-held").Metadata.RetryCount, "its agent is not to blame")
	for _, id := range []string{"t-asking", "t-waiting"} {
		says(cook, id, "completed")
		hear(boss, 1, id, delegation.Completed)
	}
	require.Equal(t, "1.50", string(responseOf(h.Orchestrator, "t-done").Result))
	h.Stop()
	requireWholeRecord(h.Orchestrator)
}

// A source that was down when a response came gets it in its next run, also after a kill of the
// orchestrator. It gets the latest response, again in each run until it has sent something.
//
// Rows: D-10, D-17, D-36, T-57.
func TestDelegationSourceIsAway(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(9), "boss", "cook", "help")
	boss, cook := all[0], all[1]
	for n := range 3 {
		asks(boss, fmt.Sprint("t-", n), "cook")
		gets(cook, fmt.Sprint("t-", n))
	}
	h.Ask("agent", "stop", "boss")
	says(cook, "t-0", "in_progress")
	says(cook, "t-0", "completed", `"result":{"n":1.50}`)
	cook.Settle()
	h.Ask("agent", "start", "boss")
	boss = h.NextRun("boss")
	require.Equal(t, `{"id":"t-0","status":"completed","result":{"n":1.50}}`, hear(boss, 1, "t-0", delegation.Completed).line)
	stage.WaitFor(t, "a receipt", func() bool { return len(h.Events(events.TaskAnswered, "")) == 1 })

	h.Ask("agent", "stop", "boss")
	says(cook, "t-1", "in_progress", `"n":2.50`)
	says(cook, "t-2", "completed", `"result":3.50`)
	cook.Settle()
	require.NoError(t, h.Process.Process.Kill())
	h.Await()
	all = h.StartAll("boss", "cook", "help")
	boss, cook = all[0], all[1]
	require.Equal(t, "3.50", string(hear(boss, 1, "t-2", delegation.Completed).Result))
	stage.WaitFor(t, "a receipt", func() bool { return len(h.Events(events.TaskAnswered, "")) > 0 })
	boss.Kill()
	boss = h.NextRun("boss")
	require.Equal(t, "3.50", string(hear(boss, 1, "t-2", delegation.Completed).Result), "its last run may not have read it")
	heard := time.Now()
	stage.WaitFor(t, "a second", func() bool { return time.Since(heard) > 1100*time.Millisecond })
	asks(boss, "t-3", "cook") // this shows that it has read the earlier response
	gets(cook, "t-3")
	boss.Kill()
	boss = h.NextRun("boss")
	boss.Settle()
	require.Empty(t, words(boss, "t-0"))
	require.Empty(t, words(boss, "t-2"))
	h.Stop()
}

// builtDelegator is the fixture delegator, built when first used. It is next to the links to
// this binary and is deleted with them.
var builtDelegator = sync.OnceValues(func() (string, error) {
	this, err := exec.LookPath("orchestrator")
	if err != nil {
		return "", err
	}
	program := filepath.Join(filepath.Dir(filepath.Dir(this)), "delegator")
	if text, err := exec.Command("go", "build", "-o", program, "orchestrator/fixtures/delegator").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the delegator: %w\n%s", err, text)
	}
	return program, nil
})

// delegating returns an agent that does one type of work and delegates a part of it.
func delegating(t *testing.T, name, does, asks string, room int) string {
	t.Helper()
	program, err := builtDelegator()
	require.NoError(t, err)
	return fmt.Sprintf(`
agent %[1]q {
  command = [%[2]q, "-does", %[3]q, "-asks", %[4]q, "-slow", "5ms"]
  capabilities {
    names                = [%[3]q]
    max_concurrent_tasks = %[5]d
  }
%[6]s
}
`, name, program, does, asks, room, soon)
}

// The orchestrator is killed repeatedly while agents delegate work to each other. The boss
// repeats its requests in each run. Each task, and each delegated part, ends exactly once with
// its result.
//
// Rows: D-12, D-17, D-22, D-26, D-36, D-39, T-50, T-57.
func TestDelegationKilled(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const many = 40
	h := stage.NewQuickTeam(t, stage.Unlimited+doer("boss", 9)+delegating(t, "ann", "publish", "write", 4)+
		delegating(t, "bea", "write", "check", 3)+delegating(t, "cat", "check", "", 2), "boss")
	ends := make(map[string]string)
	lead := func(enough int) {
		boss := h.StartAll("boss")[0]
		for n := range many {
			_, _ = io.WriteString(boss.Conn, requesting(fmt.Sprint("t-", n), "publish")+"\n") // may be closed
		}
		heard := 0
		for n := range many {
			id := fmt.Sprint("t-", n)
			w := hear(boss, 1, id, delegation.Completed)
			if before, there := ends[id]; there {
				require.Equal(t, before, w.line, "it was over")
			}
			ends[id] = w.line
			if heard++; heard == enough {
				return
			}
		}
	}
	for range stage.Rounds(t, 3) {
		lead(1 + random.IntN(many-1))
		h.Signal(syscall.SIGKILL)
		<-h.Ended
	}
	lead(many)
	require.Len(t, ends, many)
	for id, line := range ends {
		require.JSONEq(t, `{"by":"publish","part":{"by":"write","part":{"by":"check","of":{}}}}`, string(readWord(t, line).Result), id)
	}
	states := make(map[wire.TaskState]int)
	stage.WaitFor(t, "an end of all", func() bool {
		clear(states)
		for _, task := range h.TasksNow() {
			states[task.State]++
		}
		return states[wire.TaskDone]+states[wire.TaskCancelled] == len(h.TasksNow())
	})
	require.GreaterOrEqual(t, states[wire.TaskDone], 3*many, "parts of those that were begun anew may be done in vain")
	requireEndedOnce(h.Orchestrator)
	h.Stop()
	requireWholeRecord(h.Orchestrator)
}

// requireEndedOnce requires that no task has ended twice.
func requireEndedOnce(s *stage.Orchestrator) {
	s.T.Helper()
	ended := make(map[string]int)
	for line := range strings.Lines(s.Ask("events", "--json", "--since", "0", "--type", "task.*")) {
		var e wire.Event
		require.NoError(s.T, json.Unmarshal([]byte(line), &e), line)
		if e.Kind == events.TaskDone || e.Kind == events.TaskFailed || e.Kind == events.TaskCancelled {
			ended[e.Task]++
		}
	}
	for _, task := range s.TasksNow() {
		require.Equal(s.T, 1, ended[task.ID], task.ID)
	}
}
