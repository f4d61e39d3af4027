package manual

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/session"
)

// Tests of the team in the repository's orchestrator.hcl. It runs as in the README, with go run
// from the checkout, but faster.

// A lighthouse is a run of the team and its output.
type lighthouse struct {
	t      *testing.T
	folder string // of the site
	code   int
	events []wire.Event
	said   map[string]string // stdout by agent
	all    string
}

// runLighthouse runs the team until it is idle. The next run can use the same state.
func runLighthouse(t *testing.T, state string, flags ...string) *lighthouse {
	t.Helper()
	program, err := stage.Program()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // go run may have to build the team
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{
		"up", "--exit-when-idle", "--state-dir", state, "--log-format", "json", "--var", "pace=0.02",
	}, flags...)...)
	cmd.Dir = "../../../.."
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "ORC_") && !strings.HasPrefix(entry, "NOTIFY_SOCKET=") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+state)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err = cmd.Run()
	l := &lighthouse{t: t, folder: filepath.Join(state, "site"), said: make(map[string]string), all: out.String() + complaints.String()}
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		l.code = failed.ExitCode()
	} else {
		require.NoError(t, err, l.all)
	}
	require.NoError(t, ctx.Err(), "it does not end:\n%s", l.all)
	for line := range strings.Lines(out.String()) {
		var e wire.Event
		var said control.LogLine
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		if e.Kind != "" {
			l.events = append(l.events, e)
		} else if require.NoError(t, json.Unmarshal([]byte(line), &said), line); said.Stream == control.StreamOut {
			l.said[said.Agent] += said.Text + "\n"
		}
	}
	return l
}

// of returns the events of a kind.
func (l *lighthouse) of(kind string) (found []wire.Event) {
	for _, e := range l.events {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

// texts returns their texts.
func (l *lighthouse) texts(kind string) (found []string) {
	for _, e := range l.of(kind) {
		found = append(found, e.Text)
	}
	return found
}

// requireStory requires that six tasks are done, one after a crash and one after a review that
// requested changes.
func (l *lighthouse) requireStory() {
	t := l.t
	t.Helper()
	require.Zero(t, l.code, l.all)
	require.Len(t, l.of(events.TaskCreated), 6)
	require.Len(t, l.of(events.TaskDone), 6, l.all)
	require.Empty(t, l.of(events.TaskFailed))
	require.Empty(t, l.of(events.TaskCancelled))
	require.Greater(t, len(l.of(events.TaskProgress)), 10)

	require.Equal(t, 1, strings.Count(l.said["writer"], "this crash is on purpose"), l.all)
	require.Contains(t, l.said["writer"]+l.said["designer"], "starts tides.html again")
	require.Len(t, l.of(events.TaskRequeued), 1)
	require.Contains(t, l.texts(events.TaskRequeued)[0], `"Write about the tides" is back in the queue`)

	verdicts := l.texts(events.ReviewDecided)
	require.Len(t, verdicts, 2)
	require.Contains(t, verdicts[0], "changes requested")
	require.Contains(t, verdicts[1], session.VerdictApproved)
	require.Contains(t, l.said["reviewer"], "links to tide.html, which does not exist")
	require.Contains(t, l.said["writer"], "changed tide.html to tides.html")
	require.Contains(t, l.said["architect"], "See it: "+filepath.Join(l.folder, "index.html"))
}

var hrefs = regexp.MustCompile(`href="([^"]*)"`)

// requireSite requires all pages in these colors and without broken links.
func (l *lighthouse) requireSite(colours string) {
	t := l.t
	t.Helper()
	for _, page := range []string{"index.html", "tides.html", "visit.html"} {
		text, err := os.ReadFile(filepath.Join(l.folder, page))
		require.NoError(t, err)
		links := hrefs.FindAllStringSubmatch(string(text), -1)
		require.GreaterOrEqual(t, len(links), 4, "%s links to all pages and to the stylesheet", page)
		for _, link := range links {
			require.FileExists(t, filepath.Join(l.folder, link[1]), page)
		}
		if page == "index.html" {
			require.Contains(t, string(text), "the colours of the "+colours)
		}
	}
	style, err := os.ReadFile(filepath.Join(l.folder, "style.css"))
	require.NoError(t, err)
	require.Contains(t, string(style), "/* "+colours+":")
}

// TestLighthouse checks that the team uses a default if its question is not answered. The next
// run starts again and uses the answer.
func TestLighthouse(t *testing.T) {
	t.Parallel()
	state := shortDir(t)
	l := runLighthouse(t, state, "--var", "patience=50ms")
	l.requireStory()
	require.Len(t, l.of(events.QuestionExpired), 1)
	require.Contains(t, l.said["designer"], "no answer: using day")
	l.requireSite("day")

	answers := filepath.Join(state, "answers")
	require.NoError(t, os.WriteFile(answers, []byte("Which colours* => night\n"), 0o600))
	l = runLighthouse(t, state, "--var", "patience=5m", "--answers", answers)
	l.requireStory()
	require.Empty(t, l.of(events.QuestionExpired))
	require.Contains(t, l.said["designer"], "night it is")
	l.requireSite("night")
}

// TestLighthouseRejected checks that a rejected site is not done and that the exit code is not
// zero.
func TestLighthouseRejected(t *testing.T) {
	t.Parallel()
	l := runLighthouse(t, shortDir(t), "--var", "patience=50ms", "--var", "reviewer=harsh")
	require.Equal(t, cli.ExitNo, l.code, l.all)
	require.Len(t, l.of(events.TaskDone), 5, "the parts are done")
	require.Len(t, l.of(events.TaskCancelled), 1, "what is made of them is not")
	require.Contains(t, l.texts(events.ReviewDecided)[0], session.VerdictRejected)
	require.NotContains(t, l.said["architect"], "See it")
}

// shortDir returns a temporary folder with a path that is short enough for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "orc")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// The team inside the program equals the one in the checkout. Its agents are the program itself.
func TestDemo(t *testing.T) {
	t.Parallel()
	team := func(file string) string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		_, team, _ := strings.Cut(string(text), "orchestrator {\n  name")
		return team
	}
	ours, inside := team("../../../../orchestrator.hcl"), team("../../demo/demo.hcl")
	require.Equal(t, strings.Replace(ours, `["go", "run", "./fixtures/lighthouse"]`, `["orchestrator", "demo", "play"]`, 1), inside)

	program, err := stage.Program()
	require.NoError(t, err)
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "demo", "--keep", filepath.Join(dir, "kept"))
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "ORC_VAR_pace=0.02", "XDG_STATE_HOME="+dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "6 of 6 tasks")
	site := filepath.Join(dir, "kept", ".orchestrator", "site", "index.html")
	require.FileExists(t, site)
	require.Contains(t, string(out), site)

	cmd = exec.CommandContext(ctx, program, "demo")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "ORC_VAR_pace=0.02", "XDG_STATE_HOME="+dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err = cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "index.html\n", "the site is removed with its folder")
}
