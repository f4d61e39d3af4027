package screens

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/cmd/orchestrator/first/form"
)

// printed is the output of a command and its exit code.
type printed struct {
	stdout, stderr string
	code           int
	passed         bool // to the running orchestrator
}

// aside keeps a command in its own process.
const aside = "ORC_VAR_aside=1"

// initialized are the lines of GODEBUG=inittrace=1.
var initialized = regexp.MustCompile(`(?m)^init .*\n`)

// command runs a command in a folder.
func command(t *testing.T, s *stage.Orchestrator, dir string, env []string, stdin io.Reader, stdout io.Writer, args ...string) printed {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stage.Patience)
	defer cancel()
	var out, err bytes.Buffer
	if stdout == nil {
		stdout = &out
	}
	cmd := exec.CommandContext(ctx, s.Program, args...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, stdin, stdout, &err
	cmd.Env = append(append(s.Environ(), "GODEBUG=inittrace=1"), env...)
	if failed := cmd.Run(); failed != nil {
		_, ended := errors.AsType[*exec.ExitError](failed)
		require.True(t, ended, "%v", failed)
	}
	return printed{
		stdout: out.String(), stderr: initialized.ReplaceAllString(err.String(), ""), code: cmd.ProcessState.ExitCode(),
		passed: !strings.Contains(err.String(), "init net/http "),
	}
}

// plainTeam starts a team in the state directory that its file selects.
func plainTeam(t *testing.T) *stage.Orchestrator {
	t.Helper()
	s := stage.New(t, stage.QuickStop+`
		agent "cat" {
		  command = ["sh", "-c", "cat >/dev/null"]
		}`)
	s.Start(exec.Command(s.Program, "up", "--timeout", "6m"))
	stage.WaitFor(t, "a running agent", func() bool {
		return strings.Contains(command(t, s, s.Dir, nil, nil, nil, "status").stdout, "running")
	})
	return s
}

