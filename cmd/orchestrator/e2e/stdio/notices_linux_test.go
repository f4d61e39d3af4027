package stdio

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// A thousand notices and a thousand answers reach one agent at the same time, from many
// goroutines. Every line is complete and arrives once.
//
// Rows: B-02, B-21, B-73, T-58.
func TestStdioNoticesNeverInterleave(t *testing.T) {
	t.Parallel()
	const each, bosses = 250, 4
	hcl, names := stage.Scripted()+stage.Unlimited+`
agent "holder" {
  command = ["scripted", "holder"]
  capabilities {
    names                = ["hold"]
    max_concurrent_tasks = 1000
  }
}
`, []string{"holder"}
	for i := range bosses {
		name := fmt.Sprint("boss", i)
		hcl, names = hcl+fmt.Sprintf("agent %q {\n  command = [\"scripted\", %q]\n}\n", name, name), append(names, name)
	}
	h := stage.NewTeam(t, hcl, names...)
	all := h.StartAll(names...)
	held := all[0]
	var group sync.WaitGroup
	for i, a := range all {
		group.Go(func() {
			for n := range each {
				line := stage.Request(fmt.Sprint("submit-", n), "submit-task", toHold) + "\n"
				if i == 0 {
					line = ""
					for part := range bosses {
						line += stage.Request(fmt.Sprint("query-", n*bosses+part), "query-tasks", `{"limit":5}`) + "\n"
					}
				}
				a.Say(line)
			}
		})
	}
	group.Wait()
	stage.WaitFor(t, "end of the talk", func() bool { return len(held.Lines()) == 2*each*bosses })
	answered, noticed := make(map[string]int), make(map[string]int)
	for _, m := range held.All() {
		if m.Type == "notify:task-assigned" {
			noticed[string(m.Payload)]++
		} else {
			answered[string(m.CorrelationID)]++
		}
	}
	require.Len(t, noticed, each*bosses)
	require.Len(t, answered, each*bosses)
	for _, boss := range all[1:] {
		stage.WaitFor(t, "answers", func() bool { return len(boss.Lines()) == each })
		ids := make(map[string]bool)
		for _, m := range boss.All() {
			ids[string(m.CorrelationID)] = true
		}
		require.Len(t, ids, each)
	}
	h.Stop()
}

// An agent that never reads affects only itself: it gets as many notices as fit, and others
// continue.
//
// Rows: B-08, T-04.
func TestStdioNoticesToAnAgentThatReadsNothing(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("boss", "fine")+stage.Unlimited+`
agent "deaf" {
  command = ["sleep", "1000"]
  capabilities {
    names                = ["deaf"]
    max_concurrent_tasks = 100000
  }
  health {
    write_timeout = "200ms"
  }
}
`, "boss", "fine")
	all := h.StartAll("boss", "fine")
	boss, fine := all[0], all[1]
	for round := range 10 {
		var lines strings.Builder
		for n := range 100 {
			fmt.Fprintln(&lines, stage.Request(fmt.Sprint("id-", round, "-", n), "submit-task", `{"type":"t","name":"`+strings.Repeat("x", 100)+`","requiredCapabilities":["deaf"]}`))
		}
		boss.Say(lines.String())
		fine.Settle()
	}
	h.WaitForEvents(1, events.AgentStalled, "deaf")
	fine.Settle()
	boss.Settle()
	_, some := agents(fine, `{"status":"stale"}`)
	require.Equal(t, "deaf", some[0].ID)
	h.Stop()
}

// Three agents get the shutdown notice with the same grace. One exits, one ignores it, and one
// leaves a process that holds its stdout open. The first gets no signal, the second is killed,
// and the process left behind is ended at once.
//
// Rows: B-69, B-72, T-49.
func TestStdioShutdown(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, `
defaults {
  stop {
    close_stdin = "30s"
  }
}

agent "goes" {
  command = ["sh", "-c", "trap 'echo signalled' TERM; read -r notice; echo \"$notice\""]
}

agent "stays" {
  command = ["sh", "-c", "trap '' TERM; read -r notice; echo \"$notice\"; while :; do sleep 0.05; done"]
}

agent "leaves" {
  command = ["sh", "-c", "sleep 1000 & echo $! >left; read -r notice; echo \"$notice\""]
}
`)
	h.Up("--json")
	h.WaitForEvents(3, events.AgentStarted, "")
	left := h.WaitForPIDs(1, "left")
	h.Signal(syscall.SIGTERM)
	for _, name := range []string{"goes", "stays", "leaves"} {
		lines := h.WaitForLines(1, name)
		require.Len(t, lines, 1, "%s: more than the notice", name)
		m := stage.Received(t, lines[0])
		require.Equal(t, []string{"id", "payload", "timestamp", "type"}, m.Keys)
		require.Equal(t, "notify:shutdown", m.Type)
		require.JSONEq(t, `{"gracePeriod":30000,"reason":"Orchestrator stopping"}`, string(m.Payload))
		_, err := time.Parse(time.RFC3339, m.Timestamp)
		require.NoError(t, err)
	}
	h.WaitForEvents(1, events.AgentStopped, "goes")
	h.WaitForEvents(1, events.AgentStopped, "leaves")
	began := time.Now() // the signal was received before this
	stage.RequireGone(t, left...)
	require.Equal(t, []string{"stays"}, names(h.Status()))
	stage.WaitFor(t, "the end of the echo", func() bool { return time.Since(began) > cli.SignalEcho })
	h.Signal(syscall.SIGTERM) // ends the wait for the grace of 30 s
	require.Equal(t, cli.ExitTerminated, h.Await())
	require.Empty(t, h.Processes())
	require.Contains(t, h.Events(events.AgentStopped, "stays")[0].Text, "had to be killed")
}

