package main

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

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/events"
)

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
	h := troupeOf(t, crowded+doer("boss", 9)+delegating(t, "ann", "publish", "write", 4)+
		delegating(t, "bea", "write", "check", 3)+delegating(t, "cat", "check", "", 2), "boss")
	ends := make(map[string]string)
	lead := func(enough int) {
		boss := h.cast("boss")[0]
		for n := range many {
			_, _ = io.WriteString(boss.conn, requesting(fmt.Sprint("t-", n), "publish")+"\n") // may be closed
		}
		heard := 0
		for n := range many {
			id := fmt.Sprint("t-", n)
			w := boss.hear(1, id, delegation.Completed)
			if before, there := ends[id]; there {
				require.Equal(t, before, w.line, "it was over")
			}
			ends[id] = w.line
			if heard++; heard == enough {
				return
			}
		}
	}
	for range rounds(t, 3) {
		lead(1 + random.IntN(many-1))
		h.signal(syscall.SIGKILL)
		<-h.ended
	}
	lead(many)
	require.Len(t, ends, many)
	for id, line := range ends {
		require.JSONEq(t, `{"by":"publish","part":{"by":"write","part":{"by":"check","of":{}}}}`, string(readWord(t, line).Result), id)
	}
	states := make(map[wire.TaskState]int)
	waitForThat(t, "an end of all", func() bool {
		clear(states)
		for _, task := range h.tasksNow() {
			states[task.State]++
		}
		return states[wire.TaskDone]+states[wire.TaskCancelled] == len(h.tasksNow())
	})
	require.GreaterOrEqual(t, states[wire.TaskDone], 3*many, "parts of those that were begun anew may be done in vain")
	h.requireEndedOnce()
	h.stop()
	h.requireWholeRecord()
}

// requireEndedOnce requires that no task has ended twice.
func (s *stage) requireEndedOnce() {
	s.t.Helper()
	ended := make(map[string]int)
	for line := range strings.Lines(s.ask("events", "--json", "--since", "0", "--type", "task.*")) {
		var e wire.Event
		require.NoError(s.t, json.Unmarshal([]byte(line), &e), line)
		if e.Kind == events.TaskDone || e.Kind == events.TaskFailed || e.Kind == events.TaskCancelled {
			ended[e.Task]++
		}
	}
	for _, task := range s.tasksNow() {
		require.Equal(s.t, 1, ended[task.ID], task.ID)
	}
}
