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
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

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
	h.stop()
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