// names returns the names of the running agents.
func names(status control.Status) (found []string) {
	for _, view := range status.Agents {
		if view.State.Live() {
			found = append(found, view.Name)
		}
	}
	return found
}

// All agents share one grace period, however many use it up.
//
// Rows: B-72, T-49.
func TestStdioSharedGrace(t *testing.T) {
	t.Parallel()
	hcl := "orchestrator {\n  shutdown = \"1s\"\n}\n"
	for i := range 40 { // with a second for each, the test would time out
		after := ""
		if i > 0 {
			after = fmt.Sprintf("  depends_on = [\"s%d\"]\n", i-1)
		}
		hcl += fmt.Sprintf("agent \"s%d\" {\n  command = [\"sh\", \"-c\", \"trap '' TERM; while :; do sleep 0.05; done\"]\n%s}\n", i, after)
	}
	h := stage.NewTeam(t, hcl)
	h.Up("--json")
	h.WaitForEvents(40, events.AgentStarted, "")
	h.Stop()
	require.Contains(t, h.Events(events.OrchestratorStopped, "")[0].Text, "40 had to be killed")
}

// Messages during the grace period are processed, and completions in it count.
//
// Rows: B-57, B-72.
func TestStdioMessagesDuringTheGrace(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("boss")+`
agent "holder" {
  command = ["scripted", "holder", "stays"]
  capabilities {
    names = ["hold"]
  }
  stop {
    close_stdin = "30s"
  }
}
`, "boss", "holder")
	all := h.StartAll("boss", "holder")
	boss, held := all[0], all[1]
	task := boss.Submit(toHold)
	held.Assigned(task.ID)
	await(boss, task.ID, "running")
	h.Signal(syscall.SIGTERM)
	held.Wait("notice of the end", func(m *stage.Message) bool { return m.Type == "notify:shutdown" })
	held.Say(stage.Request("last", "complete-task", fmt.Sprintf(`{"taskId":%q,"result":"in time"}`, task.ID)) + "\n")
	held.Exit(0)
	require.Equal(t, cli.ExitOK, h.Await())
	require.Len(t, h.Events(events.TaskDone, ""), 1)
	require.Contains(t, string(h.Events(events.TaskDone, "")[0].Payload), "in time")
}

// An agent made with the SDK works with the real program.
//
// Rows: B-11, B-57.
func TestStdioAgentOfTheLibrary(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("boss")+`
agent "worker" {
  command = ["worker"]
  capabilities {
    names = ["labour"]
  }
}
`, "boss")
	boss := h.StartAll("boss")[0]
	for n := range 20 {
		payload := fmt.Sprintf(`{"n":1234567890123456789%d,"html":"<a&b>"}`, n)
		task := boss.Submit(`{"type":"t","name":"n","requiredCapabilities":["labour"],"payload":` + payload + `}`)
		require.Equal(t, payload, string(await(boss, task.ID, "completed").Result))
	}
	h.Stop()
	require.Contains(t, h.Events(events.AgentStopped, "worker")[0].Text, "exit 0")
}