var (
	anyID     = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){0,3}(-[0-9a-f]{12})?\b`)
	anyNumber = regexp.MustCompile(`[0-9]+(\.[0-9]+)?(ms|m[0-9]+s|[smhdBkKMG])?`)
	anyColor  = regexp.MustCompile("\x1b\\[[0-9;]*m")
	anySpace  = regexp.MustCompile(`[ -]+`)
)

// alike returns a text without ids, numbers, and the widths of columns.
func alike(text string) string {
	text = anyColor.ReplaceAllString(text, " color ")
	text = anyNumber.ReplaceAllString(anyID.ReplaceAllString(text, "ID"), "N")
	return anySpace.ReplaceAllString(text, " ")
}

// TestPlainCommands checks that each plain command is passed to the running orchestrator, and that it prints the same
// with the same exit code as in its own process.
func TestPlainCommands(t *testing.T) {
	s := plainTeam(t)
	task := func() string {
		p := command(t, s, s.Dir, nil, nil, nil, "task", "add", "Say hello", "--role", "planner", "-q")
		require.Zero(t, p.code, p.stderr)
		return strings.TrimSpace(p.stdout)
	}
	given := map[string]func() []string{
		"events": func() []string { return []string{"-n", "2"} }, "why": func() []string { return []string{task()} },
		"agent show": func() []string { return []string{"cat"} }, "bus status": func() []string { return []string{"1"} }, "inbox show": func() []string { return []string{"q9"} },
		"inbox answer": func() []string { return []string{"q9", "left"} }, "review show": func() []string { return []string{"review-1"} },
		"session show": func() []string { return []string{"checkout"} }, "task add": func() []string { return []string{"Say hello", "--role", "planner"} },
		"task assign": func() []string { return []string{task(), "cat"} }, "task note": func() []string { return []string{task(), "hi"} },
		"task update": func() []string { return []string{task(), "--priority", "high"} }, "task plan": func() []string { return []string{task(), "first this"} },
		"task done": func() []string { return []string{task(), "--result", `"ok"`} }, "task fail": func() []string { return []string{task(), "no"} },
		"task input": func() []string { return []string{task(), "left"} },
	}
	for _, name := range []string{
		"task show", "task match", "task deps", "task approve-plan", "task revise-plan", "task start", "task retry",
		"task notes", "task diff", "task response", "workspace show",
	} {
		given[name] = func() []string { return []string{task()} }
	}
	for _, name := range form.Plain {
		t.Run(name, func(t *testing.T) {
			args := func(more ...string) []string {
				all := strings.Fields(name)
				if of := given[name]; of != nil {
					all = append(all, of()...)
				}
				return append(all, more...)
			}
			for _, more := range [][]string{nil, {"--json"}, {"-q"}, {"-v"}, {"--no-such-flag"}, {"--color=always"}} {
				own := command(t, s, s.Dir, []string{aside}, nil, nil, args(more...)...)
				other := command(t, s, s.Dir, nil, nil, nil, args(more...)...)
				require.False(t, own.passed)
				require.True(t, other.passed, "%s %s: %s", name, more, other.stderr)
				require.Equal(t, alike(own.stdout), alike(other.stdout), "%s %s", name, more)
				require.Equal(t, alike(own.stderr), alike(other.stderr), "%s %s", name, more)
				require.Equal(t, own.code, other.code, "%s %s: %s", name, more, other.stderr)
			}
		})
	}
	t.Run("from below", func(t *testing.T) {
		require.NoError(t, os.MkdirAll(s.Path("repo/.git"), 0o755)) // a file above is not searched, but the only team is found
		require.NoError(t, os.MkdirAll(s.Path("below"), 0o755))
		for _, dir := range []string{"below", "repo"} {
			own, other := command(t, s, s.Path(dir), []string{aside}, nil, nil, "ps", "-q"), command(t, s, s.Path(dir), nil, nil, nil, "ps", "-q")
			require.Equal(t, dir == "below", other.passed)
			require.Equal(t, "cat\n", other.stdout)
			require.Equal(t, own.stderr, other.stderr, "both name the file")
		}
	})
	t.Run("audit", func(t *testing.T) {
		require.True(t, command(t, s, s.Dir, nil, nil, nil, "workspace", "ls").passed)
		var lines []string
		stage.WaitFor(t, "the line", func() bool {
			files, err := filepath.Glob(s.Path(".orchestrator/audit/*.jsonl"))
			require.NoError(t, err)
			lines = nil
			for _, file := range files {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				require.NotContains(t, string(text), `"command"`, "only the requests of commands")
				lines = append(lines, regexp.MustCompile(`.*"request:list-workspaces".*`).FindAllString(string(text), -1)...)
			}
			return len(lines) > 0
		})
		require.Contains(t, lines[0], `"pid":`)
	})
	s.Signal(syscall.SIGTERM)
	require.Zero(t, s.Await())
}

// TestPlainOnTerminal checks that a command that is passed on looks the same on a terminal.
func TestPlainOnTerminal(t *testing.T) {
	s := plainTeam(t)
	require.Zero(t, command(t, s, s.Dir, nil, nil, nil, "task", "add", strings.Repeat("A long title ", 12)).code)
	shown := func(env string, args ...string) string {
		cmd := exec.Command(s.Program, args...)
		cmd.Dir, cmd.Env = s.Dir, append(s.Environ(), "TERM=xterm", env)
		terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 60})
		require.NoError(t, err)
		defer terminal.Close()
		text, _ := io.ReadAll(terminal) // a closed terminal gives an error
		_ = cmd.Wait()
		return alike(string(text))
	}
	for _, args := range [][]string{{"status"}, {"task", "ls"}, {"events", "-n", "3"}, {"why", "nobody"}, {"inbox"}} {
		own, other := shown(aside, args...), shown("A=1", args...)
		require.Equal(t, own, other, args)
		require.Equal(t, args[0] != "inbox", strings.Contains(other, "color"), "colors of %s", args)
	}
}

// TestPlainStaysHere checks that a command stays in its own process if the orchestrator nearby may be the wrong one,
// or if the command needs something of its caller.
func TestPlainStaysHere(t *testing.T) {
	s := plainTeam(t)
	s.Write("text", "from a file")
	text, err := os.ReadFile(s.Program)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(s.Path("bin"), 0o755))
	require.NoError(t, os.WriteFile(s.Path("bin/orchestrator"), text, 0o755)) // by its name it is the program
	for name, test := range map[string]struct {
		program string
		env     []string
		stdin   string
		args    []string
		want    string
	}{
		"configuration":        {args: []string{"ps", "-q", "-c", "orchestrator.hcl"}, want: "cat\n"},
		"equals sign":          {args: []string{"ps", "-q", "--config=orchestrator.hcl"}, want: "cat\n"},
		"letters":              {args: []string{"ps", "-qc", "orchestrator.hcl"}, want: "cat\n"},
		"shortened":            {args: []string{"ps", "-q", "--timeout", "5s"}, want: "cat\n"},
		"time zone":            {env: []string{"TZ=Asia/Tokyo"}, args: []string{"ps", "-q"}, want: "cat\n"},
		"another program":      {program: s.Path("bin/orchestrator"), args: []string{"ps", "-q"}, want: "cat\n"},
		"variable":             {env: []string{"ORC_CONFIG=orchestrator.hcl"}, args: []string{"ps", "-q"}, want: "cat\n"},
		"stdin":                {stdin: "typed", args: []string{"task", "add", "x", "--spec", "-", "-q"}},
		"file":                 {args: []string{"task", "add", "x", "--spec", "@text", "-q"}},
		"file behind a letter": {args: []string{"task", "add", "x", "--spec=@text", "-q"}},
		"help":                 {args: []string{"ps", "--help"}},
		"wait":                 {args: []string{"logs", "-f", "--host", "/none"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := *s
			if test.program != "" {
				c.Program = test.program
			}
			p := command(t, &c, s.Dir, test.env, strings.NewReader(test.stdin), nil, test.args...)
			require.False(t, p.passed)
			own := command(t, &c, s.Dir, append(test.env, aside), strings.NewReader(test.stdin), nil, test.args...)
			require.Equal(t, alike(own.stdout), alike(p.stdout))
			require.Equal(t, own.stderr, p.stderr)
			require.Equal(t, own.code, p.code)
			require.Contains(t, p.stdout, test.want)
		})
	}
	t.Run("state_dir", func(t *testing.T) { // it may depend on the caller's environment
		s.Write("orchestrator.hcl", s.Read("orchestrator.hcl")+"# state_dir\n")
		p := command(t, s, s.Dir, nil, nil, nil, "ps", "-q")
		require.False(t, p.passed)
		require.Equal(t, "cat\n", p.stdout)
	})
	t.Run("question", func(t *testing.T) { // task cancel asks for a confirmation, which needs the caller's terminal
		args := []string{"task", "cancel"}
		for range 2 {
			p := command(t, s, s.Dir, nil, nil, nil, "task", "add", "x", "--role", "planner", "-q")
			require.Zero(t, p.code, p.stderr)
			args = append(args, strings.TrimSpace(p.stdout))
		}
		cmd := exec.Command(s.Program, args...)
		cmd.Dir, cmd.Env = s.Dir, append(s.Environ(), "TERM=xterm")
		terminal, err := pty.Start(cmd)
		require.NoError(t, err)
		defer terminal.Close()
		_, err = io.WriteString(terminal, "n\n")
		require.NoError(t, err)
		text, _ := io.ReadAll(terminal) // a closed terminal gives an error
		require.Contains(t, string(text), "Cancel 2 tasks? [y/N]")
		require.Contains(t, string(text), "cancelled: nothing was changed")
		_ = cmd.Wait()
	})
}

// TestPlainUnanswered checks that a command that was passed on says so if it gets no whole answer, and does not run
// again.
func TestPlainUnanswered(t *testing.T) {
	s := stage.New(t, `agent "cat" { command = ["cat"] }`)
	require.NoError(t, os.Mkdir(s.Path(".orchestrator"), 0o700))
	listener, err := net.Listen("unix", s.Path(".orchestrator/api.sock"))
	require.NoError(t, err)
	defer listener.Close()
	head := "HTTP/1.0 200 OK\r\n\r\n"
	for name, test := range map[string]struct {
		answer   string
		requests []string // the passed command, then the requests of its own process
		stderr   string
	}{
		"whole":          {head + "o3 hi\nx1 7", []string{"command"}, ""},
		"no end":         {head + "o3 hi\n", []string{"command"}, "It ended before it answered."},
		"half a frame":   {head + "o30 hi\n", []string{"command"}, "It ended before it answered."},
		"wrong end":      {head + "o3 hi\nx2 no", []string{"command"}, "It ended before it answered."},
		"no answer":      {"", []string{"command", "operations/status"}, "It ended before it answered."},
		"refused":        {"HTTP/1.0 409 Conflict\r\n\r\n", []string{"command", "operations/status"}, "It ended before it answered."},
		"left to itself": {head + "d0 ", []string{"command", "operations/status"}, "It ended before it answered."},
	} {
		t.Run(name, func(t *testing.T) {
			requests := make(chan []string)
			go func() { // ends with the deadline below
				var all []string
				for {
					conn, err := listener.Accept()
					if err != nil {
						requests <- all
						return
					}
					request, _ := bufio.NewReader(conn).ReadString('\n')
					if path, ok := strings.CutPrefix(request, "POST /api/v1/"); ok {
						all = append(all, strings.Fields(path)[0])
					}
					if strings.HasPrefix(request, "POST "+form.Path) {
						_, _ = io.WriteString(conn, test.answer)
					}
					_ = conn.Close()
				}
			}()
			p := command(t, s, s.Dir, nil, nil, nil, "ps")
			require.NoError(t, listener.(*net.UnixListener).SetDeadline(time.Now()))
			require.Equal(t, test.requests, <-requests, p.stderr)
			require.NoError(t, listener.(*net.UnixListener).SetDeadline(time.Time{}))
			require.Contains(t, p.stderr, test.stderr)
			if test.stderr == "" {
				require.Equal(t, printed{stdout: "hi\n", code: 7, passed: true}, p)
			}
		})
	}
}

// TestPlainOfStranger checks that an agent that puts its own socket into its folder cannot control the terminal of a
// person who asks there for the status.
func TestPlainOfStranger(t *testing.T) {
	s := stage.New(t, `agent "cat" { command = ["cat"] }`)
	require.NoError(t, os.Mkdir(s.Path(".orchestrator"), 0o700))
	listener, err := net.Listen("unix", s.Path(".orchestrator/api.sock"))
	require.NoError(t, err)
	defer listener.Close()
	go func() { // ends with its connection
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = bufio.NewReader(conn).ReadString('\n')
		_, _ = io.WriteString(conn, "HTTP/1.0 200 OK\r\n\r\no28 \x1b]52;c;aGk=\x07\x1b[31mred\x1b[0m\x1b[2Jx1 0")
		_ = conn.Close()
	}()
	cmd := exec.Command(s.Program, "status")
	cmd.Dir, cmd.Env = s.Dir, append(s.Environ(), "TERM=xterm")
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 80})
	require.NoError(t, err)
	defer terminal.Close()
	text, _ := io.ReadAll(terminal) // a closed terminal gives an error
	_ = cmd.Wait()
	require.Equal(t, `\x1b]52;c;aGk=\x07`+"\x1b[31mred\x1b[0m"+`\x1b[2J`, string(text))
}

// TestPlainOnFullDisk checks that an answer that cannot be written is reported as by the command itself.
func TestPlainOnFullDisk(t *testing.T) {
	s := plainTeam(t)
	for _, args := range [][]string{{"version"}, {"status"}} {
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		require.NoError(t, err)
		own, other := command(t, s, s.Dir, []string{aside}, nil, full, args...), command(t, s, s.Dir, nil, nil, full, args...)
		require.NoError(t, full.Close())
		require.Contains(t, other.stderr, "no space left on device")
		require.Equal(t, own.stderr, other.stderr)
		require.Equal(t, own.code, other.code)
	}
}

// TestPlainWaits checks that a command shows that a stopped orchestrator does not answer.
func TestPlainWaits(t *testing.T) {
	s := plainTeam(t)
	s.Signal(syscall.SIGSTOP)
	cmd := exec.Command(s.Program, "status")
	cmd.Dir, cmd.Env = s.Dir, s.Environ()
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	awaitIn(t, bufio.NewReader(stderr))("Waiting for the orchestrator to answer, 1s")
	s.Signal(syscall.SIGCONT)
	require.NoError(t, cmd.Wait())
}

// TestFirstIsEarly checks that nothing of weight is initialized before a plain command runs: neither our own packages,
// nor the libraries of up. See package first for what it may import.
func TestFirstIsEarly(t *testing.T) {
	s := plainTeam(t).Ship()
	for _, args := range [][]string{{"version"}} {
		cmd := exec.Command(s.Program, args...)
		cmd.Dir, cmd.Env = s.Dir, append(s.Environ(), "GODEBUG=inittrace=1")
		trace, err := cmd.CombinedOutput()
		require.NoError(t, err)
		lines := initialized.FindAllString(string(trace), -1)
		require.NotEmpty(t, lines)
		allocated := 0
		for _, line := range lines {
			require.NotContains(t, line, "init orchestrator/")
			var bytes int
			_, err := fmt.Sscan(regexp.MustCompile(`([0-9]+) bytes`).FindStringSubmatch(line)[1], &bytes)
			require.NoError(t, err)
			allocated += bytes
		}
		require.Less(t, allocated, 64<<10, "%s", trace)
		require.Less(t, len(lines), 40, "%s", trace)
	}
}

// TestPlainOfAgents checks that the orchestrator runs no commands for an agent, not even for one that may operate: such
// a command would have the orchestrator's rights to files. The agent's own process runs it.
func TestPlainOfAgents(t *testing.T) {
	s := stage.New(t, stage.QuickStop+`
		agent "boss" {
		  command  = ["sh", "ask.sh"]
		  operator = true
		}
		agent "worker" {
		  command = ["sh", "ask.sh"]
		}`, "ask.sh", `
		unset ORC_SOCKET ORC_CONFIG ORC_AGENT_ID ORC_TOKEN ORC_RUN_ID ORC_HOST
		for name in $(env | sed -n 's/^\(ORC_[A-Z_]*\)=.*/\1/p'); do unset $name; done
		GODEBUG=inittrace=1 orchestrator ps -q >"$0.$$.out" 2>"$0.$$.err"
		mv "$0.$$.err" "done.$$"
		cat >/dev/null`)
	s.Start(exec.Command(s.Program, "up", "--timeout", "6m"))
	var found []string
	stage.WaitFor(t, "two answers", func() bool {
		found, _ = filepath.Glob(s.Path("done.*"))
		return len(found) == 2
	})
	allowed := 0
	for _, file := range found {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(text), "init net/http ", "the agent's own process has run it")
		if out := s.Read("ask.sh" + strings.TrimPrefix(filepath.Base(file), "done") + ".out"); out == "boss\nworker\n" {
			allowed++
		}
	}
	require.Equal(t, 1, allowed, "the one that may operate")
}
