package stdio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// Of three hundred requests in one write, about a hundred are served and the rest refused. Each has
// one answer and one audit line. Log lines are not counted, and other agents are not affected.
//
// Rows: B-21, B-74, B-79, B-81, T-24.
func TestStdioFlood(t *testing.T) {
	t.Parallel()
	const many = 300
	h := stage.NewTeam(t, stage.Scripted("a", "b"), "a", "b")
	all := h.StartAll("a", "b")
	a, b := all[0], all[1]
	a.Say(strings.Repeat("a plain line\n", 1000))
	h.WaitForLines(1000, "a")
	var flood strings.Builder
	for n := range many {
		fmt.Fprintln(&flood, stage.Request(fmt.Sprint("flood-", n), "query-agents", `{}`))
	}
	a.Say(flood.String())
	for range 10 {
		b.Settle()
	}
	stage.WaitFor(t, "answers", func() bool { return len(a.Lines()) >= many })
	served := 0
	for n := range many {
		answers := a.Answers(fmt.Sprint("flood-", n))
		require.Len(t, answers, 1)
		if answers[0].Error == nil {
			served++
			continue
		}
		require.Equal(t, "INVALID_REQUEST", answers[0].Error.Code)
		require.Equal(t, "rate_limited", answers[0].Error.Details["reason"])
	}
	require.GreaterOrEqual(t, served, 100)
	require.Less(t, served, many)
	for _, m := range b.All() {
		require.Nil(t, m.Error)
	}
	require.NotEmpty(t, h.WaitForEvents(1, events.AgentRefused, "a"), "people hear of it")
	stage.WaitFor(t, "end of the limit", func() bool {
		return a.Answer(a.Request("query-agents", `{}`)).Error == nil
	})
	h.Stop()
	limited, granted := 0, 0
	for _, line := range h.Audited() {
		if !strings.HasPrefix(fmt.Sprint(line["id"]), "flood-") {
			continue
		}
		switch line["outcome"] {
		case "limited":
			limited++
		case "granted":
			granted++
		}
	}
	require.Equal(t, served, granted)
	require.Equal(t, many-served, limited)
}

// Events over the rate limit are dropped, and people see their number.
//
// Rows: B-63, B-79, B-81, T-24.
func TestStdioFloodOfEvents(t *testing.T) {
	t.Parallel()
	const many = 300
	h := stage.NewTeam(t, stage.Scripted("a"), "a")
	a := h.StartAll("a")[0]
	var flood strings.Builder
	for n := range many {
		fmt.Fprintln(&flood, stage.Event(fmt.Sprint("flood-", n), "question", fmt.Sprintf(`{"question":"%d?"}`, n)))
	}
	a.Say(flood.String())
	stage.WaitFor(t, "end of the limit", func() bool {
		return a.Answer(a.Request("query-agents", `{}`)).Error == nil
	})
	require.Len(t, a.Lines(), len(a.All()))
	asked := len(h.Questions())
	require.GreaterOrEqual(t, asked, 100)
	require.Less(t, asked, many)
	h.Stop()
	var dropped int64
	for _, e := range h.Events(events.AgentRefused, "a") {
		dropped += e.Figures.Count
	}
	audited := 0
	for _, line := range h.Audited() {
		if strings.HasPrefix(fmt.Sprint(line["id"]), "flood-") {
			require.Equal(t, "limited", line["outcome"])
			audited++
		}
	}
	require.Equal(t, many-asked, audited)
	require.GreaterOrEqual(t, dropped, int64(many-asked))
	for _, m := range a.All() {
		require.NotContains(t, m.Line, "flood-")
	}
}

// The configuration sets the limit.
//
// Rows: B-79.
func TestStdioConfiguredLimit(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a")+"protocol {\n  rate  = 1\n  burst = 3\n}\n", "a")
	a := h.StartAll("a")[0]
	lines := ""
	for n := range 20 {
		lines += stage.Request(fmt.Sprint(n), "query-agents", `{}`) + "\n"
	}
	a.Say(lines)
	for n := range 20 {
		m := a.Answer(fmt.Sprint(n))
		if n < 3 {
			require.Nil(t, m.Error)
		}
	}
	require.Equal(t, "rate_limited", a.Answer("19").Error.Details["reason"])
	h.Stop()
}

