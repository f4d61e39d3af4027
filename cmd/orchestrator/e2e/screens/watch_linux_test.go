package screens

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/fixtures/screen"
)

// Tests of watch in a terminal with a real orchestrator.

// A viewer is a running watch.
type viewer struct {
	t   *testing.T
	ctx context.Context
	*screen.Terminal
}

// watching starts watch on a screen of the given size.
func watching(s *stage.Orchestrator, columns, rows int, environ ...string) *viewer {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	cmd := exec.CommandContext(ctx, s.Program, "watch", "--state-dir", s.State())
	cmd.Dir, cmd.Env = s.Dir, append(append(s.Environ(), "TERM=xterm-256color", "NO_COLOR="), environ...)
	terminal, err := screen.Start(cmd, columns, rows)
	require.NoError(s.T, err)
	s.T.Cleanup(func() {
		cancel()
		<-terminal.Ended()
	})
	return &viewer{t: s.T, ctx: ctx, Terminal: terminal}
}

// sees waits until the screen shows all texts.
func (v *viewer) sees(texts ...string) string {
	v.t.Helper()
	text, err := v.Until(v.ctx, screen.Shows(texts...))
	require.NoError(v.t, err, "%q", texts)
	return text
}

// misses waits until the screen no longer shows a text.
func (v *viewer) misses(text string) {
	v.t.Helper()
	_, err := v.Until(v.ctx, func(screen string) bool { return !strings.Contains(screen, text) })
	require.NoError(v.t, err)
}

func (v *viewer) types(keys ...string) {
	v.t.Helper()
	for _, key := range keys {
		require.NoError(v.t, v.Type(key))
	}
}

// backs presses escape and waits until a text is gone. A key sent too soon would be read as part
// of the escape sequence.
func (v *viewer) backs(gone string) {
	v.t.Helper()
	v.types(screen.Escape)
	v.misses(gone)
}

// leaves quits with a key and checks that the terminal is restored.
func (v *viewer) leaves(key string) {
	v.t.Helper()
	v.types(key)
	code, err := v.Wait(v.ctx)
	require.NoError(v.t, err)
	require.Equal(v.t, cli.ExitOK, code)
	require.Contains(v.t, v.Text(), "its agents keep running")
	require.Contains(v.t, v.Written(), "\x1b[?1049l")
}

// framed reports whether every pane has its right border at the right edge.
func framed(text string, columns, rows int) bool {
	lines := strings.Split(text, "\n")
	if len(lines) != rows {
		return false
	}
	for _, line := range lines[2 : rows-2] {
		if !strings.HasSuffix(line, "│") && !strings.HasSuffix(line, "╮") && !strings.HasSuffix(line, "╯") || term.Width(line) != columns {
			return false
		}
	}
	return true
}

// seesFramed waits until a screen of this size shows all texts and complete panes.
func (v *viewer) seesFramed(columns, rows int, texts ...string) {
	v.t.Helper()
	_, err := v.Until(v.ctx, func(text string) bool { return framed(text, columns, rows) && screen.Shows(texts...)(text) })
	require.NoError(v.t, err, "%q", texts)
}

// busyStage returns a team of two scripted agents.
func busyStage(t *testing.T) (*stage.Team, []*stage.Agent) {
	t.Helper()
	h := stage.NewTeam(t, stage.Scripted("coder", "writer"), "coder", "writer")
	cast := h.StartAll("coder", "writer")
	return h, cast
}

func TestWatchOverview(t *testing.T) {
	t.Parallel()
	h, cast := busyStage(t)
	id := strings.TrimSpace(h.Ask("task", "add", "API handlers", "--assign", "coder", "-q"))
	cast[0].Assigned(id)
	cast[0].Granted(nil, "start-task", `{"taskId":"`+id+`"}`)
	cast[0].Say(stage.Event("p1", "progress", `{"taskId":"`+id+`","progress":0.64,"message":"half"}`) + "\n")
	cast[0].Say("go test ./api\n")
	v := watching(h.Orchestrator, 80, 24)
	v.seesFramed(80, 24, "coder", "writer", "running", id[:8]+" API handlers 64%", "1 running", ">1 Overview", "7 Log", "go test ./api", "up ", "pid ")
	require.NoError(t, v.Resize(120, 40))
	v.seesFramed(120, 40, "API handlers")
	require.NoError(t, v.Resize(50, 15))
	v.misses("Tasks ─")
	v.seesFramed(50, 15, ">1 Overview", "╭ Agents", "coder")
	v.types(screen.Tab)
	v.sees("╭ Tasks", "API handlers")
	v.types(screen.Tab)
	v.sees("╭ coder", "go test ./api")
	require.NoError(t, v.Resize(20, 5))
	v.sees("20x5 is too small")
	require.NoError(t, v.Resize(80, 24))
	v.sees("╭ Agents", "go test ./api")
	v.leaves("q")
	require.Equal(t, "running", string(h.Agent("coder").State))
}

