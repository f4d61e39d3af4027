package team

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// upgrading is a team that works while its orchestrator is upgraded.
const upgrading = stage.QuickStop + stage.Unlimited + `
agent "boss0" {
  command = ["scripted", "boss0"]
  limits {
    open_tasks = 0
  }
}

agent "boss1" {
  command = ["scripted", "boss1"]
  limits {
    open_tasks = 0
  }
}

agent "asker" {
  command = ["scripted", "asker"]
}

agent "auto" {
  command = ["scripted", "auto"]
  capabilities {
    names                = ["auto"]
    max_concurrent_tasks = 5
  }
}

agent "reader" {
  command = ["scripted", "reader"]
  actor   = "PO:reader"
}

agent "tty" {
  command = ["sh", "-c", "while read -r line; do echo $line; done"]
  pty     = true
}

agent "done" {
  command = ["true"]
  restart {
    policy = "never"
  }
}
`

// A relay is a team with counts of all its messages, over upgrades.
type relay struct {
	*stage.Team
	actors map[string]*stage.Agent
	over   atomic.Bool
	asked  [2]atomic.Int64 // requests of each boss
	mailed atomic.Int64
	posted atomic.Int64
}

// TestUpgradeUnderLoad upgrades the orchestrator while agents submit and complete tasks, send mail
// and ask, and while a program submits over HTTP. Each request has one answer, each message arrives
// once, and no agent is started again. ORC_TEST_ROUNDS=100 upgrades a hundred times.
func TestUpgradeUnderLoad(t *testing.T) {
	t.Parallel()
	r := &relay{Team: stage.NewTeam(t, upgrading, "boss0", "boss1", "asker", "auto", "reader"), actors: make(map[string]*stage.Agent)}
	r.Up("--json")
	for _, name := range []string{"boss0", "boss1", "asker", "auto", "reader"} {
		r.actors[name] = r.NextRun(name)
	}
	r.WaitForEvents(1, events.AgentEnded, "done")
	before := r.runs()
	r.actors["asker"].Say(stage.Question(0))
	id := r.WaitForQuestions(1)[0].ID
	group := r.work()
	for range stage.Rounds(t, 3) {
		answered := len(r.actors["boss0"].Lines())
		r.Ask("upgrade", "--quiet")
		stage.WaitFor(t, "talk after an upgrade", func() bool { return len(r.actors["boss0"].Lines()) > answered+20 })
	}
	r.over.Store(true)
	group.Wait()
	r.requireAnswers()
	r.Ask("inbox", "answer", id, "because")
	require.Contains(t, string(r.actors["asker"].Answer("why-0").Payload), "because")
	require.Equal(t, before, r.runs())
	stage.RequireNoGapsAfter(t, r.Orchestrator, 0)
	r.Stop()
}

// runs returns the state, the process and the number of starts of each agent.
func (r *relay) runs() map[string]string {
	r.T.Helper()
	runs := make(map[string]string)
	for _, view := range r.Status().Agents {
		runs[view.Name] = fmt.Sprint(view.State, view.PID, view.Starts, view.Restarts)
	}
	return runs
}

// work starts all activities that run until over.
func (r *relay) work() *sync.WaitGroup {
	group := new(sync.WaitGroup)
	for i, name := range []string{"boss0", "boss1"} {
		group.Go(func() { r.submit(i, r.actors[name]) })
	}
	go completeAll(r.actors["auto"]) // ends with the agent
	group.Go(r.post)
	return group
}

// submit makes a boss submit tasks and send mail, without waiting for answers.
func (r *relay) submit(i int, boss *stage.Agent) {
	for n := 0; !r.over.Load(); n++ {
		name := fmt.Sprintf("%s-%d", boss.Name, n)
		lines := stage.Request(name, "submit-task", fmt.Sprintf(`{"type":"t","name":%q,"requiredCapabilities":["auto"],"payload":%s}`, name, stage.Payload(name))) + "\n" +
			stage.Request("mail-"+name, "send-message", stage.MailLine("W:"+boss.Run, "PO:reader", stage.Direct, fmt.Sprintf(`{"name":%q}`, name))) + "\n"
		if _, err := io.WriteString(boss.Conn, lines); err != nil {
			return
		}
		r.asked[i].Add(2)
		r.mailed.Add(1)
		<-time.After(pace)
	}
}

// pace is the time between two requests, so that the record stays small over a hundred upgrades.
const pace = 10 * time.Millisecond

