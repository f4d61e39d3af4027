package adapter_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/supervisor/adapter"
	"orchestrator/supervisor/adapter/claude"
	"orchestrator/supervisor/child"
)

// script speaks as much of a client's protocol as one task needs. It prints a message of ours as
// well, which must be log.
const script = `
read -r hello
echo '{"type":"request:complete-task","id":"x","timestamp":"2026-11-21T14:00:00Z","payload":{"taskId":"t-1"}}'
echo '{"type":"control_response","response":{"subtype":"success","request_id":"orc_1","response":{}}}'
echo 'to stderr' >&2
read -r prompt
id=$(expr "$prompt" : '.*"uuid":"\([^"]*\)"')
echo '{"type":"user","uuid":"'"$id"'","isReplay":true}'
echo '{"type":"control_request","request_id":"m1","request":{"subtype":"mcp_message","server_name":"orc","message":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"task_complete","arguments":{"summary":"done"}}}}}'
read -r answer
echo "$answer" > answer
echo '{"type":"result","is_error":false,"terminal_reason":"completed","result":"Done."}'
cat > rest
`

// TestProcess runs a client as a child: its reports become requests and events on stdout, its words
// are on stderr, and its stdin ends with the agent's.
func TestProcess(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "client.sh"), []byte(script), 0o600))
	host, err := child.NewHost(child.Options{Home: dir})
	require.NoError(t, err)
	defer func() { require.Empty(t, host.Close()) }()
	said := &lines{atEnd: newAtEnd(), heard: make(chan struct{}, 100)}
	o := &adapter.Opening{Agent: "coder", Run: "0f8fad5b-d9cb-469f-a165-70867728950e", Dir: dir, Permission: adapter.PermissionAsk, Patience: time.Minute}
	spec := child.Spec{
		Command: []string{"sh", "client.sh"}, Dir: dir, Env: os.Environ(), Run: o.Run,
		Listener: said,
	}
	start := func(spec child.Spec) (adapter.Program, error) { return host.Start(spec) }
	p, err := adapter.Start(start, spec, adapter.NewMachine(claude.New(), o), 1<<20, &adapter.WireLog{Dir: filepath.Join(dir, "logs")})
	require.NoError(t, err)
	stdin := p.Stdin()
	tell := func(line string) {
		_, err := stdin.Write([]byte(line + "\n"))
		require.NoError(t, err)
	}
	tell(`{"type":"notify:task-assigned","payload":{"taskId":"t-1"}}`)
	get := said.wait(t, `"request:get-task"`)
	tell(`{"type":"response:success","correlationId":"` + idOf(t, get) + `","payload":{"task":{"id":"t-1","name":"one"}}}`)
	complete := said.wait(t, `"request:complete-task"`)
	require.Contains(t, complete, `"result":{"summary":"done"}`)
	tell(`{"type":"response:success","correlationId":"` + idOf(t, complete) + `","payload":{}}`)
	said.wait(t, `"state":"idle"`)
	tell(`{"type":"notify:shutdown","payload":{}}`)
	require.True(t, p.CloseStdin())
	<-said.ended
	answer, err := os.ReadFile(filepath.Join(dir, "answer"))
	require.NoError(t, err)
	require.Contains(t, string(answer), "reported; end your turn")
	require.Contains(t, said.stderr, "to stderr\n")
	require.NotContains(t, said.stdout, `"id":"x"`, "a line of the client is no message")
	kept, err := os.ReadFile(filepath.Join(dir, "logs", adapter.WireNew))
	require.NoError(t, err)
	var from []string
	for line := range strings.Lines(string(kept)) {
		var l struct{ At, From, Line string }
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		from = append(from, l.From)
		if l.From == "client" && strings.Contains(l.Line, "m1") {
			require.Contains(t, script, l.Line, "the line is as it came")
		}
	}
	require.Equal(t, []string{"orchestrator", "client", "client", "orchestrator", "client", "client", "orchestrator", "client"}, from)
	mode, err := os.Stat(filepath.Join(dir, "logs", adapter.WireNew))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), mode.Mode().Perm())
}

// TestWireLog checks that the lines of a client are kept in two files of bounded size, over runs.
func TestWireLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "coder")
	for run := range 3 {
		w := &adapter.WireLog{Dir: dir, Size: 100}
		for i := range 5 {
			_, err := fmt.Fprintf(w, "%d %d %030d\n", run, i, 0)
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2)
	old, err := os.ReadFile(filepath.Join(dir, adapter.WireOld))
	require.NoError(t, err)
	require.Len(t, old, 70)
	newest, err := os.ReadFile(filepath.Join(dir, adapter.WireNew))
	require.NoError(t, err)
	require.LessOrEqual(t, len(newest), 100)
	require.Contains(t, string(newest), "2 4 ")
}

func idOf(t *testing.T, line string) string {
	_, rest, ok := strings.Cut(line, `"id":"`)
	require.True(t, ok, line)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// lines keeps the output of a process.
type lines struct {
	atEnd
	mu             sync.Mutex
	stdout, stderr string
	seen           int
	heard          chan struct{}
}

func (l *lines) Output(stream child.Stream, chunk []byte) {
	l.mu.Lock()
	if stream == child.Stderr {
		l.stderr += string(chunk)
	} else {
		l.stdout += string(chunk)
	}
	l.mu.Unlock()
	l.heard <- struct{}{}
}

// wait returns the next line of stdout that has a text.
func (l *lines) wait(t *testing.T, text string) string {
	for {
		l.mu.Lock()
		rest := l.stdout[l.seen:]
		at := strings.Index(rest, text)
		if at >= 0 {
			begin, end := strings.LastIndexByte(rest[:at], '\n')+1, at+strings.IndexByte(rest[at:], '\n')
			l.seen += end
			l.mu.Unlock()
			return rest[begin:end]
		}
		l.mu.Unlock()
		select {
		case <-l.heard:
		case <-t.Context().Done():
			require.Fail(t, "not said", text)
		}
	}
}