var colourOnly = regexp.MustCompile(`\x1b\[[0-9;]*[1-9][0-9;]*m`)

// Without colors the selected row has a mark.
func TestWatchWithoutColour(t *testing.T) {
	t.Parallel()
	h, _ := busyStage(t)
	v := watching(h.Orchestrator, 80, 24, "NO_COLOR=1")
	v.sees("│>coder", "│ writer")
	v.types("j")
	v.sees("│ coder", "│>writer")
	v.leaves(screen.CtrlC)
	require.Empty(t, colourOnly.FindString(v.Written()))
	loud := watching(h.Orchestrator, 80, 24)
	loud.sees("│>coder")
	loud.leaves("q")
	require.NotEmpty(t, colourOnly.FindString(loud.Written()))
}

// Each tab shows its data.
func TestWatchTabs(t *testing.T) {
	t.Parallel()
	h, cast := busyStage(t)
	first := strings.TrimSpace(h.Ask("task", "add", "Foundation", "--assign", "coder", "-q"))
	second := strings.TrimSpace(h.Ask("task", "add", "Roof", "--needs", first, "-q"))
	h.Ask("bus", "send", "--to", "GO", "--topic", "message.direct", "--payload", `{"text":"hear hear"}`)
	cast[1].Say("a line of the writer\n")
	v := watching(h.Orchestrator, 100, 30)
	v.sees("Foundation", "Roof", "needs "+first[:4])
	v.types("2")
	v.sees(">2 Tasks", "created", "by ")
	v.types("/roof")
	v.misses("Foundation")
	v.types(screen.Enter)
	v.sees("Tasks 1 of 2", second[:8])
	v.backs("Tasks 1 of 2")
	v.sees("Foundation")
	v.types("3")
	v.sees(">3 Agents", "mailbox")
	v.types("4")
	v.sees(">4 Graph", "└─ "+second[:8]+" Roof")
	v.types("j", screen.Enter)
	v.sees("task show", "Roof", "created")
	v.backs("task show")
	v.types("5")
	v.sees(">5 Inbox", "No open questions.")
	v.types("6")
	v.sees(">6 Bus", "message.direct", "hear hear", "Topics")
	v.types("7")
	v.sees(">7 Log", "writer", "| a line of the writer")
	cast[1].Say("another one\n")
	v.sees("another one")
	v.types("f")
	v.sees("frozen")
	cast[1].Say("not to be seen\n")
	v.sees("frozen, 1 more")
	require.NotContains(t, v.Text(), "not to be seen")
	v.types("f")
	v.sees("not to be seen")
	v.types("/another", screen.Enter)
	v.misses("not to be seen")
	v.types("?")
	v.sees("Keys", "task add")
	v.types("x")
	v.leaves("q")
}

// An answer given on the screen reaches the agent that asked.
func TestWatchAnswers(t *testing.T) {
	t.Parallel()
	h, cast := busyStage(t)
	v := watching(h.Orchestrator, 80, 24)
	v.sees("writer")
	login := cast[0].Request("ask-user", `{"question":"Which login?","options":[{"label":"OAuth","value":"oauth"},{"label":"Session","value":"session"}]}`)
	v.sees("Inbox(1)", "? coder asks: Which login?", "a answers")
	v.types("a")
	v.sees(">5 Inbox(1)", "1  oauth: OAuth", "2  session: Session")
	v.types("2")
	v.sees("Answered coder: session.")
	require.Contains(t, string(cast[0].Answer(login).Payload), `"answer":"session"`)
	name := cast[1].Request("ask-user", `{"question":"What is it called?"}`)
	v.sees("writer", "What is it called?")
	v.types("a")
	v.sees("answer writer:")
	v.types("a shop q", screen.Enter)
	v.sees("Answered writer: a shop q.")
	require.Contains(t, string(cast[1].Answer(name).Payload), `"answer":"a shop q"`)
	v.sees("No open questions.")
	v.leaves("q")
}

