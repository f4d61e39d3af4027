package main

import (
	"encoding/json"
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
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// crowded removes the rate limit of puppets.
const crowded = `
protocol {
  rate  = 1000000
  burst = 1000000
}
`

// A thousand notices and a thousand answers reach one agent at the same time, from many
// goroutines. Every line is complete and arrives once.
//
// Rows: B-02, B-21, B-73, T-58.
func TestWordsNeverInterleave(t *testing.T) {
	t.Parallel()
	const each, bosses = 250, 4
	hcl, names := puppets()+crowded+`
agent "holder" {
  command = ["puppet", "holder"]
  capabilities {
    names                = ["hold"]
    max_concurrent_tasks = 1000
  }
}
`, []string{"holder"}
	for i := range bosses {
		name := fmt.Sprint("boss", i)
		hcl, names = hcl+fmt.Sprintf("agent %q {\n  command = [\"puppet\", %q]\n}\n", name, name), append(names, name)
	}
	h := troupe(t, hcl, names...)
	all := h.cast(names...)
	held := all[0]
	var group sync.WaitGroup
	for i, a := range all {
		group.Go(func() {
			for n := range each {
				line := asking(fmt.Sprint("submit-", n), "submit-task", toHold) + "\n"
				if i == 0 {
					line = ""
					for part := range bosses {
						line += asking(fmt.Sprint("query-", n*bosses+part), "query-tasks", `{"limit":5}`) + "\n"
					}
				}
				a.say(line)
			}
		})
	}
	group.Wait()
	waitForThat(t, "end of the talk", func() bool { return len(held.heardSoFar()) == 2*each*bosses })
	answered, noticed := make(map[string]int), make(map[string]int)
	for _, m := range held.all() {
		if m.Type == "notify:task-assigned" {
			noticed[string(m.Payload)]++
		} else {
			answered[string(m.CorrelationID)]++
		}
	}
	require.Len(t, noticed, each*bosses)
	require.Len(t, answered, each*bosses)
	for _, boss := range all[1:] {
		waitForThat(t, "answers", func() bool { return len(boss.heardSoFar()) == each })
		ids := make(map[string]bool)
		for _, m := range boss.all() {
			ids[string(m.CorrelationID)] = true
		}
		require.Len(t, ids, each)
	}
	h.stop()
}

// heardSoFar returns the unparsed lines so far.
func (a *actor) heardSoFar() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.heard[:len(a.heard):len(a.heard)]
}

// An agent that never reads affects only itself: it gets as many notices as fit, and others
// continue.
//
// Rows: B-08, T-04.
func TestWordsToTheDeaf(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss", "fine")+crowded+`
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
	all := h.cast("boss", "fine")
	boss, fine := all[0], all[1]
	for round := range 10 {
		var lines strings.Builder
		for n := range 100 {
			fmt.Fprintln(&lines, asking(fmt.Sprint("id-", round, "-", n), "submit-task", `{"type":"t","name":"`+strings.Repeat("x", 100)+`","requiredCapabilities":["deaf"]}`))
		}
		boss.say(lines.String())
		fine.quiet()
	}
	h.waitForEvents(1, events.AgentStalled, "deaf")
	fine.quiet()
	boss.quiet()
	_, some := fine.agents(`{"status":"stale"}`)
	require.Equal(t, "deaf", some[0].ID)
	h.stop()
}

