package stdio

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/coder/acp-go-sdk"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// A testEditor is an editor that another library implements. It answers questions with the option
// named in it.
type testEditor struct {
	acp.Client // for requests that the team does not make
	answer     string

	mu   sync.Mutex
	seen []string
}

func (e *testEditor) note(parts ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, strings.Join(parts, " "))
}

// has reports whether the editor was shown a text.
func (e *testEditor) has(text string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.seen, text)
}

func (e *testEditor) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	switch u := n.Update; {
	case u.AgentMessageChunk != nil:
		e.note("says:", u.AgentMessageChunk.Content.Text.Text)
	case u.ToolCall != nil:
		e.note("task:", u.ToolCall.Title)
	case u.ToolCallUpdate != nil:
		text := ""
		for _, c := range u.ToolCallUpdate.Content {
			text += c.Content.Content.Text.Text
		}
		e.note("now:", string(*u.ToolCallUpdate.Status), text)
	case u.Plan != nil:
		for _, entry := range u.Plan.Entries {
			e.note("plan:", entry.Content, string(entry.Status))
		}
	}
	return nil
}

func (e *testEditor) RequestPermission(_ context.Context, r acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	e.note("asked:", *r.ToolCall.Title)
	for _, o := range r.Options {
		if o.Name == e.answer {
			return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(o.OptionId)}, nil
		}
	}
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}, nil
}

// editor starts orchestrator acp below an editor.
func editor(s *stage.Orchestrator, e *testEditor, args ...string) *acp.ClientSideConnection {
	cmd := exec.Command(s.Program, append([]string{"acp", "--state-dir", s.State()}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = s.Dir, s.Environ(), os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(s.T, err)
	out, err := cmd.StdoutPipe()
	require.NoError(s.T, err)
	require.NoError(s.T, cmd.Start())
	conn := acp.NewClientSideConnection(e, in, out)
	s.T.Cleanup(func() {
		_ = in.Close()
		<-conn.Done() // or output could be lost
		require.NoError(s.T, cmd.Wait())
	})
	welcome, err := conn.Initialize(s.T.Context(), acp.InitializeRequest{ProtocolVersion: acp.ProtocolVersionNumber})
	require.NoError(s.T, err)
	require.EqualValues(s.T, 1, welcome.ProtocolVersion)
	require.False(s.T, welcome.AgentCapabilities.LoadSession)
	return conn
}

func newSession(s *stage.Orchestrator, conn *acp.ClientSideConnection) acp.SessionId {
	s.T.Helper()
	made, err := conn.NewSession(s.T.Context(), acp.NewSessionRequest{Cwd: s.Dir, McpServers: []acp.McpServer{}})
	require.NoError(s.T, err)
	return made.SessionId
}

const askingPlanner = `
agent "planner" {
  command = ["sh", "planner.sh"]
  role    = "planner"
}
agent "worker" {
  command = ["sh", "worker.sh"]
}
`

// plannerScript works on three tasks: it completes one with the help of a worker and a person,
// leaves one open, and fails one.
const plannerScript = `
say() { printf '{"type":"request:%s","id":"%s","timestamp":"2026-11-21T14:00:00Z","payload":%s}\n' "$1" "$1-$n" "$2"; }
n=0
while IFS= read -r line; do
  case $line in
  *notify:task-assigned*)
    id=${line#*'"taskId":"'}
    id=${id%%'"'*}
    n=$((n+1))
    case $n in
    1) say report-progress "{\"taskId\":\"$id\",\"message\":\"reading\"}"
       say submit-task '{"type":"t","name":"A part","requiredRole":"worker"}' ;;
    2) say report-progress "{\"taskId\":\"$id\",\"message\":\"waiting\"}"
       say ask-user '{"question":"How?","timeout":300000}' ;;
    3) say fail-task "{\"taskId\":\"$id\",\"error\":\"no such file\"}" ;;
    esac ;;
  *notify:task-completed*|*notify:task-updated*|*'"name":"A part"'*)
    if test -z "$asked"; then
      asked=yes
      say ask-user '{"question":"Which colour?","options":[{"label":"Red","value":"red"},{"label":"Blue","value":"blue"}],"timeout":300000}'
    fi ;;
  *'"answer":"'*)
    answer=${line#*'"answer":"'}
    say complete-task "{\"taskId\":\"$id\",\"result\":\"painted ${answer%%'"'*}\"}" ;;
  esac
done
`

const workerScript = `
while IFS= read -r line; do
  case $line in
  *notify:task-assigned*)
    id=${line#*'"taskId":"'}
    id=${id%%'"'*}
    printf '{"type":"request:complete-task","id":"%s","timestamp":"2026-11-21T14:00:00Z","payload":{"taskId":"%s"}}\n' "$id" "$id" ;;
  esac
done
`

// An editor talks to the team as to one agent: a prompt is a task with its parts, its questions
// and its end.
func TestEditor(t *testing.T) {
	s := stage.New(t, stage.QuickStop+askingPlanner, "planner.sh", plannerScript, "worker.sh", workerScript).Up("--json")
	s.WaitForEvents(2, events.AgentStarted, "")
	e := &testEditor{answer: "Blue"}
	conn := editor(s, e)
	id := newSession(s, conn)
	prompt := func(text string) acp.StopReason {
		end, err := conn.Prompt(t.Context(), acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{acp.TextBlock(text)}})
		require.NoError(t, err)
		return end.StopReason
	}

	require.Equal(t, acp.StopReasonEndTurn, prompt("Paint it\nall of it"))
	stage.WaitFor(t, "it is shown", func() bool { return e.has("says: painted blue") })
	for _, text := range []string{
		"task: Paint it", "now: in_progress reading", "task: A part", "plan: A part pending", "plan: A part completed",
		"asked: planner asks: Which colour?",
	} {
		require.True(t, e.has(text), "%s in %q", text, e.seen)
	}
	task := s.TasksNow()[0]
	require.Equal(t, "Paint it\nall of it", s.ShownTask(task.ID).Description)
	require.Equal(t, wire.RolePlanner, task.RequiredRole)

	ended := make(chan acp.StopReason)
	go func() { ended <- prompt("Wait") }()
	s.WaitForQuestions(1)
	stage.WaitFor(t, "it is shown", func() bool { return e.has("says: planner asks: How?\nAnswer it: orchestrator inbox answer q2 TEXT\n") })
	_, err := conn.Prompt(t.Context(), acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{acp.TextBlock("More")}})
	require.ErrorContains(t, err, "already has a prompt")
	require.NoError(t, conn.Cancel(t.Context(), acp.CancelNotification{SessionId: id}))
	require.Equal(t, acp.StopReasonCancelled, <-ended)
	s.WaitForEvents(1, events.TaskCancelled, "")

	require.Equal(t, acp.StopReasonEndTurn, prompt("Fail"))
	stage.WaitFor(t, "it is shown", func() bool { return e.has("says: The task failed: no such file") })
}

