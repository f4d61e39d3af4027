package main

import (
	"bytes"
	"database/sql"
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
	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// Of three hundred requests in one write, about a hundred are served and the others refused.
// Each has one answer and one audit line. Log lines are not counted, and other agents are not
// affected.
//
// Rows: B-21, B-74, B-79, B-81, T-24.
func TestWordsFlood(t *testing.T) {
	t.Parallel()
	const many = 300
	h := troupe(t, puppets("a", "b"), "a", "b")
	all := h.cast("a", "b")
	a, b := all[0], all[1]
	a.say(strings.Repeat("a plain line\n", 1000))
	h.waitForLines(1000, "a")
	var flood strings.Builder
	for n := range many {
		fmt.Fprintln(&flood, asking(fmt.Sprint("flood-", n), "query-agents", `{}`))
	}
	a.say(flood.String())
	for range 10 {
		b.quiet()
	}
	waitForThat(t, "answers", func() bool { return len(a.heardSoFar()) >= many })
	served := 0
	for n := range many {
		answers := a.answers(fmt.Sprint("flood-", n))
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
	for _, m := range b.all() {
		require.Nil(t, m.Error)
	}
	require.NotEmpty(t, h.waitForEvents(1, events.AgentRefused, "a"), "people hear of it")
	waitForThat(t, "end of the limit", func() bool {
		return a.answer(a.request("query-agents", `{}`)).Error == nil
	})
	h.stop()
	limited, granted := 0, 0
	for _, line := range h.audited() {
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
func TestWordsFloodOfEvents(t *testing.T) {
	t.Parallel()
	const many = 300
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	var flood strings.Builder
	for n := range many {
		fmt.Fprintln(&flood, telling(fmt.Sprint("flood-", n), "question", fmt.Sprintf(`{"question":"%d?"}`, n)))
	}
	a.say(flood.String())
	waitForThat(t, "end of the limit", func() bool {
		return a.answer(a.request("query-agents", `{}`)).Error == nil
	})
	require.Len(t, a.heardSoFar(), len(a.all()))
	asked := len(h.questions())
	require.GreaterOrEqual(t, asked, 100)
	require.Less(t, asked, many)
	h.stop()
	var dropped int64
	for _, e := range h.events(events.AgentRefused, "a") {
		dropped += e.Figures.Count
	}
	audited := 0
	for _, line := range h.audited() {
		if strings.HasPrefix(fmt.Sprint(line["id"]), "flood-") {
			require.Equal(t, "limited", line["outcome"])
			audited++
		}
	}
	require.Equal(t, many-asked, audited)
	require.GreaterOrEqual(t, dropped, int64(many-asked))
	for _, m := range a.all() {
		require.NotContains(t, m.line, "flood-")
	}
}

// The configuration sets the limit.
//
// Rows: B-79.
func TestWordsOwnLimit(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a")+"protocol {\n  rate  = 1\n  burst = 3\n}\n", "a")
	a := h.cast("a")[0]
	lines := ""
	for n := range 20 {
		lines += asking(fmt.Sprint(n), "query-agents", `{}`) + "\n"
	}
	a.say(lines)
	for n := range 20 {
		m := a.answer(fmt.Sprint(n))
		if n < 3 {
			require.Nil(t, m.Error)
		}
	}
	require.Equal(t, "rate_limited", a.answer("19").Error.Details["reason"])
	h.stop()
}

// An agent that sends requests without reading the answers blocks itself. When it reads, it gets
// all answers.
//
// Rows: B-21, T-04.
func TestWordsAskingWithoutReading(t *testing.T) {
	t.Parallel()
	const many = 5000
	h := troupe(t, puppets("b")+crowded+`
agent "a" {
  command = ["sh", "a.sh"]
  limits {
    mailbox = 100
  }
}
`, "b")
	h.write("a.sh", fmt.Sprintf(`
i=0
while [ $i -lt %d ]; do
  i=$((i+1)); echo '{"type":"request:query-agents","id":"'$i'","timestamp":"%s"}'
done &
until [ -e go ]; do sleep 0.02; done
exec cat >heard
`, many, noon))
	b := h.cast("b")[0]
	waitForThat(t, "agent that stands still", func() bool {
		view := h.agent("a")
		return view.Mailbox.Messages >= 50
	})
	b.quiet()
	h.write("go", "")
	waitForThat(t, "all answers, or word of one that was not given", func() bool {
		return len(h.textLines("heard")) == many || h.agent("a").Mailbox.Refused > 0
	})
	require.Zero(t, h.agent("a").Mailbox.Refused)
	seen := make(map[string]bool)
	for _, line := range h.textLines("heard") {
		seen[string(heardAs(t, line).CorrelationID)] = true
	}
	require.Len(t, seen, many)
	h.stop()
}

// textLines returns the complete lines of a file.
func (s *stage) textLines(name string) (lines []string) {
	text, _ := os.ReadFile(s.path(name))
	for line := range strings.Lines(string(text)) {
		if whole, ended := strings.CutSuffix(line, "\n"); ended {
			lines = append(lines, whole)
		}
	}
	return lines
}

// roomFor limits the size of the files of the orchestrator, in bytes.
func (s *stage) roomFor(size uint64) {
	s.t.Helper()
	var room unix.Rlimit
	require.NoError(s.t, unix.Prlimit(s.process.Process.Pid, unix.RLIMIT_FSIZE, nil, &room))
	room.Cur = min(size, room.Max)
	require.NoError(s.t, unix.Prlimit(s.process.Process.Pid, unix.RLIMIT_FSIZE, &room, nil))
}

// submissions sends requests until the connection ends.
func submissions(a *actor, prefix string, many int) {
	for n := range many {
		name := fmt.Sprint(prefix, n)
		line := asking(name, "submit-task", fmt.Sprintf(`{"type":"t","name":%q,"description":%q}`, name, strings.Repeat("x", 500)))
		if _, err := io.WriteString(a.conn, line+"\n"); err != nil {
			return
		}
	}
}

// The disk becomes full while agents submit tasks. Requests are refused or get no answer, the
// error is reported, and everything stops in order with a failure. Later, every granted task
// exists and no refused one does.
//
// Rows: B-21, B-51, B-74, B-75, B-81.
func TestWordsFullDisk(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a", "b")+crowded+holder("auto")+`
agent "listener" {
  command = ["sh", "-c", "while IFS= read -r line; do echo \"$line\"; done; echo bye"]
}
`, "a", "b", "holder")
	all := h.cast("a", "b", "holder")
	for _, a := range all[:2] {
		a.granted(nil, "submit-task", toHold)
	}
	info, err := os.Stat(filepath.Join(h.state(), "events.db-wal"))
	require.NoError(t, err)
	h.roomFor(uint64(info.Size()) + 200<<10)
	early := make(map[string]string) // these fit, whatever the size of a batch is
	for _, a := range all[:2] {
		task := a.submit(fmt.Sprintf(`{"type":"t","name":"%s before all others"}`, a.name))
		early[task.ID] = task.Name
	}
	for _, a := range all[:2] {
		go submissions(a, a.name+"-", 5000)
	}
	require.Equal(t, cli.ExitNo, h.await())
	require.Empty(t, h.processes(), "left running")
	require.Contains(t, h.cried.all(), "the record cannot be written")
	require.Contains(t, h.said.all(), `"error":{"code":"failed","message":"the record cannot be written`)
	require.Contains(t, h.lines("listener", control.StreamOut), "bye", "stopped in order")
	granted, refused := told(t, all[:2])
	maps.Copy(granted, early)
	require.NotEmpty(t, refused)
	for _, e := range h.events(events.TaskCreated, "") {
		if e.Seq > 0 {
			continue
		}
		_, wrong := granted[e.Task]
		require.False(t, wrong, "granted and not recorded")
	}

	h.up("--json")
	again := h.enter("a")
	requireNoHoles(t, h.stage)
	var list struct{ Tasks []aTask }
	h.operated(&list, "query-tasks", `{"limit":1000000}`)
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
	again.submit(`{"type":"t","name":"and on it goes"}`)
	h.stop()
}

// told returns the granted tasks by id and the names of the refused ones.
func told(t *testing.T, all []*actor) (granted map[string]string, refused map[string]bool) {
	t.Helper()
	granted, refused = make(map[string]string), make(map[string]bool)
	for _, a := range all {
		waitForThat(t, "end of "+a.name, func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.ended
		})
		for _, m := range a.all() {
			var id string
			var reply struct{ Task aTask }
			_ = json.Unmarshal(m.CorrelationID, &id)
			_ = json.Unmarshal(m.Payload, &reply)
			switch {
			case m.Error != nil:
				require.Equal(t, "INTERNAL_ERROR", m.Error.Code)
				refused[id] = true
			case reply.Task.ID != "" && strings.HasPrefix(id, a.name+"-"):
				granted[reply.Task.ID] = id
			}
		}
	}
	return granted, refused
}

// The same with an ordinary disk that is full from the start: nothing is started.
func TestWordsFullDiskFromTheStart(t *testing.T) {
	t.Parallel()
	s := newStage(t, quick+`
agent "a" {
  command = ["sh", "-c", ">a-ran; exec cat"]
}
`)
	s.start(exec.Command("sh", "-c", `ulimit -f 8; exec "$0" "$@"`, s.program, "up", "--state-dir", s.state(), "--timeout", "3m"))
	require.Equal(t, cli.ExitNo, s.await())
	require.Contains(t, s.cried.all(), "Error: cannot use the record")
	require.NoFileExists(t, s.path("a-ran"))
	require.Empty(t, s.processes())
}

// A record that was changed from outside is refused: nothing is started, and the error names the
// place.
func TestWordsDamagedRecord(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a")+crowded+`
agent "b" {
  command = ["sh", "-c", "echo >>b-ran; exec cat"]
}
`, "a")
	a := h.cast("a")[0]
	for n := range 400 {
		a.submit(fmt.Sprintf(`{"type":"t","name":"task number %03d of many"}`, n))
	}
	h.signal(syscall.SIGKILL) // a kept state, as after a stop, would include the damage
	h.await()
	path := filepath.Join(h.state(), "events.db")
	whole := intoOneFile(t, path)
	ran, err := os.ReadFile(h.path("b-ran"))
	require.NoError(t, err)
	place := bytes.Index(whole, []byte("task number 200 of many")) + 12
	flipped, headless := bytes.Clone(whole), bytes.Clone(whole)
	flipped[place] ^= 0x01
	copy(headless, "no database at all")
	for name, broken := range map[string][]byte{"flipped": flipped, "headless": headless, "cut": whole[:len(whole)/2]} {
		require.NoError(t, os.WriteFile(path, broken, 0o600))
		h.start(exec.Command(h.program, "up", "--state-dir", h.state(), "--timeout", "3m"))
		require.Equal(t, cli.ExitNo, h.await(), name)
		if name == "headless" {
			require.Contains(t, h.cried.all(), "Error: "+path+" is not a record of an orchestrator", name)
		} else {
			require.Contains(t, h.cried.all(), "Error: cannot use the record "+path, name)
		}
		require.Contains(t, h.cried.all(), "Nothing was started", name)
		if name == "flipped" {
			require.Contains(t, h.cried.all(), "orchestrator store salvage")
			said, _, code := h.call("store", "check")
			require.Equal(t, cli.ExitNo, code)
			require.Regexp(t, `^\d+ facts in .*events\.db are in order\. Then: the chain is broken at fact \d+: `, said)
			rescued := h.path("rescued.db")
			require.Regexp(t, `^\d+ facts copied to `, h.ask("store", "salvage", rescued))
			said, _, code = h.call("store", "check", rescued)
			require.Equal(t, cli.ExitOK, code)
			require.Regexp(t, `^\d+ facts in .*rescued\.db, all in order\n$`, said)
			_, cried, code := h.call("store", "salvage", rescued)
			require.Equal(t, cli.ExitConflict, code)
			require.Contains(t, cried, "exists, and is left as it is")
		}
		require.Empty(t, h.processes(), name)
		now, err := os.ReadFile(h.path("b-ran"))
		require.NoError(t, err)
		require.Equal(t, ran, now, "an agent was started behind a damaged record")
		intoOneFile(t, path)
	}
	require.NoError(t, os.WriteFile(path, whole, 0o600))
	h.up("--json")
	h.enter("a").quiet()
	h.stop()
}

// intoOneFile moves all data into the database file and returns its bytes.
func intoOneFile(t *testing.T, path string) []byte {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, _ = db.Exec("PRAGMA wal_checkpoint(TRUNCATE)") // fails if the file is not a database
	require.NoError(t, db.Close())
	for _, beside := range []string{"-wal", "-shm"} {
		require.NoError(t, os.RemoveAll(path+beside))
	}
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	return whole
}
