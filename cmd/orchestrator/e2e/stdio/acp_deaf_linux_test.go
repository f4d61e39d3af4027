package stdio

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// A deafEditor is an editor that stops reading after the answer to session/new.
type deafEditor struct {
	t       *testing.T
	command *exec.Cmd
	in      io.WriteCloser
	stderr  strings.Builder
	session string
}

func startDeafEditor(s *stage.Orchestrator) *deafEditor {
	s.T.Helper()
	e := &deafEditor{t: s.T, command: exec.Command(s.Program, "acp", "--state-dir", s.State())}
	e.command.Dir, e.command.Env, e.command.Stderr = s.Dir, s.Environ(), &e.stderr
	var err error
	e.in, err = e.command.StdinPipe()
	require.NoError(s.T, err)
	out, err := e.command.StdoutPipe()
	require.NoError(s.T, err)
	require.NoError(s.T, e.command.Start())
	alarm := time.AfterFunc(stage.Patience, func() { _ = e.command.Process.Kill() })
	s.T.Cleanup(func() {
		alarm.Stop()
		_ = e.command.Process.Kill()
	})
	e.write(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}`)
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(s.T, err)
	var answer struct {
		Result struct {
			Session string `json:"sessionId"`
		} `json:"result"`
	}
	require.NoError(s.T, json.Unmarshal(line, &answer))
	e.session = answer.Result.Session
	return e
}

func (e *deafEditor) write(line string) {
	e.t.Helper()
	_, err := io.WriteString(e.in, line+"\n")
	require.NoError(e.t, err)
}

func (e *deafEditor) prompt(text string) {
	e.t.Helper()
	e.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}}`, e.session, text))
}

// An editor with an open prompt that does not read delays no one: its requests are done. If it
// reads on, the program ends, and the task of the prompt stays.
func TestEditorThatStopsReading(t *testing.T) {
	s := stage.New(t, stage.QuickStop+stage.OneIdler).Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "")
	e := startDeafEditor(s)
	e.prompt("First")
	first := s.WaitForEvents(1, events.TaskAssigned, "idler")[0].Task
	e.write(strings.Repeat(`{"jsonrpc":"2.0","id":3,"method":"initialize"}`+"\n", 10_000))
	e.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, e.session))
	s.WaitForState(first, wire.TaskCancelled)

	other := startDeafEditor(s)
	other.prompt("Second")
	second := s.WaitForEvents(2, events.TaskAssigned, "idler")[1].Task
	method := strings.Repeat("x", 1<<20) // the answer repeats it
	var err error
	for i := 0; err == nil; i++ {
		require.Less(t, i, 500, "the program does not end")
		_, err = fmt.Fprintf(other.in, `{"jsonrpc":"2.0","id":%d,"method":%q}`+"\n", i, method)
	}
	require.Error(t, other.command.Wait())
	require.Equal(t, 1, other.command.ProcessState.ExitCode())
	require.Contains(t, other.stderr.String(), "the editor has not read")
	used := other.command.ProcessState.SysUsage().(*syscall.Rusage)
	require.Less(t, used.Maxrss, int64(1<<20), "kibibytes")
	require.NotEqual(t, wire.TaskCancelled, s.ShownTask(second).State)
}

// The end of input in the middle of a prompt ends the program well, and its task continues.
func TestEditorThatLeaves(t *testing.T) {
	s := stage.New(t, stage.QuickStop+stage.OneIdler).Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "")
	e := startDeafEditor(s)
	e.prompt("Stay")
	id := s.WaitForEvents(1, events.TaskAssigned, "idler")[0].Task
	require.NoError(t, e.in.Close())
	require.NoError(t, e.command.Wait(), e.stderr.String())
	s.Ask("task", "done", id)
	s.WaitForState(id, wire.TaskDone)
}