// completeAll completes every task that is assigned to an agent.
func completeAll(a *stage.Agent) {
	for seen := 0; ; {
		a.Mu.Lock()
		lines, changed, ended := a.Heard[seen:len(a.Heard):len(a.Heard)], a.Changed, a.Ended
		a.Mu.Unlock()
		for _, line := range lines {
			var m stage.Message
			var notice struct{ TaskID string }
			if json.Unmarshal([]byte(line), &m) == nil && m.Type == "notify:task-assigned" && json.Unmarshal(m.Payload, &notice) == nil {
				_, _ = io.WriteString(a.Conn, stage.Request("done-"+notice.TaskID, "complete-task", fmt.Sprintf(`{"taskId":%q,"result":{}}`, notice.TaskID))+"\n")
			}
		}
		if seen += len(lines); ended {
			return
		}
		<-changed
	}
}

// post sends mail over HTTP. A request is sent again with its key if its connection is cut off.
func (r *relay) post() {
	for n := 0; !r.over.Load(); n++ {
		name := fmt.Sprintf("http-%d", n)
		body := stage.MailLine("GO", "PO:reader", stage.Direct, fmt.Sprintf(`{"name":%q}`, name), fmt.Sprintf(`"idempotency_key":%q`, name))
		stage.WaitFor(r.T, "answer to "+name, func() bool {
			answer, err := r.Door().Post("http://orchestrator/api/v1/operations/send-message", "application/json", strings.NewReader(body))
			if err != nil {
				return false
			}
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			return err == nil && answer.StatusCode == http.StatusOK && bytes.Contains(text, []byte(name))
		})
		r.posted.Add(1)
		<-time.After(pace)
	}
}

// requireAnswers waits until everything is answered, and checks that it is answered once.
func (r *relay) requireAnswers() {
	r.T.Helper()
	for i, name := range []string{"boss0", "boss1"} {
		boss, want := r.actors[name], int(r.asked[i].Load())
		answers := func() map[string]int {
			found := make(map[string]int)
			for _, m := range boss.All() {
				var id string
				if json.Unmarshal(m.CorrelationID, &id) == nil && id != "" {
					require.Nil(r.T, m.Error, m.Line)
					found[id]++
				}
			}
			return found
		}
		stage.WaitFor(r.T, "all answers for "+name, func() bool { return len(answers()) >= want })
		for id, n := range answers() {
			require.Equal(r.T, 1, n, "%s is answered more than once", id)
		}
	}
	mailed := int(r.mailed.Load() + r.posted.Load())
	names := make(map[string]int)
	for _, l := range r.actors["reader"].Receives(mailed) {
		names[string(l.Payload)]++
	}
	require.Len(r.T, names, mailed, "messages were delivered twice")
	stage.WaitFor(r.T, "all tasks done", func() bool { // the list of done ones is long
		for _, status := range []string{"queued", "running"} {
			var list struct{ Tasks []stage.Task }
			if r.Operated(&list, "query-tasks", fmt.Sprintf(`{"limit":1,"status":%q}`, status)); len(list.Tasks) > 0 {
				return false
			}
		}
		return true
	})
	var list struct{ Tasks []stage.Task }
	r.Operated(&list, "query-tasks", `{"limit":1000000,"status":"completed"}`)
	require.Len(r.T, list.Tasks, int(r.asked[0].Load()+r.asked[1].Load())/2)
}

