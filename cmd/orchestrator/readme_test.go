package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every block of the README is run, each by the rule of its kind:
//
//   - One with the name of a file above it is that file, in a folder of its
//     own; a configuration must be valid, a Go program is built and is an agent.
//   - A console block is commands, each after a $, and what they print.
//   - Commands on the checkout are known here, one by one.
//   - A diagram is left alone.
//
// What is printed is compared line by line, in any order. Times, ids, process
// numbers and durations are any; … stands for anything, and alone on a line for
// further lines.

const readme = "../../README.md"

// fence is one block of a page.
type fence struct {
	lang  string
	file  string // whose text it is
	lines []string
}

var fileAbove = regexp.MustCompile("^`([\\w.]+)`:$")

// fences takes a page apart.
func fences(t *testing.T, page string) (found []fence) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	var inside *fence
	above := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		lang, marks := strings.CutPrefix(line, "```")
		switch {
		case marks && inside == nil:
			inside = &fence{lang: lang}
			if name := fileAbove.FindStringSubmatch(above); name != nil {
				inside.file = name[1]
			}
		case marks:
			found, inside, above = append(found, *inside), nil, ""
		case inside != nil:
			inside.lines = append(inside.lines, line)
		case line != "":
			above = line
		}
	}
	return found
}

// reader does what a reader of the README would.
type reader struct {
	t       *testing.T
	program string
	dir     string
}

func TestReadme(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	for _, block := range fences(t, readme) {
		switch text := strings.Join(block.lines, "\n"); {
		case block.file != "":
			r.write(block.file, text+"\n")
		case block.lang == "console":
			for _, c := range commandsOf(block.lines) {
				r.run(c)
			}
		case strings.Contains(text, "$ "):
			for _, c := range commandsOf(block.lines) {
				r.runOnCheckout(c)
			}
		default:
			require.Contains(t, text, "─", "no rule runs this block")
		}
	}
}

// newReader has the program at hand, and makes a folder to work in. Its name is
// in what the README shows.
func newReader(t *testing.T) *reader {
	t.Helper()
	program, err := shipped()
	require.NoError(t, err)
	top, err := os.MkdirTemp("", "orc") // a socket needs a short path
	require.NoError(t, err)
	r := &reader{t: t, program: program, dir: filepath.Join(top, "shop")}
	require.NoError(t, os.Mkdir(r.dir, 0o700))
	t.Cleanup(func() {
		down, cancel := context.WithTimeout(context.Background(), time.Minute) // after a failure something may run
		defer cancel()
		_ = r.command(down, r.dir, "orchestrator down").Run()
		require.NoError(t, os.RemoveAll(top))
	})
	return r
}

// command is a line for the shell, with the program at hand.
func (r *reader) command(ctx context.Context, dir, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = dir
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "ORC_") && !strings.HasPrefix(entry, "PATH=") && !strings.HasPrefix(entry, "NOTIFY_SOCKET=") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(r.program)+":"+os.Getenv("PATH"))
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
	case ".go":
		r.buildAgent(path)
		require.NoError(r.t, os.Remove(path))
	case ".sh":
		r.do("sh -n " + file)
	default:
		require.Fail(r.t, "no rule for the file "+file)
	}
}

// do runs a line that must do well, and returns what it printed.
func (r *reader) do(line string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	text, err := r.command(ctx, r.dir, line).CombinedOutput()
	require.NoError(r.t, err, "$ %s\n%s", line, text)
	return string(text)
}

// buildAgent builds a program as if it stood in this module, and has it do a
// task.
func (r *reader) buildAgent(source string) {
	r.t.Helper()
	there, err := filepath.Abs("../../fixtures/ofreadme/main.go")
	require.NoError(r.t, err)
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {there: source}})
	require.NoError(r.t, err)
	plan := filepath.Join(r.dir, "overlay.json")
	require.NoError(r.t, os.WriteFile(plan, overlay, 0o600))
	build := exec.CommandContext(r.t.Context(), "go", "build", "-overlay", plan, "-o", filepath.Join(r.dir, "agent"), "./fixtures/ofreadme")
	build.Dir = "../.."
	text, err := build.CombinedOutput()
	require.NoError(r.t, err, "%s", text)

	require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, "go.hcl"), []byte("agent \"gopher\" {\n  command = [\"./agent\"]\n}\n"), 0o600))
	r.do("orchestrator up -d -c go.hcl")
	id := strings.TrimSpace(r.do(`orchestrator task add "Say hello" -c go.hcl --wait -q`))
	require.Contains(r.t, r.do("orchestrator task show -c go.hcl --json "+id), `"summary":"hello, Say hello"`)
	r.do("orchestrator down -c go.hcl")
}