// A permission shows its subject, and is answered with one key. A denial may have a reason.
func TestWatchPermissions(t *testing.T) {
	t.Parallel()
	h, cast := busyStage(t)
	const choices = `"choices":[{"id":"yes","kind":"allow_once"},{"id":"session","kind":"allow_session"},{"id":"ever","kind":"allow_always"},{"id":"no","kind":"deny"}]`
	ask := func(tool, title, input string) string {
		return cast[0].Request("ask-permission", `{"tool":"`+tool+`","title":"`+title+`","input":`+input+`,"reason":"it is needed",`+choices+`}`)
	}
	v := watching(h.Orchestrator, 100, 30)
	v.sees("writer")
	command := ask("Bash", "Bash: go get x", `{"command":"go get x"}`)
	v.sees("Inbox(1)", "? coder asks: Bash: go get x", "a answers")
	v.types("a")
	v.sees(">5 Inbox(1)", "$ go get x", "reason: it is needed", "a  yes", "s  session", "A  ever", "d  no", "a allow")
	v.types("a")
	v.sees("Answered coder: yes.", "No open questions.")
	require.Contains(t, string(cast[0].Answer(command).Payload), `"choice":"yes"`)
	edit := ask("Edit", "Edit a.go", `{"file_path":"a.go","old_string":"one","new_string":"two"}`)
	v.sees("- one", "+ two")
	v.types("d")
	v.sees("deny, with an optional reason:")
	v.types("Keep a one", screen.Enter)
	v.sees("Answered coder: no.", "No open questions.")
	require.Contains(t, string(cast[0].Answer(edit).Payload), `"choice":"no","message":"Keep a one"`)
	plain := ask("Write", "Write b.go", `{"file_path":"b.go","content":"b"}`)
	v.sees("b.go", "+ b")
	v.types("d")
	v.sees("deny, with an optional reason")
	v.types(screen.Enter)
	v.sees("No open questions.")
	require.NotContains(t, string(cast[0].Answer(plain).Payload), `"message"`)
	for key, want := range map[string]string{"s": "session", "A": "ever"} {
		id := ask("Bash", "Bash: make", `{"command":"make `+want+`"}`)
		v.sees("$ make " + want)
		v.types(key)
		v.sees("No open questions.")
		require.Contains(t, string(cast[0].Answer(id).Payload), `"choice":"`+want+`"`)
	}
	require.NoError(t, v.Resize(50, 15))
	ask("Bash", "Bash: rm x", `{"command":"rm x"}`)
	v.sees("Bash: rm x")
	v.types("s") // its subject is not on the screen
	v.types(screen.Enter)
	v.sees("$ rm x")
	v.types("d", screen.Enter)
	v.sees("No open questions.")
	v.leaves("q")
}

// After a colon, commands of the command line can be typed.
func TestWatchCommands(t *testing.T) {
	t.Parallel()
	h, _ := busyStage(t)
	v := watching(h.Orchestrator, 80, 24)
	v.sees("No tasks yet.")
	v.types(`:task add "Say hello" --capability nobody`, screen.Enter)
	v.sees("created", "No agent fits it yet", "1 pending")
	v.backs("No agent fits it yet")
	v.sees("│>.  ")
	v.types(screen.Tab, "y")
	v.sees("is pending since")
	v.backs("is pending since")
	v.types(":task shwo", screen.Enter)
	v.sees("exit 2", "Did you mean")
	v.backs("Did you mean")
	v.types(":up", screen.Enter)
	v.sees(`"up" needs a terminal`)
	v.types(":logs -f", screen.Enter)
	v.sees(`"logs" does not end with --follow`)
	v.types(screen.Tab, "j", "s")
	v.sees(":agent stop writer")
	v.types(screen.Enter)
	v.sees("writer", "stopped")
	stage.WaitFor(t, "the writer to stop", func() bool { return h.Agent("writer").State == "stopped" })
	v.leaves("q")
}

// The screen keeps its content when the orchestrator ends, and reconnects to a new one.
func TestWatchReconnects(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+"\nagent \"coder\" {\n  command = [\"sh\", \"-c\", \"echo life; exec sleep 600\"]\n}\n")
	s.Up("--json")
	s.WaitForLines(1, "coder")
	v := watching(s, 80, 24)
	v.sees("coder", "| life")
	s.Stop()
	v.sees("reconnecting…", "coder", "no orchestrator is running")
	v.types("2")
	v.sees(">2 Tasks", "reconnecting…")
	s.Up("--json")
	v.misses("reconnecting…")
	s.Ask("task", "add", "After", "--capability", "nobody")
	v.sees("After")
	s.Stop()
	v.sees("reconnecting…")
	v.leaves("q")
}