// Without an orchestrator a request is refused in plain words, and the process stays.
func TestEditorWithoutATeam(t *testing.T) {
	s := stage.New(t, stage.QuickStop+stage.OneIdler)
	conn := editor(s, &testEditor{}, "--agent", "idler")
	_, err := conn.NewSession(t.Context(), acp.NewSessionRequest{Cwd: s.Dir, McpServers: []acp.McpServer{}})
	require.ErrorContains(t, err, "no orchestrator is running")
	_, err = conn.LoadSession(t.Context(), acp.LoadSessionRequest{SessionId: "1", Cwd: s.Dir, McpServers: []acp.McpServer{}})
	refusal, ok := errors.AsType[*acp.RequestError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, -32601, refusal.Code)

	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "")
	id := newSession(s, conn)
	ended := make(chan error)
	go func() {
		_, err := conn.Prompt(t.Context(), acp.PromptRequest{SessionId: id, Prompt: []acp.ContentBlock{acp.TextBlock("Do it")}})
		ended <- err
	}()
	s.WaitForEvents(1, events.TaskAssigned, "idler")
	s.Stop()
	err = <-ended // it hears of the stop, or asks afterwards
	require.Error(t, err)
	require.Regexp(t, "the orchestrator has stopped|no orchestrator is running", err.Error())
}

// The program ends with an editor that sends requests and reads no answer.
func TestEditorThatDoesNotRead(t *testing.T) {
	s := stage.New(t, stage.QuickStop+stage.OneIdler)
	for name, end := range map[string]func(cmd *exec.Cmd, in io.Closer){
		"end of input": func(_ *exec.Cmd, in io.Closer) { require.NoError(t, in.Close()) },
		"SIGINT":       func(cmd *exec.Cmd, _ io.Closer) { require.NoError(t, cmd.Process.Signal(syscall.SIGINT)) },
		"SIGTERM":      func(cmd *exec.Cmd, _ io.Closer) { require.NoError(t, cmd.Process.Signal(syscall.SIGTERM)) },
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(s.Program, "acp", "--state-dir", s.State())
			cmd.Dir, cmd.Env = s.Dir, s.Environ()
			in, err := cmd.StdinPipe()
			require.NoError(t, err)
			_, err = cmd.StdoutPipe() // never read
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			_, err = io.WriteString(in, strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`+"\n", 10_000))
			require.NoError(t, err)
			end(cmd, in)
			_, err = cmd.Process.Wait()
			require.NoError(t, err)
		})
	}
}
