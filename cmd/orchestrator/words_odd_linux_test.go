package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// Tests of agents that exit early, do not read, or do not use the protocol.

// A request of an agent that exits before the answer is still carried out, and affects no other
// agent.
//
// Rows: B-10, T-04.
func TestWordsAskAndGo(t *testing.T) {
	t.Parallel()
	const times = 20
	h := troupe(t, puppets("fine")+crowded+strings.Replace(phoenix, `["puppet", "phoenix"]`, `["sh", "go.sh"]`, 1), "fine")
	h.write("go.sh", fmt.Sprintf(`
n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) >n
[ $n -lt %d ] || exec sleep 1000
for i in 1 2 3 4 5; do
  printf '{"type":"request:submit-task","id":"%%s-%%s","timestamp":"%s","payload":{"type":"t","name":"%%s-%%s"}}\n' $n $i $n $i
done
`, times, noon))
	fine := h.cast("fine")[0]
	waitForThat(t, "tasks of all runs", func() bool { return len(h.events(events.TaskCreated, "phoenix")) == 5*times })
	fine.quiet()
	var list struct{ Tasks []aTask }
	h.operated(&list, "query-tasks", `{"limit":1000}`)
	names := make(map[string]bool)
	for _, task := range list.Tasks {
		names[task.Name] = true
	}
	require.Len(t, names, 5*times)
	h.stop()
}

// An agent that has closed its stdin gets no notices, and tasks go to others.
//
// Rows: B-08, T-04.
func TestWordsToOneWhoHasClosed(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss")+`
agent "closed" {
  command = ["sh", "-c", "exec 0<&-; echo closed; exec sleep 1000"]
  capabilities {
    names = ["hold"]
  }
}
`+holder("auto"), "boss", "holder")
	all := h.cast("boss", "holder")
	boss, held := all[0], all[1]
	h.waitForLines(1, "closed")
	for range 3 { // the first may go to the other agent
		task := boss.submit(toHold)
		held.assigned(task.ID)
		held.granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
		require.Equal(t, "completed", boss.task(task.ID).Status)
	}
	h.waitForEvents(1, events.AgentStdinClosed, "closed")
	h.stop()
}

// An agent without stdin may send requests but gets no tasks. The output of a raw agent is only
// logged.
//
// Rows: B-06, B-07, B-08.
func TestWordsOfTheUnheard(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss")+`
agent "null" {
  command = ["sh", "-c", "cat null; exec sleep 1000"]
  stdin   = "null"
}

agent "raw" {
  command  = ["sh", "-c", "cat raw; exec cat >raw-heard"]
  protocol = "raw"
}
`, "boss")
	h.write("null", asking("1", "submit-task", `{"type":"t","name":"of null"}`)+"\n")
	h.write("raw", asking("1", "submit-task", `{"type":"t","name":"of raw"}`)+"\n")
	boss := h.cast("boss")[0]
	h.waitForEvents(1, events.TaskCreated, "null")
	require.Equal(t, []string{asking("1", "submit-task", `{"type":"t","name":"of raw"}`)}, h.waitForLines(1, "raw"))
	task := boss.submit(`{"type":"t","name":"for anybody","requiredRole":"worker"}`)
	boss.quiet()
	require.Nil(t, boss.task(task.ID).AssignedTo, "nobody could be told of it")
	require.Empty(t, h.lines("null", control.StreamOut))
	h.stop()
	require.Len(t, h.events(events.TaskCreated, ""), 2)
	heard, err := os.ReadFile(h.path("raw-heard"))
	require.NoError(t, err)
	require.Empty(t, heard)
}

// An agent that was stopped by SIGSTOP gets its task when it continues.
//
// Rows: B-08, T-04.
func TestWordsToOneWhoStandsStill(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss")+holder("auto"), "boss", "holder")
	all := h.cast("boss", "holder")
	boss, held := all[0], all[1]
	require.NoError(t, syscall.Kill(held.pid, syscall.SIGSTOP))
	task := boss.submit(toHold)
	boss.await(task.ID, "running")
	require.Empty(t, held.heardSoFar())
	require.NoError(t, syscall.Kill(held.pid, syscall.SIGCONT))
	held.assigned(task.ID)
	held.granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	h.stop()
}

// An agent that is stopped by a signal while it has a task is reported as stalled.
func TestWordsFrozen(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss")+strings.Replace(holder("auto"), "  on_exit", "  health {\n    write_timeout = \"300ms\"\n  }\n  on_exit", 1), "boss", "holder")
	all := h.cast("boss", "holder")
	boss, held := all[0], all[1]
	task := boss.submit(toHold)
	held.assigned(task.ID)
	boss.await(task.ID, "running")
	require.NoError(t, syscall.Kill(held.pid, syscall.SIGSTOP))
	h.waitForEvents(1, events.AgentStalled, "holder")
	require.Contains(t, h.ask("why", "holder"), "stopped by a signal")
	require.NoError(t, syscall.Kill(held.pid, syscall.SIGCONT))
	h.waitForEvents(1, events.AgentRecovered, "holder")
	held.granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	h.stop()
}