// Text of agents is escaped and stays inside its pane.
func TestWatchHostile(t *testing.T) {
	t.Parallel()
	h, cast := busyStage(t)
	id := strings.TrimSpace(h.Ask("task", "add", "写手 \x1b[2J\u202e 👩‍👩‍👧 e\u0301", "--capability", "nobody", "-q"))
	v := watching(h.Orchestrator, 80, 24)
	v.sees(">.  "+id[:4], `\u202e`)
	cast[0].Say("\x1b[2J\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202eleft\x00\x08 \tend\n")
	cast[0].Say(strings.Repeat("写", 3000) + "\n")
	v.seesFramed(80, 24, `\x1b[2J`, "写写写")
	v.types("7")
	v.seesFramed(80, 24, `\x1b]0;title\x07`, `\x00\x08`, "end")
	v.types("w")
	v.seesFramed(80, 24, strings.Repeat("写", 37))
	v.leaves("q")
	require.NotContains(t, v.Written(), "\x1b[2J\x1b[31mred")
	require.NotContains(t, v.Written(), "\x1b]0;title")
	require.NotContains(t, v.Written(), "\u202e")
}

// A signal ends watch and the terminal is restored.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	h, _ := busyStage(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.Command(h.Program, "watch", "--state-dir", h.State(), "--timeout", "6s")
	cmd.Dir, cmd.Env = h.Dir, append(h.Environ(), "TERM=xterm")
	terminal, err := screen.Start(cmd, 80, 24)
	require.NoError(t, err)
	_, err = terminal.Until(ctx, screen.Shows("coder"))
	require.NoError(t, err)
	code, err := terminal.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, cli.ExitTimeout, code)
	require.Contains(t, terminal.Written(), "\x1b[?1049l")

	cmd = exec.Command(h.Program, "watch", "--state-dir", h.State())
	cmd.Dir, cmd.Env = h.Dir, append(h.Environ(), "TERM=xterm")
	terminal, err = screen.Start(cmd, 80, 24)
	require.NoError(t, err)
	_, err = terminal.Until(ctx, screen.Shows("coder"))
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	code, err = terminal.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, cli.ExitHungUp, code)
	require.Contains(t, terminal.Written(), "\x1b[?1049l")

	// Killed, it cannot restore the terminal. A shell that is not interactive does not either; the guard does.
	cmd = exec.Command("sh", "-c", h.Program+" watch --state-dir "+h.State()+"; echo over; exec cat")
	cmd.Dir, cmd.Env = h.Dir, append(h.Environ(), "TERM=xterm-256color")
	terminal, err = screen.Start(cmd, 80, 24)
	require.NoError(t, err)
	_, err = terminal.Until(ctx, screen.Shows("coder"))
	require.NoError(t, err)
	killWatch(h.Orchestrator)
	stage.WaitFor(t, "shell", func() bool { return strings.Contains(terminal.Written(), "over") }) // the guard may soon remove it from the screen
	stage.WaitFor(t, "guard", func() bool { return strings.Contains(terminal.Written(), "\x1b[?1049l") })
	stage.WaitFor(t, "mode of the terminal", func() bool { return cooked(t, cmd) })
	require.NoError(t, terminal.Type(screen.CtrlC))
	_, err = terminal.Wait(ctx)
	require.NoError(t, err)

	_, stderr, code := h.Call("watch")
	require.Equal(t, cli.ExitUsage, code)
	require.Contains(t, stderr, "Without a terminal: orchestrator status --watch     or: orchestrator events -f --json")
}

// killWatch kills a watch that has no other flag.
func killWatch(s *stage.Orchestrator) {
	s.T.Helper()
	require.NoError(s.T, exec.Command("pkill", "-KILL", "-f", "^"+s.Program+" watch --state-dir "+s.State()).Run())
}

// cooked reports whether the terminal of a command echoes and reads lines.
func cooked(t *testing.T, cmd *exec.Cmd) bool {
	t.Helper()
	mode, err := exec.Command("stty", "-F", terminalOf(t, cmd.Process.Pid), "-a").Output()
	return err == nil && strings.Contains(string(mode), " echo ") && strings.Contains(string(mode), " icanon ")
}