// typed is a command, and what it prints.
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

// run runs a command and compares what it prints.
func (r *reader) run(c typed) {
	r.t.Helper()
	said := strings.Split(strings.TrimSuffix(r.do(c.line), "\n"), "\n")
	if len(said) == 1 && said[0] == "" {
		said = nil
	}
	missing, extra := compared(c.want, said)
	require.Empty(r.t, missing, "$ %s\nprinted\n%s", c.line, strings.Join(said, "\n"))
	require.Empty(r.t, extra, "$ %s\nprinted\n%s", c.line, strings.Join(said, "\n"))
}

// runOnCheckout runs what a reader runs in the repository.
func (r *reader) runOnCheckout(c typed) {
	r.t.Helper()
	switch c.line {
	case "go build -o orchestrator ./cmd/orchestrator": // shipped has done so
		require.FileExists(r.t, r.program)
	case "go run ./cmd/orchestrator up":
		r.runTeam(c.want)
	case "go test -race ./...": // it runs this
		script, err := os.ReadFile("../../.ci/run")
		require.NoError(r.t, err)
		require.Contains(r.t, string(script), `command=$(sed -n 's/^\$ \(go test .*\)$/\1/p' README.md)`)
		require.Contains(r.t, string(script), "\neval \"$command\"\n")
	default:
		require.Fail(r.t, "no rule for the command "+c.line)
	}
}

// runTeam runs the team of the repository until it has said what it should, and
// presses Ctrl-C. It need not take as long as for people.
func (r *reader) runTeam(want []string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := r.command(ctx, "../..", `exec orchestrator up --state-dir "$STATE"`)
	cmd.Env = append(cmd.Env, "STATE="+filepath.Join(r.dir, "team"), "ORC_VAR_pace=0.1", "ORC_VAR_patience=500ms")
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	require.NoError(r.t, cmd.Start())
	ended := make(chan error, 1)
	go func() { // ends with the team
		err := cmd.Wait()
		_ = in.Close()
		ended <- err
	}()
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said = append(said, lines.Text())
		if missing, _ := compared(want, said); len(missing) == 0 && want != nil {
			require.NoError(r.t, cmd.Process.Signal(os.Interrupt))
			want = nil
		}
	}
	require.NoError(r.t, <-ended, "%s", strings.Join(said, "\n"))
	require.Nil(r.t, want, "the team said\n%s", strings.Join(said, "\n"))
}

// compared matches lines that are wanted with lines that were said: those that
// are missing, and those that nobody wanted.
func compared(want, said []string) (missing, extra []string) {
	left := append([]string(nil), said...)
	more := false
	for _, line := range want {
		if line == "…" {
			more = true
			continue
		}
		form, found := loose(line), false
		for i := range left {
			if form.MatchString(left[i]) {
				left, found = append(left[:i:i], left[i+1:]...), true
				break
			}
		}
		if !found {
			missing = append(missing, line)
		}
	}
	for _, line := range left {
		if !more && !passing.MatchString(line) {
			extra = append(extra, line)
		}
	}
	return missing, extra
}

// passing is what may be seen or not: where a task stands on its way, and what
// is said to those who wait for longer than usual.
var passing = regexp.MustCompile(`^[0-9a-f]{8} (queued|assigned to|running on)|^Waiting for `)

// various is what differs from one time to the next, and its forms.
var (
	various = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z|\d\d:\d\d:\d\d|\b[0-9a-f]{8}\b|\d+\.\d+s|\b\d{4,}\b|…|created, .*| +`)
	forms   = []struct{ of, form *regexp.Regexp }{
		{regexp.MustCompile(`^\d{4}-`), regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`)},
		{regexp.MustCompile(`^\d\d:`), regexp.MustCompile(`\d\d:\d\d:\d\d`)},
		{regexp.MustCompile(`^\d+\.\d+s$`), regexp.MustCompile(`[\d.hms]+`)},
		{regexp.MustCompile(`^[0-9a-f]{8}$`), regexp.MustCompile(`[0-9a-f]{8}`)},
		{regexp.MustCompile(`^\d+$`), regexp.MustCompile(`\d+`)},
		{regexp.MustCompile(`^created`), regexp.MustCompile(`created, .*`)},
		{regexp.MustCompile(`^…$`), regexp.MustCompile(`.*`)},
		{regexp.MustCompile(`^ +$`), regexp.MustCompile(` +`)},
	}
)

