package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/fixtures/screen"
)

// Ctrl-Z suspends watch, and fg shows the screen again. Without a shell, watch is not suspended.
func TestWatchSleeps(t *testing.T) {
	t.Parallel()
	h, _ := busyStage(t)
	v := h.watching(80, 24)
	v.sees("coder")
	v.types(screen.CtrlZ)
	v.sees("There is no shell to go back to.")
	v.leaves("q")

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", `set -m; orchestrator watch --state-dir "$0"; echo asleep; read -r said; fg`, h.state())
	cmd.Dir, cmd.Env = h.dir, append(h.environ(), "TERM=xterm")
	terminal, err := screen.Start(cmd, 80, 24)
	require.NoError(t, err)
	behind := &viewer{t: t, ctx: ctx, Terminal: terminal}
	behind.sees("coder", "writer")
	behind.types(screen.CtrlZ)
	behind.sees("asleep")
	behind.types(screen.Enter)
	behind.sees(">[1]Overview", "writer")
	behind.leaves("q")
}

// Keys work although the orchestrator no longer answers.
func TestWatchStuck(t *testing.T) {
	t.Parallel()
	s := newStage(t, quick)
	require.NoError(t, os.MkdirAll(s.path("answers"), 0o700))
	answers := func(name, text string) { s.write(filepath.Join("answers", name), text) }
	answers("status.json", `{"format_version":"1.0","name":"shop","state":"running","agents":[{"name":"planner","state":"running","pid":41213}],"tasks":{"pending":1}}`)
	answers("query-tasks.json", `{"tasks":[{"id":"91c0aa42-0000-4000-8000-000000000002","name":"API handlers","state":"pending"}]}`)
	answers("list-questions.json", `{"questions":[]}`)
	program, err := exec.LookPath("stand-in")
	require.NoError(t, err)
	s.start(exec.Command(program, filepath.Join(s.state(), "api.sock"), s.path("answers")))
	waitForThat(t, "the stand-in", func() bool { _, _, code := s.call("status"); return code == cli.ExitOK })
	v := s.watching(80, 24)
	v.sees("planner", "API handlers")
	for _, name := range []string{"status.wait", "query-tasks.wait", "list-questions.wait", "query-agents.wait"} {
		answers(name, "")
	}
	v.sees("reconnecting…", "it does not answer")
	v.types("2")
	v.sees(">[2]Tasks", "API handlers")
	v.types(":task ls", screen.Enter)
	v.sees("task ls …   esc gives it up")
	v.backs("gives it up")
	for _, name := range []string{"status.wait", "query-tasks.wait", "list-questions.wait"} {
		require.NoError(t, os.Remove(s.path(filepath.Join("answers", name))))
	}
	v.misses("reconnecting…")
	answers("status.wait", "")
	v.leaves("q")
}