// Three agents get the shutdown notice with the same grace. One exits, one ignores it, and one
// leaves a process that holds its stdout open. The first gets no signal, the second is killed,
// and the process left behind is ended at once.
//
// Rows: B-69, B-72, T-49.
func TestWordsShutdown(t *testing.T) {
	t.Parallel()
	h := troupe(t, `
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
	h.up("--json")
	h.waitForEvents(3, events.AgentStarted, "")
	left := h.waitForPIDs(1, "left")
	h.signal(syscall.SIGTERM)
	for _, name := range []string{"goes", "stays", "leaves"} {
		lines := h.waitForLines(1, name)
		require.Len(t, lines, 1, "%s: more than the notice", name)
		m := heardAs(t, lines[0])
		require.Equal(t, []string{"id", "payload", "timestamp", "type"}, m.keys)
		require.Equal(t, "notify:shutdown", m.Type)
		require.JSONEq(t, `{"gracePeriod":30000,"reason":"Orchestrator stopping"}`, string(m.Payload))
		_, err := time.Parse(time.RFC3339, m.Timestamp)
		require.NoError(t, err)
	}
	h.waitForEvents(1, events.AgentStopped, "goes")
	h.waitForEvents(1, events.AgentStopped, "leaves")
	began := time.Now() // the signal was received before this
	requireGone(t, left...)
	require.Equal(t, []string{"stays"}, names(h.status()))
	waitForThat(t, "the end of the echo", func() bool { return time.Since(began) > cli.SignalEcho })
	h.signal(syscall.SIGTERM) // ends the wait for the grace of 30 s
	require.Equal(t, cli.ExitTerminated, h.await())
	require.Empty(t, h.processes())
	require.Contains(t, h.events(events.AgentStopped, "stays")[0].Text, "had to be killed")
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
func TestWordsSharedGrace(t *testing.T) {
	t.Parallel()
	hcl := "orchestrator {\n  shutdown = \"1s\"\n}\n"
	for i := range 40 { // with a second for each, the test would time out
		after := ""
		if i > 0 {
			after = fmt.Sprintf("  depends_on = [\"s%d\"]\n", i-1)
		}
		hcl += fmt.Sprintf("agent \"s%d\" {\n  command = [\"sh\", \"-c\", \"trap '' TERM; while :; do sleep 0.05; done\"]\n%s}\n", i, after)
	}
	h := troupe(t, hcl)
	h.up("--json")
	h.waitForEvents(40, events.AgentStarted, "")
	h.stop()
	require.Contains(t, h.events(events.OrchestratorStopped, "")[0].Text, "40 had to be killed")
}

// Messages during the grace period are processed, and completions in it count.
//
// Rows: B-57, B-72.
func TestWordsDuringTheGrace(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss")+`
agent "holder" {
  command = ["puppet", "holder", "stays"]
  capabilities {
    names = ["hold"]
  }
  stop {
    close_stdin = "30s"
  }
}
`, "boss", "holder")
	all := h.cast("boss", "holder")
	boss, held := all[0], all[1]
	task := boss.submit(toHold)
	held.assigned(task.ID)
	boss.await(task.ID, "running")
	h.signal(syscall.SIGTERM)
	held.wait("notice of the end", func(m *message) bool { return m.Type == "notify:shutdown" })
	held.say(asking("last", "complete-task", fmt.Sprintf(`{"taskId":%q,"result":"in time"}`, task.ID)) + "\n")
	held.exit(0)
	require.Equal(t, cli.ExitOK, h.await())
	require.Len(t, h.events(events.TaskDone, ""), 1)
	require.Contains(t, string(h.events(events.TaskDone, "")[0].Payload), "in time")
}

// An agent made with the SDK works with the real program.
//
// Rows: B-11, B-57.
func TestWordsOfTheLibrary(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss")+`
agent "labourer" {
  command = ["labourer"]
  capabilities {
    names = ["labour"]
  }
}
`, "boss")
	boss := h.cast("boss")[0]
	for n := range 20 {
		payload := fmt.Sprintf(`{"n":1234567890123456789%d,"html":"<a&b>"}`, n)
		task := boss.submit(`{"type":"t","name":"n","requiredCapabilities":["labour"],"payload":` + payload + `}`)
		require.Equal(t, payload, string(boss.await(task.ID, "completed").Result))
	}
	h.stop()
	require.Contains(t, h.events(events.AgentStopped, "labourer")[0].Text, "exit 0")
}

// The record is a table that other programs can read. Its events are plain text, in the order in
// which they happened.
func TestWordsEventsHaveNoHoles(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss")+holder("auto"), "boss", "holder")
	all := h.cast("boss", "holder")
	task := all[0].submit(toHold)
	all[1].assigned(task.ID)
	all[1].granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	last := requireNoHoles(t, h.stage)
	require.Positive(t, last)
	h.stop()
	info, err := os.Stat(filepath.Join(h.state(), "events.db"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	h.up("--json")
	h.enter("boss")
	require.Greater(t, requireNoHoles(t, h.stage), last)
	h.stop()
}

// requireNoHoles requires that the event numbers from the API have no gaps, and returns the last
// one.
func requireNoHoles(t *testing.T, s *stage) int64 {
	t.Helper()
	return requireNoHolesAfter(t, s, 0)
}

func requireNoHolesAfter(t *testing.T, s *stage, last int64) int64 {
	t.Helper()
	for line := range strings.Lines(s.ask("events", "--since", fmt.Sprint(last), "--json")) {
		var e wire.Event
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		require.Equal(t, last+1, e.Seq, "%s", line)
		last = e.Seq
	}
	return last
}

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
	waitForThat(t, "stop of all threads", func() bool { return standsStill(t, held.pid) })
	task := boss.submit(toHold)
	boss.await(task.ID, "running")
	require.Empty(t, held.heardSoFar())
	require.NoError(t, syscall.Kill(held.pid, syscall.SIGCONT))
	held.assigned(task.ID)
	held.granted(nil, "complete-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	h.stop()
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