// The record is a table that other programs can read. Its events are plain text, in order of time.
func TestStdioEventsHaveNoHoles(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("boss")+holder("auto"), "boss", "holder")
	all := h.StartAll("boss", "holder")
	task := all[0].Submit(toHold)
	all[1].Assigned(task.ID)
	all[1].Granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	last := stage.RequireNoGaps(t, h.Orchestrator)
	require.Positive(t, last)
	h.Stop()
	info, err := os.Stat(filepath.Join(h.State(), "events.db"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	h.Up("--json")
	h.NextRun("boss")
	require.Greater(t, stage.RequireNoGaps(t, h.Orchestrator), last)
	h.Stop()
}

// Tests of agents that exit early, do not read, or do not use the protocol.

// A request of an agent that exits before the answer is still carried out, and affects no other
// agent.
//
// Rows: B-10, T-04.
func TestStdioAskAndExit(t *testing.T) {
	t.Parallel()
	const times = 20
	h := stage.NewTeam(t, stage.Scripted("fine")+stage.Unlimited+strings.Replace(phoenix, `["scripted", "phoenix"]`, `["sh", "go.sh"]`, 1), "fine")
	h.Write("go.sh", fmt.Sprintf(`
n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) >n
[ $n -lt %d ] || exec sleep 1000
for i in 1 2 3 4 5; do
  printf '{"type":"request:submit-task","id":"%%s-%%s","timestamp":"%s","payload":{"type":"t","name":"%%s-%%s"}}\n' $n $i $n $i
done
`, times, stage.Noon))
	fine := h.StartAll("fine")[0]
	stage.WaitFor(t, "tasks of all runs", func() bool { return len(h.Events(events.TaskCreated, "phoenix")) == 5*times })
	fine.Settle()
	var list struct{ Tasks []stage.Task }
	h.Operated(&list, "query-tasks", `{"limit":1000}`)
	names := make(map[string]bool)
	for _, task := range list.Tasks {
		names[task.Name] = true
	}
	require.Len(t, names, 5*times)
	h.Stop()
}

// An agent that has closed its stdin gets no notices, and tasks go to other agents.
//
// Rows: B-08, T-04.
func TestStdioNoticesToAClosedStdin(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("boss")+`
agent "closed" {
  command = ["sh", "-c", "exec 0<&-; echo closed; exec sleep 1000"]
  capabilities {
    names = ["hold"]
  }
}
`+holder("auto"), "boss", "holder")
	all := h.StartAll("boss", "holder")
	boss, held := all[0], all[1]
	h.WaitForLines(1, "closed")
	for range 3 { // the first may go to the other agent
		task := boss.Submit(toHold)
		held.Assigned(task.ID)
		held.Granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
		require.Equal(t, "completed", boss.Task(task.ID).Status)
	}
	h.WaitForEvents(1, events.AgentStdinClosed, "closed")
	h.Stop()
}

// An agent without stdin may send requests but gets no tasks. The output of a raw agent is only
// logged.
//
// Rows: B-06, B-07, B-08.
func TestStdioAgentWithoutStdin(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("boss")+`
agent "null" {
  command = ["sh", "-c", "cat null; exec sleep 1000"]
  stdin   = "null"
}

agent "raw" {
  command  = ["sh", "-c", "cat raw; exec cat >raw-heard"]
  protocol = "raw"
}
`, "boss")
	h.Write("null", stage.Request("1", "submit-task", `{"type":"t","name":"of null"}`)+"\n")
	h.Write("raw", stage.Request("1", "submit-task", `{"type":"t","name":"of raw"}`)+"\n")
	boss := h.StartAll("boss")[0]
	h.WaitForEvents(1, events.TaskCreated, "null")
	require.Equal(t, []string{stage.Request("1", "submit-task", `{"type":"t","name":"of raw"}`)}, h.WaitForLines(1, "raw"))
	task := boss.Submit(`{"type":"t","name":"for anybody","requiredRole":"worker"}`)
	boss.Settle()
	require.Nil(t, boss.Task(task.ID).AssignedTo, "nobody could be told of it")
	require.Empty(t, h.Lines("null", control.StreamOut))
	h.Stop()
	require.Len(t, h.Events(events.TaskCreated, ""), 2)
	heard, err := os.ReadFile(h.Path("raw-heard"))
	require.NoError(t, err)
	require.Empty(t, heard)
}

// An agent that was stopped by SIGSTOP gets its task when it continues.
//
// Rows: B-08, T-04.
func TestStdioNoticesToAStoppedAgent(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("boss")+holder("auto"), "boss", "holder")
	all := h.StartAll("boss", "holder")
	boss, held := all[0], all[1]
	require.NoError(t, syscall.Kill(held.Pid, syscall.SIGSTOP))
	stage.WaitFor(t, "stop of all threads", func() bool { return standsStill(t, held.Pid) })
	task := boss.Submit(toHold)
	await(boss, task.ID, "running")
	require.Empty(t, held.Lines())
	require.NoError(t, syscall.Kill(held.Pid, syscall.SIGCONT))
	held.Assigned(task.ID)
	held.Granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	h.Stop()
}

// standsStill reports whether all threads of a process are stopped. They stop one after another, after the signal was
// sent.
func standsStill(t *testing.T, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	require.NoError(t, err)
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		require.NoError(t, err)
		_, after, found := strings.Cut(string(text), ") ") // behind the name of the program
		if !found || after[0] != 'T' {
			return false
		}
	}
	return len(threads) > 0
}

// An agent that is stopped by a signal while it has a task is reported as stalled.
func TestStdioFrozenAgent(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("boss")+strings.Replace(holder("auto"), "  on_exit", "  health {\n    write_timeout = \"300ms\"\n  }\n  on_exit", 1), "boss", "holder")
	all := h.StartAll("boss", "holder")
	boss, held := all[0], all[1]
	task := boss.Submit(toHold)
	held.Assigned(task.ID)
	await(boss, task.ID, "running")
	require.NoError(t, syscall.Kill(held.Pid, syscall.SIGSTOP))
	h.WaitForEvents(1, events.AgentStalled, "holder")
	require.Contains(t, h.Ask("why", "holder"), "stopped by a signal")
	require.NoError(t, syscall.Kill(held.Pid, syscall.SIGCONT))
	h.WaitForEvents(1, events.AgentRecovered, "holder")
	held.Granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	h.Stop()
}