// An agent that sends requests without reading the answers blocks itself. When it reads, it gets
// all answers.
//
// Rows: B-21, T-04.
func TestStdioAskingWithoutReading(t *testing.T) {
	t.Parallel()
	const many = 5000
	h := stage.NewTeam(t, stage.Scripted("b")+stage.Unlimited+`
agent "a" {
  command = ["sh", "a.sh"]
  limits {
    mailbox = 100
  }
}
`, "b")
	h.Write("a.sh", fmt.Sprintf(`
i=0
while [ $i -lt %d ]; do
  i=$((i+1)); echo '{"type":"request:query-agents","id":"'$i'","timestamp":"%s"}'
done &
until [ -e go ]; do sleep 0.02; done
exec cat >heard
`, many, stage.Noon))
	b := h.StartAll("b")[0]
	stage.WaitFor(t, "agent that stands still", func() bool {
		view := h.Agent("a")
		return view.Mailbox.Messages >= 50
	})
	b.Settle()
	h.Write("go", "")
	stage.WaitFor(t, "all answers, or word of one that was not given", func() bool {
		return len(h.TextLines("heard")) == many || h.Agent("a").Mailbox.Refused > 0
	})
	require.Zero(t, h.Agent("a").Mailbox.Refused)
	seen := make(map[string]bool)
	for _, line := range h.TextLines("heard") {
		seen[string(stage.Received(t, line).CorrelationID)] = true
	}
	require.Len(t, seen, many)
	h.Stop()
}

// submissions sends requests until the connection ends.
func submissions(a *stage.Agent, prefix string, many int) {
	for n := range many {
		name := fmt.Sprint(prefix, n)
		line := stage.Request(name, "submit-task", fmt.Sprintf(`{"type":"t","name":%q,"description":%q}`, name, strings.Repeat("x", 500)))
		if _, err := io.WriteString(a.Conn, line+"\n"); err != nil {
			return
		}
	}
}

