package serve

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

func TestTypist(t *testing.T) {
	now := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	typist := &stdinAnswers{}
	for _, test := range []struct{ typed, sent string }{
		{`{"type":"request:query-agents"}`, `{"id":"1","timestamp":"2026-11-21T14:00:00.000Z","type":"request:query-agents"}`},
		{`  {"type":"event:log","payload":{"level":"info","message":"x"}} `, `{"id":"2","timestamp":"2026-11-21T14:00:00.000Z","type":"event:log","payload":{"level":"info","message":"x"}}`},
		{`{"type":"request:get-task","id":"a"}`, `{"timestamp":"2026-11-21T14:00:00.000Z","type":"request:get-task","id":"a"}`},
		{`{"timestamp":"now","type":"request:get-task"}`, `{"id":"3","timestamp":"now","type":"request:get-task"}`},
		{`{"type":"request:get-task","id":7,"timestamp":null}`, `{"type":"request:get-task","id":7,"timestamp":null}`},
		{`{"type":"task"}`, `{"type":"task"}`},
		{`{"type":"request:a","type":"request:b"}`, `{"type":"request:a","type":"request:b"}`},
		{`hello`, `hello`},
		{``, ``},
	} {
		require.Equal(t, test.sent+"\n", string(typist.complete([]byte(test.typed+"\n"), now)))
	}
}

func TestDisplay(t *testing.T) {
	var shown bytes.Buffer
	echo := newEcho(&shown)
	for _, piece := range []string{"one\nt", "wo\n", strings.Repeat("x", 2*maxEcho), "\nlast"} {
		n, err := echo.Write([]byte(piece))
		require.NoError(t, err)
		require.Len(t, piece, n)
	}
	echo.end()
	lines := strings.Split(shown.String(), "\n")
	require.Equal(t, []string{"> one", "> two"}, lines[:2])
	require.Regexp(t, `^> x+… \(16K in total\)$`, lines[2])
	require.Equal(t, []string{"> last", ""}, lines[3:])

	shown.Reset()
	_, err := newDisplay(&shown).Write([]byte("\x1b[2Jgone\n"))
	require.NoError(t, err)
	require.Equal(t, `\x1b[2Jgone`+"\n", shown.String())
}

// The farewell is found even if the stream is split inside it, and only the exact text matches.
func TestFarewell(t *testing.T) {
	stream := "{\"a\":\"\x04\"}\n{}\n\x04\n"
	for cut := range len(stream) {
		var heard []byte
		over, last := false, byte('\n')
		for _, piece := range []string{stream[:cut], stream[cut:]} {
			if over || piece == "" {
				continue
			}
			var text []byte
			text, over = beforeFarewell([]byte(piece), last)
			heard, last = append(heard, text...), piece[len(piece)-1]
		}
		require.True(t, over, "cut at %d", cut)
		require.Equal(t, "{\"a\":\"\x04\"}\n{}\n", string(heard))
	}
}

func TestSettled(t *testing.T) {
	view := func(name string, state control.State, on ...string) control.AgentView {
		v := control.AgentView{Name: name, State: state, DependsOn: on}
		if state == control.StateRunning {
			v.UpMS = earlyEnd.Milliseconds()
		}
		return v
	}
	waiting := func(name string, on ...string) control.AgentView { return view(name, control.StateWaiting, on...) }
	for name, test := range map[string]struct {
		agents []control.AgentView
		want   bool
	}{
		"none":                     {want: true},
		"running":                  {want: true, agents: []control.AgentView{view("a", control.StateRunning), view("b", control.StateFailed)}},
		"may end at once":          {agents: []control.AgentView{{Name: "a", State: control.StateRunning, UpMS: 1}}},
		"ends in a loop":           {want: true, agents: []control.AgentView{{Name: "a", State: control.StateBackoff, Starts: 2}}},
		"starting":                 {agents: []control.AgentView{view("a", control.StateRunning), view("b", control.StateStarting)}},
		"waits for a start":        {agents: []control.AgentView{view("a", control.StateStarting), waiting("b", "a")}},
		"waits for one that runs":  {agents: []control.AgentView{view("a", control.StateRunning), waiting("b", "a")}},
		"waits for a host":         {want: true, agents: []control.AgentView{{Name: "a", State: control.StateWaiting, Reason: "for a host called attic"}}},
		"waits for one in backoff": {agents: []control.AgentView{view("a", control.StateBackoff), waiting("b", "a")}},
		"waits in vain":            {want: true, agents: []control.AgentView{view("a", control.StateFailed), waiting("b", "a")}},
		"in vain, further up": {want: true, agents: []control.AgentView{
			waiting("d", "c"), waiting("c", "b", "x"), waiting("b", "a"), view("a", control.StateFailed), view("x", control.StateRunning),
		}},
		"hope, further up": {agents: []control.AgentView{
			waiting("d", "c"), waiting("c", "b"), waiting("b", "a"), view("a", control.StateBackoff),
		}},
	} {
		require.Equal(t, test.want, settled(control.Status{Agents: test.agents}), name)
	}
}

// A program in the background is not waited for if its status cannot be had, but it is if it does
// not listen yet.
func TestUpNow(t *testing.T) {
	answer := `{"error":{"code":"internal","message":"a fault of the orchestrator"}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, answer)
	}))
	d := new(cli.App).NewClient(client.Target{URL: server.URL})
	_, up, err := upNow(t.Context(), d)
	require.False(t, up)
	require.ErrorContains(t, err, "a fault of the orchestrator")

	server.Close()
	_, up, err = upNow(t.Context(), d)
	require.False(t, up)
	require.NoError(t, err)
}

// A record without a readable state and without the facts is refused with the next step.
func TestStateOfAnotherVersion(t *testing.T) {
	err := fmt.Errorf("restoring: %w", &wire.RemovedError{Base: wire.Base{Seq: 7}})
	f := cli.FailureOf(CannotRecord(err, config.Store{Path: "events.db"}))
	require.Contains(t, f.Message, "records 1 to 7")
	require.Contains(t, f.Hint, "Use the version that wrote it")
	require.EqualValues(t, 7, f.Details["removed"])
}

// Every command that opens the record reports it if the address space is too small. The test
// does not set the limit, because then the Go runtime cannot always start a thread.
func TestLittleAddressSpace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	wrong := fmt.Errorf("opening: %w", syscall.ENOMEM)
	store := config.Store{Path: path}
	for name, err := range map[string]error{
		"up": CannotRecord(wrong, store), "task ls": unreadable(wrong, store), "store check": CannotReadRecord(wrong, path),
	} {
		f := cli.FailureOf(err)
		require.Equal(t, "not enough address space for the record "+path, f.Message, name)
		require.Equal(t, "Raise the limit: ulimit -v unlimited", f.Hint, name)
	}
}
