package screens

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/fixtures/screen"
)

// A watched team runs in a terminal.
type watched struct {
	*screen.Terminal
	*stage.Orchestrator
	ctx context.Context
}

// inTerminal runs a shell command in a new terminal. $UP in it starts the team.
func inTerminal(t *testing.T, hcl, script string, columns, rows int, environ ...string) *watched {
	t.Helper()
	s := stage.New(t, hcl).Ship()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGKILL) }
	cmd.Dir = s.Dir
	cmd.Env = append(append(s.Environ(), "TERM=xterm-256color", "NO_COLOR=", "UP="+s.Program+" up --yes --timeout 2m --state-dir "+s.State()), environ...)
	terminal, err := screen.Start(cmd, columns, rows)
	require.NoError(t, err)
	t.Cleanup(func() {
		cancel()
		<-terminal.Ended()
	})
	return &watched{Terminal: terminal, Orchestrator: s, ctx: ctx}
}

// until waits for a screen with all these texts.
func (w *watched) until(texts ...string) string {
	w.T.Helper()
	text, err := w.Until(w.ctx, screen.Shows(texts...))
	require.NoError(w.T, err)
	return text
}

// matches waits for a screen that matches an expression.
func (w *watched) matches(expression string) string {
	w.T.Helper()
	fits := regexp.MustCompile("(?m)" + expression)
	text, err := w.Until(w.ctx, fits.MatchString)
	require.NoError(w.T, err, expression)
	return text
}

func (w *watched) types(text string) {
	w.T.Helper()
	require.NoError(w.T, w.Type(text))
}

func (w *watched) ends(code int) string {
	w.T.Helper()
	got, err := w.Wait(w.ctx)
	require.NoError(w.T, err)
	require.Equal(w.T, code, got, w.Text())
	return w.Text()
}

// crew returns a planner with tasks and a worker that does them.
func crew(t *testing.T, payload string, tasks ...string) string {
	return `
agent "planner" {
  command = ["` + stage.Fixture(t, "planner") + `", "-payload", "` + strings.ReplaceAll(payload, `"`, `\"`) + `", "` + strings.Join(tasks, `", "`) + `"]
  role    = "planner"
  restart { 
    policy = "never" 
  }
}
agent "worker" {
  command = ["` + stage.Fixture(t, "worker") + `"]
}
`
}

// Running and waiting tasks are shown below the lines while there are any, and a summary is
// shown at the end.
func TestLiveShowsWork(t *testing.T) {
	t.Parallel()
	w := inTerminal(t, crew(t, `{"ms":2000}`, "Write the spec", "Build it"), "exec $UP --exit-when-idle", 100, 24)
	text := w.matches(`^>  [0-9a-f]{8} Write the spec +running +\[#####-----\]  50%  worker$`)
	require.Regexp(t, `(?m)^── 1 running 1 pending ─+$`, text)
	require.Regexp(t, `(?m)^\.  [0-9a-f]{8} Build it +pending +waits for [0-9a-f]{8}$`, text)
	require.Regexp(t, `(?m)^   worker +running +[0-9a-f]{8} Write the spec 50%$`, text)
	text = w.ends(cli.ExitOK)
	require.NotContains(t, text, "──")
	require.Regexp(t, `(?m)ok [0-9a-f]{8} "Write the spec" done in [\d.ms]+$`, text)
	require.Regexp(t, `(?m)^Done in [\d.ms]+: 2 of 2 tasks\n  worker  2 tasks  [\d.ms]+ at work\n\d+ messages, none refused, nothing lost\.$`, text)
}

// inquisitive returns a team with one agent that asks a question and another that prints all the
// time.
func inquisitive(t *testing.T, words string) string {
	return `
agent "asker" {
  command = ["` + stage.Fixture(t, "asker") + `", ` + words + `]
  restart {
    policy = "never"
  }
}
agent "talker" {
  command = ["sh", "-c", "while :; do echo blah; sleep 0.05; done"]
}
`
}

// Typed text stays while lines arrive, and answers the question.
func TestLiveAnswers(t *testing.T) {
	t.Parallel()
	w := inTerminal(t, inquisitive(t, `"Which login?", "oauth", "jwt"`), "exec $UP", 80, 24)
	w.matches(`^\?  q1 asker: Which login\?  1 \[oauth\]  2 \[jwt\] +\d+s left$`)
	w.until("> answer here: a number or VALUE")
	w.types("o")
	for _, typed := range []string{"a", "x" + screen.Backspace, "uth wrong\x17"} { // Ctrl-W
		before := strings.Count(w.Written(), "blah")
		_, err := w.Until(w.ctx, func(string) bool { return strings.Count(w.Written(), "blah") > before+2 })
		require.NoError(t, err)
		w.until("\n> o")
		w.types(typed)
	}
	w.until("\n> oauth")
	require.Equal(t, len("> oauth "), w.Picture().CursorX)
	w.types(screen.Enter)
	text := w.until("the answer is oauth")
	require.NotContains(t, text, "> oauth")
	w.types("to nobody" + screen.CtrlU + "lost" + screen.Enter)
	w.until(`No open questions: "lost" was not sent.`)
	w.types(screen.CtrlC)
	text = w.ends(cli.ExitOK)
	require.Contains(t, text, "1 question: 1 answered. ")
}