// TestUpgradeRefused shows the upgrades that are refused before anything is changed, and one that
// fails later.
func TestUpgradeRefused(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "a" {
  command = ["sh", "-c", "while read -r line; do echo $line; done"]
}

agent "operator" {
  command  = ["sh", "-c", "env -u ORC_SOCKET -u ORC_TOKEN -u ORC_URL orchestrator --host state/api.sock upgrade >refused 2>&1; echo $? >>refused; exec sleep 1000"]
  operator = true
}
`)
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "operator")
	stage.WaitFor(t, "refusal", func() bool {
		text, _ := os.ReadFile(s.Path("refused"))
		return bytes.Contains(text, []byte("only for the user")) && bytes.HasSuffix(text, []byte("\n4\n"))
	})
	before := pids(s)
	refused := func(why string, args ...string) {
		t.Helper()
		stdout, stderr, code := s.Call(append([]string{"upgrade"}, args...)...)
		require.Equal(t, cli.ExitConflict, code, stdout+stderr)
		require.Contains(t, stderr, why)
	}
	refused("it is not an orchestrator that this one can upgrade to", "/bin/true")
	refused("no such file or directory", "/no/such/program")
	refused("cannot be executed", s.Path("orchestrator.hcl"))
	liar := filepath.Join(t.TempDir(), "liar")
	require.NoError(t, os.WriteFile(liar, []byte("#!/bin/sh\necho '{\"format\":99,\"version\":\"9.9\"}'\n"), 0o755))
	refused("reads other handovers", liar)
	require.NoError(t, os.WriteFile(liar, []byte("#!/no/such/shell\n"), 0o755))
	refused("cannot continue", liar)
	vanishing := "#!/bin/sh\necho '{\"format\":1,\"version\":\"9.9\"}'\nrm \"$0\"\n"
	require.NoError(t, os.WriteFile(liar, []byte(vanishing), 0o755))
	refused("the upgrade has failed: no such file or directory", liar)
	s.WaitForEvents(1, events.OrchestratorRemained, "")
	require.Equal(t, before, pids(s))
	s.Ask("upgrade")
	require.Equal(t, before, pids(s))
	s.Ask("agent", "restart", "a")
	require.NotEqual(t, before, pids(s))
	s.Ask("upgrade")
	text, err := os.ReadFile(s.Path("orchestrator.hcl"))
	require.NoError(t, err)
	s.Write("orchestrator.hcl", strings.Replace(string(text), "echo $line", "echo", 1))
	refused("the configuration has changed")
	s.Stop()
}

// deaf reads its stdin only when a file exists. The lines that come before it are half written.
const deaf = stage.QuickStop + stage.Unlimited + `
agent "deaf" {
  command = ["sh", "-c", "until [ -e go ]; do sleep 0.05; done; exec cat >heard"]
  actor   = "PO:deaf"
}
`

// TestUpgradeOfTheDeaf upgrades twice while much waits for an agent that does not read. The agent
// gets each message once, in order and whole.
func TestUpgradeOfTheDeaf(t *testing.T) {
	t.Parallel()
	s := stage.New(t, deaf)
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "deaf")
	const letters = 20
	send := func(n int) {
		s.Operated(nil, "send-message", stage.MailLine("GO", "PO:deaf", stage.Direct, fmt.Sprintf(`{"n":%d,"filler":%q}`, n, strings.Repeat("x", 30_000))))
	}
	for n := range letters / 2 {
		send(n)
	}
	s.Ask("upgrade")
	for n := range letters / 2 {
		send(letters/2 + n)
	}
	s.Ask("upgrade")
	s.Write("go", "")
	var heard []int
	stage.WaitFor(t, "all messages", func() bool {
		text, _ := os.ReadFile(s.Path("heard"))
		heard = nil
		for line := range strings.Lines(string(text)) {
			var m stage.Message
			var l struct{ Payload struct{ N int } }
			if !strings.HasSuffix(line, "\n") {
				break
			}
			require.NoError(t, json.Unmarshal([]byte(line), &m), "half a line")
			if m.Type == "notify:message" && json.Unmarshal(m.Payload, &l) == nil && strings.Contains(line, "filler") {
				heard = append(heard, l.Payload.N)
			}
		}
		return len(heard) >= letters
	})
	for n := range letters {
		require.Equal(t, n, heard[n])
	}
	require.Len(t, heard, letters)
	s.Stop()
}

// TestUpgradeThenKilled kills the orchestrator after an upgrade. All agents die with it, started
// before the upgrade or after it, with all their descendants.
func TestUpgradeThenKilled(t *testing.T) {
	t.Parallel()
	const stubborn = `command = ["sh", "-c", "trap '' TERM HUP; (trap '' TERM HUP; setsid sleep 1000) & while :; do sleep 1; done"]`
	s := stage.New(t, stage.QuickStop+"agent \"before\" {\n  "+stubborn+"\n}\nagent \"after\" {\n  autostart = false\n  "+stubborn+"\n}\n")
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "before")
	s.Ask("upgrade")
	s.Ask("agent", "start", "after")
	s.Ask("upgrade")
	stage.WaitFor(t, "all processes", func() bool { return len(s.Processes()) >= 6 })
	s.Signal(syscall.SIGKILL)
	<-s.Ended
	stage.WaitFor(t, "end of all processes", func() bool { return len(s.Processes()) == 0 })
}

// TestUpgradeToWhatEnds upgrades to a program that passes the check and ends when it takes over.
// The command reports that at once, and no process of the agents is left.
func TestUpgradeToWhatEnds(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "family" {
  command = ["sh", "-c", "trap '' TERM HUP; (trap '' TERM HUP; exec setsid sleep 1000) & (trap '' TERM HUP; exec sleep 1001) & while :; do sleep 1; done"]
}
`)
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "family")
	stage.WaitFor(t, "all processes", func() bool { return len(s.Processes()) >= 3 })
	bad := filepath.Join(t.TempDir(), "bad")
	program := fmt.Sprintf("#!/bin/sh\nif [ $ORC_UPGRADE = check ]; then exec %s \"$@\"; fi\nexit 7\n", s.Program)
	require.NoError(t, os.WriteFile(bad, []byte(program), 0o755))
	_, stderr, code := s.Call("upgrade", bad)
	require.Equal(t, cli.ExitNo, code, stderr)
	require.Contains(t, stderr, "the new program has ended")
	require.Contains(t, stderr, "orchestrator up --state-dir")
	require.Equal(t, 7, s.Await())
	stage.WaitFor(t, "end of all processes", func() bool { return len(s.Processes()) == 0 })
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "family")
	s.Stop()
}