// An interactive shell that does not set the mode of its terminal, such as dash, gets it from the guard.
func TestWatchKilledInAShell(t *testing.T) {
	t.Parallel()
	h, _ := busyStage(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.Command("sh", "-i")
	cmd.Dir, cmd.Env = h.Dir, append(h.Environ(), "TERM=xterm-256color", "PS1=go on: ", "ENV=")
	terminal, err := screen.Start(cmd, 80, 24)
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, terminal.Type(h.Program+" watch --state-dir "+h.State()+"\r"))
		_, err = terminal.Until(ctx, screen.Shows("coder"))
		require.NoError(t, err)
		before := strings.Count(terminal.Written(), "\x1b[?1049l")
		killWatch(h.Orchestrator)
		stage.WaitFor(t, "guard", func() bool { return strings.Count(terminal.Written(), "\x1b[?1049l") > before })
		stage.WaitFor(t, "mode of the terminal", func() bool { return cooked(t, cmd) })
		require.NoError(t, terminal.Type("echo a''gain\r"))
		_, err = terminal.Until(ctx, screen.Shows("again"))
		require.NoError(t, err)
	}
	require.NoError(t, terminal.Type("exit\r"))
	_, err = terminal.Wait(ctx)
	require.NoError(t, err)
}

// Without an orchestrator, watch fails like every command.
func TestWatchNobody(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop)
	v := watching(s, 80, 24)
	code, err := v.Wait(v.ctx)
	require.NoError(t, err)
	require.Equal(t, cli.ExitNotRunning, code)
	require.Contains(t, v.Text(), "no orchestrator is running")
}

// Ctrl-Z suspends watch, and fg shows the screen again. Without a shell, watch is not suspended.
func TestWatchSleeps(t *testing.T) {
	t.Parallel()
	h, _ := busyStage(t)
	v := watching(h.Orchestrator, 80, 24)
	v.sees("coder")
	v.types(screen.CtrlZ)
	v.sees("No shell to return to.")
	v.leaves("q")

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", `set -m; orchestrator watch --state-dir "$0"; echo asleep; read -r said; fg`, h.State())
	cmd.Dir, cmd.Env = h.Dir, append(h.Environ(), "TERM=xterm")
	terminal, err := screen.Start(cmd, 80, 24)
	require.NoError(t, err)
	behind := &viewer{t: t, ctx: ctx, Terminal: terminal}
	behind.sees("coder", "writer")
	behind.types(screen.CtrlZ)
	behind.sees("asleep")
	behind.types(screen.Enter)
	behind.sees(">1 Overview", "writer")
	behind.leaves("q")
}

// Keys work although the orchestrator no longer answers.
func TestWatchStuck(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop)
	require.NoError(t, os.MkdirAll(s.Path("answers"), 0o700))
	answers := func(name, text string) { s.Write(filepath.Join("answers", name), text) }
	answers("status.json", `{"format_version":"1.0","name":"shop","state":"running","agents":[{"name":"planner","state":"running","pid":41213}],"tasks":{"pending":1}}`)
	answers("query-tasks.json", `{"tasks":[{"id":"91c0aa42-0000-4000-8000-000000000002","name":"API handlers","state":"pending"}]}`)
	answers("list-questions.json", `{"questions":[]}`)
	program, err := exec.LookPath("stand-in")
	require.NoError(t, err)
	s.Start(exec.Command(program, filepath.Join(s.State(), "api.sock"), s.Path("answers")))
	stage.WaitFor(t, "the stand-in", func() bool { _, _, code := s.Call("status"); return code == cli.ExitOK })
	v := watching(s, 80, 24)
	v.sees("planner", "API handlers")
	for _, name := range []string{"status.wait", "query-tasks.wait", "list-questions.wait", "query-agents.wait"} {
		answers(name, "")
	}
	v.sees("reconnecting…", "it does not answer")
	v.types("2")
	v.sees(">2 Tasks", "API handlers")
	v.types(":task ls", screen.Enter)
	v.sees("task ls …   esc cancels")
	v.backs("esc cancels")
	for _, name := range []string{"status.wait", "query-tasks.wait", "list-questions.wait"} {
		require.NoError(t, os.Remove(s.Path(filepath.Join("answers", name))))
	}
	v.misses("reconnecting…")
	answers("status.wait", "")
	v.leaves("q")
}

// terminalOf returns the terminal of a process.
func terminalOf(t *testing.T, pid int) string {
	t.Helper()
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", pid))
	require.NoError(t, err)
	return name
}