// Text typed for a question that is answered elsewhere is not used for the next question.
func TestLiveAnswersTheOneThatIsMeant(t *testing.T) {
	t.Parallel()
	asker := `
agent "%s" {
  command = ["` + stage.Fixture(t, "asker") + `", "Which one?"]
  restart {
    policy = "never"
  }
}
`
	w := inTerminal(t, fmt.Sprintf(asker, "first")+fmt.Sprintf(asker, "second"), "exec $UP", 100, 24)
	w.until("> answer here: q1 VALUE")
	w.types("q1 one" + screen.Enter)
	w.until("the answer is one")
	w.types("q1 two" + screen.Enter)
	w.until(`q1 is no longer open: "two" was not sent.`)
	w.matches(`^\?  q2 `)
	w.types("q" + screen.Enter)
	w.until("the answer is q")
	w.types(screen.CtrlC)
	w.ends(cli.ExitOK)
}

// A question that is not answered in time is part of the summary.
func TestLiveNobodyAnswers(t *testing.T) {
	t.Parallel()
	w := inTerminal(t, inquisitive(t, `"-timeout", "1s", "Which login?"`), "exec $UP", 80, 24)
	w.until("> answer here")
	w.until("asker   failed")
	w.types(screen.CtrlC)
	require.Regexp(t, `1 question: no answer within \d+(\.\d+)?s\. \d+ message`, w.ends(cli.ExitOK))
}

// The rows fit the terminal at any size, and disappear when they have no room.
func TestLiveResize(t *testing.T) {
	t.Parallel()
	w := inTerminal(t, crew(t, `{"ms":60000}`, "Write the whole spec again"), "exec $UP", 100, 24)
	w.matches(`^>  [0-9a-f]{8} Write the whole spec again +running `)
	require.NoError(t, w.Resize(48, 24))
	w.matches(`^>  [0-9a-f]{8} \S+.*… +running +0%  worker$`)
	require.NoError(t, w.Resize(40, 4))
	_, err := w.Until(w.ctx, func(text string) bool { return !strings.Contains(text, "──") })
	require.NoError(t, err)
	require.NoError(t, w.Resize(29, 24))
	require.NoError(t, w.Resize(100, 30))
	w.matches(`^>  [0-9a-f]{8} Write the whole spec again +running `)
	w.types(screen.CtrlC)
	text := w.ends(cli.ExitOK)
	require.Regexp(t, `(?m)^1 task in \S+: 1 `, text)
}

// However the program ends, it restores the terminal.
func TestLiveRestores(t *testing.T) {
	t.Parallel()
	stubborn := `
agent "stubborn" {
  command = ["sh", "-c", "trap '' TERM; read -r go <fifo; kill -TERM $PPID; while :; do sleep 0.1; done"]
  stop {
    grace = %q
  }
}
`
	ends := map[string]struct {
		grace string
		code  int
		end   func(w *watched)
	}{
		"second": {"2m", 130, func(w *watched) {
			w.types(screen.CtrlC)
			w.until("is stopping")
			first := time.Now()
			stage.WaitFor(t, "the end of the echo", func() bool { return time.Since(first) > cli.SignalEcho })
			w.types(screen.CtrlC)
		}},
		"term": {"300ms", 0, func(w *watched) { w.Write("fifo", "go\n") }},
	}
	for name, test := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := inTerminal(t, stage.QuickStop+fmt.Sprintf(stubborn, test.grace), "trap : INT; mkfifo fifo; stty -a >before; $UP; echo code $?; stty -a >after; cmp before after && echo the same", 80, 24)
			w.matches(`^── 1 agent ─+\n   stubborn  running`)
			test.end(w)
			text := w.until("the same")
			require.NotContains(t, text, "──")
			require.Contains(t, w.Written()[strings.LastIndex(w.Written(), "\x1b[?25"):], "\x1b[?25h", "the cursor is seen")
			require.Contains(t, text, fmt.Sprintf("code %d\n", test.code))
		})
	}
}

// Ctrl-Z restores the terminal, and fg shows the rows again.
func TestLiveStops(t *testing.T) {
	t.Parallel()
	w := inTerminal(t, crew(t, `{"ms":60000}`, "Write the spec"), "PS1='$ ' exec sh -i", 100, 24)
	w.until("$")
	w.types("$UP" + screen.Enter)
	w.matches(`^>  [0-9a-f]{8} Write the spec +running `)
	w.types(screen.CtrlZ)
	_, err := w.Until(w.ctx, func(text string) bool { return strings.Contains(text, "Stopped") && !strings.Contains(text, "──") })
	require.NoError(t, err)
	w.types("stty -a | grep -o ' icanon\\| echo '; bg" + screen.Enter)
	w.until("icanon", "echo")
	w.types("echo still $((40+2))" + screen.Enter)
	require.NotContains(t, w.until("still 42"), "──")
	w.types("fg" + screen.Enter)
	text := w.matches(`^>  [0-9a-f]{8} Write the spec +running `)
	require.Equal(t, 1, strings.Count(text, "── 1 running"), text)
	w.types(screen.CtrlC)
	w.matches(`(nothing lost|1 message not delivered)\.$`) // the planner may have an open request
	w.types("exit" + screen.Enter)
	w.ends(cli.ExitOK)
}

// A flood of lines scrolls past above the rows.
func TestLiveFlood(t *testing.T) {
	t.Parallel()
	w := inTerminal(t, crew(t, `{"ms":4000}`, "Write the spec")+`
agent "flood" {
  command = ["sh", "-c", "yes | head -n 2000; exec cat"]
  role    = "reviewer" # it is not given the task
}
`, "exec $UP --exit-when-idle", 100, 24, "NO_COLOR=1")
	text := w.ends(cli.ExitOK)
	require.Regexp(t, `>  [0-9a-f]{8} Write the spec +running +\[####`, w.Written())
	require.NotContains(t, text, "──")
	require.Contains(t, text, "Done in")
	require.NotRegexp(t, colour, w.Written())
}
