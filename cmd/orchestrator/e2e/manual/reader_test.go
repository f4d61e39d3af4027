package manual

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/app"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/cmd/orchestrator/laws/source"
)

// Every block of the README and of the quickstart is run, by its kind:
//
//   - A block with a file name above it is written to that file in a separate folder. A
//     configuration must be valid. A program in Go, Python or TypeScript must do a task as an
//     agent.
//   - A console block has commands after a $, and their output.
//   - A shell-session needs coding agents. Its commands must exist; fixtures/real plays them.
//   - Commands on the checkout are listed here, one by one.
//   - A diagram is skipped.
//
// Output is compared line by line, in any order. Times, ids, process ids and durations match any
// value. An … matches any text, and any lines if it is alone on a line. A command that changes
// nothing is repeated until its output matches.

// A reader runs the commands of the README as a reader would.
type reader struct {
	t       *testing.T
	program string
	dir     string
}

// reads runs all blocks of a page.
func (r *reader) reads(page string) {
	r.t.Helper()
	for _, block := range source.Fences(r.t, page) {
		switch text := strings.Join(block.Lines, "\n"); {
		case block.File != "":
			r.write(block.File, text+"\n")
		case block.Lang == "console":
			for _, c := range commandsOf(block.Lines) {
				r.run(c)
			}
		case block.Lang == "shell-session":
			for _, c := range commandsOf(block.Lines) {
				r.parse(c)
			}
		case strings.Contains(text, "$ "):
			for _, c := range commandsOf(block.Lines) {
				r.runOnCheckout(c)
			}
		default:
			require.Contains(r.t, text, "─", "no rule runs this block")
		}
	}
}

// newReader builds the program and makes a work folder with the name that the README shows.
func newReader(t *testing.T) *reader {
	t.Helper()
	program, err := stage.Program()
	require.NoError(t, err)
	top, err := os.MkdirTemp("", "orc") // a socket needs a short path
	require.NoError(t, err)
	r := &reader{t: t, program: program, dir: filepath.Join(top, "shop")}
	require.NoError(t, os.Mkdir(r.dir, 0o700))
	t.Cleanup(func() {
		down, cancel := context.WithTimeout(context.Background(), time.Minute) // further commands may run after a failure
		defer cancel()
		_ = r.command(down, r.dir, "orchestrator down").Run()
		require.NoError(t, os.RemoveAll(top))
	})
	return r
}

// command returns a command that runs a shell line with the program in its PATH.
func (r *reader) command(ctx context.Context, dir, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = dir
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "ORC_") && !strings.HasPrefix(entry, "PATH=") && !strings.HasPrefix(entry, "NOTIFY_SOCKET=") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(r.program)+":"+os.Getenv("PATH"), "XDG_STATE_HOME="+r.dir)
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

func (r *reader) write(file, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, file)
	require.NoError(r.t, os.WriteFile(path, []byte(text), 0o600))
	switch filepath.Ext(file) {
	case ".hcl":
		r.do("orchestrator validate -q")
	case ".go", ".py", ".ts", ".mjs":
		r.agent(path)
		require.NoError(r.t, os.Remove(path))
	case ".sh":
		r.do("sh -n " + file)
	default:
		require.Fail(r.t, "no rule for the file "+file)
	}
}

// do runs a command that must succeed, and returns its output.
func (r *reader) do(line string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	text, err := r.command(ctx, r.dir, line).CombinedOutput()
	require.NoError(r.t, err, "$ %s\n%s", line, text)
	return noted.ReplaceAllString(string(text), "")
}

// noted is the note of up about a new file. On a terminal it asks instead, as in the pages.
var noted = regexp.MustCompile(`(?m)^Running \d+ new commands? of .*\n`)

// typed is a command and its expected output.
type typed struct {
	line string
	want []string
}

func commandsOf(lines []string) (found []typed) {
	for _, line := range lines {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			found = append(found, typed{line: command})
		} else if len(found) > 0 {
			last := &found[len(found)-1]
			last.want = append(last.want, line)
		}
	}
	return found
}

// looking matches commands that change nothing. They are repeated, since their output may come
// late.
var looking = regexp.MustCompile(`^orchestrator (status|why|logs|events|inbox$|task (ls|show) )`)

// run runs a command and compares its output.
func (r *reader) run(c typed) {
	r.t.Helper()
	patience, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	for {
		said := strings.Split(strings.TrimSuffix(r.do(c.line), "\n"), "\n")
		if len(said) == 1 && said[0] == "" {
			said = nil
		}
		missing, extra := compared(c.want, said)
		if len(missing)+len(extra) == 0 {
			return
		}
		if !looking.MatchString(c.line) || patience.Err() != nil {
			require.Empty(r.t, missing, "$ %s\nprinted\n%s", c.line, strings.Join(said, "\n"))
			require.Empty(r.t, extra, "$ %s\nprinted\n%s", c.line, strings.Join(said, "\n"))
		}
	}
}