// loose is a pattern for a line of the README.
func loose(line string) *regexp.Regexp {
	var b strings.Builder
	at := 0
	for _, found := range various.FindAllStringIndex(line, -1) {
		b.WriteString(regexp.QuoteMeta(line[at:found[0]]))
		at = found[1]
		part := regexp.QuoteMeta(line[found[0]:found[1]])
		for _, f := range forms {
			if f.of.MatchString(line[found[0]:found[1]]) {
				part = f.form.String()
				break
			}
		}
		b.WriteString(part)
	}
	return regexp.MustCompile("^" + b.String() + regexp.QuoteMeta(line[at:]) + "$")
}

func TestLoose(t *testing.T) {
	for want, said := range map[string]string{
		"14:53:41 hello   ok a8f6daff \"x\" done":  "09:00:00 hello ok 00000000 \"x\" done",
		"4a2a6c3f created, running on hello":       "11112222 created, queued",
		"shop is up, pid 5651, 1 agent. See …":     "shop is up, pid 7, 1 agent. See this",
		"  hello  exit 0 (0.0s)":                   "  hello  exit 0 (12.5s)",
		`{"id":…"at":"2026-11-21T14:53:39.954Z"}`:  `{"id":"7","at":"2030-01-01T00:00:00.000Z"}`,
		"4a2a6c3f  Say hello  done   hello - 1.0s": "ffffffff  Say hello  done  hello  -  1m02s",
	} {
		require.Regexp(t, loose(want), said)
		require.NotRegexp(t, loose(want), "x"+said)
	}
	missing, extra := compared([]string{"a", "b"}, []string{"b", "c"})
	require.Equal(t, []string{"a"}, missing)
	require.Equal(t, []string{"c"}, extra)
	_, extra = compared([]string{"a", "…"}, []string{"a", "c"})
	require.Empty(t, extra)
}

// What the README points at is there.
func TestReadmeLinks(t *testing.T) {
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	links := regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(strings.ReplaceAll(string(text), "\n", " "), -1)
	require.Greater(t, len(links), 10)
	for _, link := range links {
		file, anchor, _ := strings.Cut(link[1], "#")
		page, err := filepath.Glob("../../" + file)
		require.NoError(t, err)
		require.Len(t, page, 1, link[1])
		if anchor != "" {
			heading := "(?mi)^#+ " + strings.ReplaceAll(regexp.QuoteMeta(anchor), "-", "[ -]") + "$"
			there, err := os.ReadFile(page[0])
			require.NoError(t, err)
			require.Regexp(t, heading, string(there), link[1])
		}
	}
}

// Every verb, every topic and every package has its place in the README.
func TestReadmeIsComplete(t *testing.T) {
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	for _, verb := range verbNames(testApp().rootCommand()) {
		require.Regexp(t, "(?m)^\\|.*`"+verb+"\\b.*\\|$", string(text), verb)
	}
	require.Contains(t, string(text), "| "+strings.Join(topicNames(), ", ")+" |")
	for _, f := range goFiles(t) {
		folder := f.folder
		if strings.HasPrefix(folder, "fixtures/") {
			folder = "fixtures"
		}
		require.Contains(t, string(text), "| [`"+folder+"`]("+folder+") |")
	}
}

// The agent of the README is the one of the manual.
func TestOneAgentForBoth(t *testing.T) {
	page, err := os.ReadFile("help/agents.md")
	require.NoError(t, err)
	agent := fences(t, readme)[0]
	require.Equal(t, "agent.sh", agent.file)
	require.Len(t, agent.lines, 5, "five lines of shell")
	require.Contains(t, string(page), "\n```\n"+strings.Join(agent.lines, "\n")+"\n```\n")
}

// What can be refused is explained to people: every code and every reason.
func TestEveryRefusalIsExplained(t *testing.T) {
	page, err := topics.ReadFile("help/troubleshooting.md")
	require.NoError(t, err)
	for _, c := range wireCodes(t) {
		code, _ := heardCode(t, c.code)
		require.Contains(t, string(page), "\n| `"+code+"` | ")
	}
	for _, reason := range reasonsOfTheCode(t) {
		require.Contains(t, string(page), "\n| `"+reason+"` | ")
	}
}