// TestUpgradeCountsRestarts checks that restarts before an upgrade count for restart.burst after it.
func TestUpgradeCountsRestarts(t *testing.T) {
	t.Parallel()
	s := stage.New(t, `
agent "crasher" {
  command = ["sh", "-c", "n=$(cat n 2>/dev/null || echo 0); n=$((n+1)); echo $n >n; until [ -e crash$n ]; do sleep 0.05; done; exit 1"]
  restart {
    delay     = "10ms"
    max_delay = "10ms"
    burst     = 3
    window    = "1h"
  }
}
`)
	s.Up("--json")
	for n := range 4 {
		s.WaitForEvents(n+1, events.AgentStarted, "crasher")
		if n == 2 {
			s.Ask("upgrade")
		}
		s.Write(fmt.Sprintf("crash%d", n+1), "")
	}
	s.WaitForEvents(1, events.AgentGaveUp, "crasher")
	s.Stop()
}

// TestUpgradeWhileAgentsEnd upgrades while agents crash, are restarted by hand and leave processes
// behind. An upgrade may be refused for that. No process is left at the end.
func TestUpgradeWhileAgentsEnd(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "crasher" {
  command  = ["sh", "-c", "sleep 0.05; (setsid sleep 1000) & exit 1"]
  replicas = 3
  restart {
    delay     = "50ms"
    max_delay = "50ms"
    burst     = 100000
  }
}

agent "steady" {
  command = ["sh", "-c", "while read -r line; do echo $line; done"]
}
`)
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "steady")
	before := s.Agent("steady").PID
	var over atomic.Bool
	var group sync.WaitGroup
	group.Go(func() {
		for !over.Load() {
			_, _, _ = s.Call("agent", "restart", "crasher-1")
		}
	})
	upgraded := 0
	stage.WaitFor(t, "three upgrades", func() bool {
		_, stderr, code := s.Call("upgrade")
		if code == cli.ExitOK {
			upgraded++
		} else {
			require.Equal(t, cli.ExitConflict, code, stderr)
		}
		return upgraded == 3
	})
	over.Store(true)
	group.Wait()
	require.Equal(t, before, s.Agent("steady").PID)
	s.Stop()
}

// TestUpgradeOfTheStalled upgrades while an agent is stalled, because it does not read its stdin.
// When it reads again, it is no longer stalled.
func TestUpgradeOfTheStalled(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+stage.Unlimited+`
agent "late" {
  command = ["sh", "-c", "until [ -e go ]; do sleep 0.05; done; exec cat >heard"]
  capabilities {
    names                = ["late"]
    max_concurrent_tasks = 1000
  }
  health {
    write_timeout = "100ms"
  }
}
`)
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "late")
	const tasks = 500 // their notices are more than a pipe holds
	for n := range tasks {
		s.Operated(nil, "submit-task", fmt.Sprintf(`{"type":"t","name":"t%d","requiredCapabilities":["late"]}`, n))
	}
	s.WaitForEvents(1, events.AgentStalled, "late")
	s.Ask("upgrade")
	s.Write("go", "")
	stage.WaitFor(t, "end of the stall", func() bool {
		text, _ := os.ReadFile(s.Path("heard"))
		return bytes.Count(text, []byte("notify:task-assigned")) == tasks && s.Agent("late").State == control.StateRunning
	})
	s.Stop()
}