// The disk becomes full while agents submit tasks. Requests are refused or get no answer, the
// error is reported, and everything stops in order with a failure. Later, every granted task
// exists and no refused one does.
//
// Rows: B-21, B-51, B-74, B-75, B-81.
func TestStdioFullDisk(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a", "b")+stage.Unlimited+holder("auto")+`
agent "listener" {
  command = ["sh", "-c", "while IFS= read -r line; do echo \"$line\"; done; echo bye"]
}
`, "a", "b", "holder")
	all := h.StartAll("a", "b", "holder")
	for _, a := range all[:2] {
		a.Granted(nil, "submit-task", toHold)
	}
	info, err := os.Stat(filepath.Join(h.State(), "events.db-wal"))
	require.NoError(t, err)
	h.RoomFor(uint64(info.Size()) + 200<<10)
	early := make(map[string]string) // these fit, whatever the size of a batch is
	for _, a := range all[:2] {
		task := a.Submit(fmt.Sprintf(`{"type":"t","name":"%s before all others"}`, a.Name))
		early[task.ID] = task.Name
	}
	for _, a := range all[:2] {
		go submissions(a, a.Name+"-", 5000)
	}
	require.Equal(t, cli.ExitNo, h.Await())
	require.Empty(t, h.Processes(), "left running")
	require.Contains(t, h.Stderr.All(), "the record cannot be written")
	require.Contains(t, h.Stdout.All(), `"error":{"code":"failed","message":"the record cannot be written`)
	require.Contains(t, h.Lines("listener", control.StreamOut), "bye", "stopped in order")
	granted, refused := told(t, all[:2])
	maps.Copy(granted, early)
	require.NotEmpty(t, refused)
	for _, e := range h.Events(events.TaskCreated, "") {
		if e.Seq > 0 {
			continue
		}
		_, wrong := granted[e.Task]
		require.False(t, wrong, "granted and not recorded")
	}

	h.Up("--json")
	again := h.NextRun("a")
	stage.RequireNoGaps(t, h.Orchestrator)
	var list struct{ Tasks []stage.Task }
	h.Operated(&list, "query-tasks", `{"limit":1000000}`)
	there := make(map[string]string)
	for _, task := range list.Tasks {
		there[task.ID] = task.Name
	}
	for id, name := range granted {
		require.Equal(t, name, there[id], "%s was granted and is gone", name)
		require.False(t, refused[name])
	}
	for _, task := range list.Tasks {
		require.False(t, refused[task.Name], "%s was refused and is there", task.Name)
	}
	again.Submit(`{"type":"t","name":"and on it goes"}`)
	h.Stop()
}

// told returns the granted tasks by id and the names of the refused ones.
func told(t *testing.T, all []*stage.Agent) (granted map[string]string, refused map[string]bool) {
	t.Helper()
	granted, refused = make(map[string]string), make(map[string]bool)
	for _, a := range all {
		stage.WaitFor(t, "end of "+a.Name, func() bool {
			a.Mu.Lock()
			defer a.Mu.Unlock()
			return a.Ended
		})
		for _, m := range a.All() {
			var id string
			var reply struct{ Task stage.Task }
			_ = json.Unmarshal(m.CorrelationID, &id)
			_ = json.Unmarshal(m.Payload, &reply)
			switch {
			case m.Error != nil:
				require.Equal(t, "INTERNAL_ERROR", m.Error.Code)
				refused[id] = true
			case reply.Task.ID != "" && strings.HasPrefix(id, a.Name+"-"):
				granted[reply.Task.ID] = id
			}
		}
	}
	return granted, refused
}

// The same with an ordinary disk that is full from the start: no agent is started.
func TestStdioFullDiskFromTheStart(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "a" {
  command = ["sh", "-c", ">a-ran; exec cat"]
}
`)
	s.Start(exec.Command("sh", "-c", `ulimit -f 8; exec "$0" "$@"`, s.Program, "up", "--state-dir", s.State(), "--timeout", "3m"))
	require.Equal(t, cli.ExitNo, s.Await())
	require.Contains(t, s.Stderr.All(), "Error: cannot use the record")
	require.NoFileExists(t, s.Path("a-ran"))
	require.Empty(t, s.Processes())
}

// A record that was changed from outside is refused: no agent is started, and the error names the
// place.
func TestStdioDamagedRecord(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a")+stage.Unlimited+`
agent "b" {
  command = ["sh", "-c", "echo >>b-ran; exec cat"]
}
`, "a")
	a := h.StartAll("a")[0]
	for n := range 400 {
		a.Submit(fmt.Sprintf(`{"type":"t","name":"task number %03d of many"}`, n))
	}
	h.Signal(syscall.SIGKILL) // a kept state, as after a stop, would include the damage
	h.Await()
	path := filepath.Join(h.State(), "events.db")
	whole := stage.Checkpoint(t, path)
	ran, err := os.ReadFile(h.Path("b-ran"))
	require.NoError(t, err)
	place := bytes.Index(whole, []byte("task number 200 of many")) + 12
	flipped, headless := bytes.Clone(whole), bytes.Clone(whole)
	flipped[place] ^= 0x01
	copy(headless, "no database at all")
	for name, broken := range map[string][]byte{"flipped": flipped, "headless": headless, "cut": whole[:len(whole)/2]} {
		require.NoError(t, os.WriteFile(path, broken, 0o600))
		h.Start(exec.Command(h.Program, "up", "--state-dir", h.State(), "--timeout", "3m"))
		require.Equal(t, cli.ExitNo, h.Await(), name)
		if name == "headless" {
			require.Contains(t, h.Stderr.All(), "Error: "+path+" is not a record of an orchestrator", name)
		} else {
			require.Contains(t, h.Stderr.All(), "Error: cannot use the record "+path, name)
		}
		require.Contains(t, h.Stderr.All(), "Nothing was started", name)
		if name == "flipped" {
			require.Contains(t, h.Stderr.All(), "orchestrator store salvage")
			said, _, code := h.Call("store", "check")
			require.Equal(t, cli.ExitNo, code)
			require.Regexp(t, `^\d+ facts in .*events\.db are in order\. Then: the chain is broken at fact \d+: `, said)
			rescued := h.Path("rescued.db")
			require.Regexp(t, `^\d+ facts copied to `, h.Ask("store", "salvage", rescued))
			said, _, code = h.Call("store", "check", rescued)
			require.Equal(t, cli.ExitOK, code)
			require.Regexp(t, `^\d+ facts in .*rescued\.db, all in order\n$`, said)
			_, cried, code := h.Call("store", "salvage", rescued)
			require.Equal(t, cli.ExitConflict, code)
			require.Contains(t, cried, "already exists and was not changed")
		}
		require.Empty(t, h.Processes(), name)
		now, err := os.ReadFile(h.Path("b-ran"))
		require.NoError(t, err)
		require.Equal(t, ran, now, "an agent was started behind a damaged record")
		stage.Checkpoint(t, path)
	}
	require.NoError(t, os.WriteFile(path, whole, 0o600))
	h.Up("--json")
	h.NextRun("a").Settle()
	h.Stop()
}