// parse checks that a command of the program exists, with its flags and arguments.
func (r *reader) parse(c typed) {
	r.t.Helper()
	line, ours := strings.CutPrefix(c.line, "orchestrator ")
	if !ours {
		require.Regexp(r.t, `^(kill -9 \d+|git (add|commit|worktree) .*)$`, c.line)
		return
	}
	words := strings.Split(strings.TrimSuffix(r.do("printf '%s\\n' "+line), "\n"), "\n")
	verb, rest, err := app.Root(testApp()).Find(words)
	require.NoError(r.t, err, c.line)
	require.NoError(r.t, verb.ParseFlags(rest), c.line)
	require.NoError(r.t, verb.ValidateArgs(verb.Flags().Args()), c.line)
}

// runOnCheckout runs the commands that a reader runs in the repository.
func (r *reader) runOnCheckout(c typed) {
	r.t.Helper()
	switch c.line {
	case "go build -o orchestrator ./cmd/orchestrator": // shipped has done so
		require.FileExists(r.t, r.program)
	case "CGO_ENABLED=0 go install ./cmd/orchestrator":
		install := exec.CommandContext(r.t.Context(), "sh", "-c", c.line)
		install.Dir, install.Env = "../../../..", append(os.Environ(), "GOBIN="+filepath.Join(r.dir, "bin"))
		text, err := install.CombinedOutput()
		require.NoError(r.t, err, "%s", text)
		require.FileExists(r.t, filepath.Join(r.dir, "bin", "orchestrator"))
	case "orchestrator up --exit-when-idle":
		r.runTeam(c.want)
	case "go test -timeout 60m ./...": // this test is a part of it
		script, err := os.ReadFile("../../../../.ci/run")
		require.NoError(r.t, err)
		require.Contains(r.t, string(script), `command=$(sed -n 's/^\$ \(go test .*\)$/\1/p' README.md)`)
		require.Contains(r.t, string(script), "eval \"$command\"\n")
	default:
		require.Fail(r.t, "no rule for the command "+c.line)
	}
}

// runTeam runs the team of the repository to its good end.
func (r *reader) runTeam(want []string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 3*time.Minute)
	defer cancel()
	cmd := r.command(ctx, "../../../..", `exec orchestrator up --exit-when-idle --state-dir "$STATE"`)
	cmd.Env = append(cmd.Env, "STATE="+filepath.Join(r.dir, "team"), "ORC_VAR_pace=0.1", "ORC_VAR_patience=500ms")
	text, err := cmd.CombinedOutput()
	require.NoError(r.t, err, "%s", text)
	missing, _ := compared(want, strings.Split(string(text), "\n"))
	require.Empty(r.t, missing, "the team said\n%s", text)
}

// agent runs a program as an agent with the SDK for its language.
func (r *reader) agent(source string) {
	r.t.Helper()
	switch filepath.Ext(source) {
	case ".go":
		r.works(r.built(source))
	case ".py":
		if stage.HasRuntime(r.t, "python3") {
			sdk, err := filepath.Abs("../../../../agents/python")
			require.NoError(r.t, err)
			r.works("env", "PYTHONPATH="+sdk, "python3", source)
		}
	case ".ts", ".mjs":
		if stage.HasRuntime(r.t, "node") {
			r.works("node", r.bundled(source))
		}
	}
}

// works runs an agent, gives it a task, and checks the result.
func (r *reader) works(command ...string) {
	r.t.Helper()
	words, err := json.Marshal(command)
	require.NoError(r.t, err)
	hcl := fmt.Sprintf("orchestrator {\n  state_dir = \".one\"\n}\nagent \"one\" {\n  command = %s\n}\n", words)
	require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, "one.hcl"), []byte(hcl), 0o600))
	r.do("orchestrator up -d -c one.hcl")
	id := strings.TrimSpace(r.do(`orchestrator task add "Say hello" -c one.hcl --wait -q`))
	require.Contains(r.t, r.do("orchestrator task show -c one.hcl --json "+id), `"summary":"hello, Say hello"`)
	r.do("orchestrator down -c one.hcl")
}

// built compiles a Go program as if its source were in this module.
func (r *reader) built(source string) string {
	r.t.Helper()
	there, err := filepath.Abs("../../../../fixtures/ofreadme/main.go")
	require.NoError(r.t, err)
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {there: source}})
	require.NoError(r.t, err)
	plan, program := filepath.Join(r.dir, "overlay.json"), filepath.Join(r.dir, "agent")
	require.NoError(r.t, os.WriteFile(plan, overlay, 0o600))
	build := exec.CommandContext(r.t.Context(), "go", "build", "-overlay", plan, "-o", program, "./fixtures/ofreadme")
	build.Dir = "../../../.."
	text, err := build.CombinedOutput()
	require.NoError(r.t, err, "%s", text)
	return program
}

// bundled compiles a TypeScript program and the SDK to JavaScript.
func (r *reader) bundled(source string) string {
	r.t.Helper()
	sdk, err := filepath.Abs("../../../../agents/typescript/src/index.ts")
	require.NoError(r.t, err)
	program := filepath.Join(r.dir, "bundle.mjs")
	built := api.Build(api.BuildOptions{
		EntryPoints: []string{source}, Outfile: program, Write: true, Bundle: true,
		Alias:    map[string]string{"@orchestrator/agent": sdk},
		Format:   api.FormatESModule,
		Platform: api.PlatformNode,
		Target:   api.ES2022,
	})
	require.Empty(r.t, built.Errors)
	require.Empty(r.t, built.Warnings)
	return program
}
