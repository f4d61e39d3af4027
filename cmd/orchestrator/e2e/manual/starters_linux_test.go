package manual

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/check"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/cmd/orchestrator/laws/source"
	"orchestrator/cmd/orchestrator/project"
)

// The agents that init writes pass check in each language, and do the task that init suggests.
func TestStarters(t *testing.T) {
	t.Parallel()
	for _, lang := range project.Languages {
		t.Run(lang.Name, func(t *testing.T) {
			t.Parallel()
			if !stage.HasRuntime(t, lang.Command[0]) {
				return
			}
			s := stage.New(t, "").Ship()
			require.NoError(t, os.Remove(s.Path("orchestrator.hcl")))
			said := s.Ask("init", "--lang", lang.Name)
			require.Contains(t, said, "Next:  orchestrator up -d\n")
			require.Contains(t, said, `orchestrator task add "Say hello" --wait`)
			require.Contains(t, said, "orchestrator check -- "+strings.Join(lang.Command, " ")+"\n")
			requireCommand(t, s.Path("orchestrator.hcl"), lang.Command)

			report, exit := checkup(s, append([]string{"--as", "worker"}, patient...), lang.Command...)
			require.Equal(t, cli.ExitOK, exit)
			require.Zero(t, report.Failed+report.Warnings+report.Notes, "%+v", report.Findings)
			for _, one := range report.Findings {
				require.Equal(t, check.OK, one.Verdict)
			}

			s.Up("--json")
			s.WaitForEvents(1, "agent.started", "hello")
			require.Contains(t, s.Ask("task", "add", "Say hello", "--wait", "--timeout", "2m"), " done in ")
			s.Stop()
			require.Contains(t, s.Lines("hello", "stdout"), "hello, I am hello")
		})
	}
}

// init reports a runtime that the agent needs and that is missing.
func TestInitWithoutRuntime(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "")
	for _, args := range [][]string{{"--lang", "py", "py"}, {"--lang", "ts", "ts"}} {
		init := exec.Command(s.Program, append([]string{"init"}, args...)...)
		init.Dir, init.Env = s.Dir, []string{"PATH=" + s.Path("empty"), "HOME=" + s.Dir}
		said, err := init.CombinedOutput()
		require.NoError(t, err, "%s", said)
		require.Regexp(t, `(?m)^(python3|node) is not on your PATH but runs this agent\. Install it: https://.* orchestrator init --list$`, string(said))
	}
	list := exec.Command(s.Program, "init", "--list")
	list.Dir, list.Env = s.Dir, []string{"PATH=" + s.Path("empty"), "HOME=" + s.Dir}
	said, err := list.Output()
	require.NoError(t, err)
	require.Contains(t, string(said), "not on your PATH: https://go.dev/dl")
}

// requireCommand checks that a file has the command in the list of languages.
func requireCommand(t *testing.T, file string, command []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var quoted []string
	for _, word := range command {
		quoted = append(quoted, strconv.Quote(word))
	}
	require.Contains(t, string(text), "command = ["+strings.Join(quoted, ", ")+"]\n")
}

// The unit is valid for systemd, if it is installed.
func TestUnit(t *testing.T) {
	t.Parallel()
	s := stage.New(t, `agent "a" { command = ["cat"] }`).Ship()
	text := s.Ask("init", "--systemd")
	for _, line := range []string{
		"Type=notify", "KillMode=mixed", "WatchdogSec=60", "Delegate=yes", "Restart=on-failure", "RestartPreventExitStatus=1 2 6",
		"WorkingDirectory=" + s.Dir,
		"ExecStart=" + s.Program + " --config " + s.Path("orchestrator.hcl") + " --color never up",
		"ExecReload=" + s.Program + " --config " + s.Path("orchestrator.hcl") + " --color never reload",
	} {
		require.Contains(t, text, line+"\n")
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Log("NO systemd HAS LOOKED AT THE UNIT: ", err) // the checks above do not need systemd
		return
	}
	s.Write("shop.service", text)
	verify := exec.Command("systemd-analyze", "verify", "--user", s.Path("shop.service"))
	verify.Env = s.Environ()
	said, err := verify.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Empty(t, string(said))
}

func TestUnitWords(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"/usr/bin/orchestrator": "/usr/bin/orchestrator",
		"/a b/c":                `"/a b/c"`,
		"/100%/$x":              "/100%%/$$x",
		`/say "hi"`:             `"/say \"hi\""`,
	} {
		require.Equal(t, want, project.UnitWord(word))
	}
	require.Equal(t, "my-shop", project.UnitName("my shop"))
	require.Equal(t, "shop", project.UnitName(filepath.Base("/home/ann/shop")))
}

// The memory that packages may allocate before main, a little more than they do now. A client
// command takes a few milliseconds, mostly for regular expressions and tables that it does not
// use. The time depends on the machine; the memory does not. The server of shared stores and its
// client are 350,000 bytes of it; they take 1.5 ms.
const (
	maxOfOurs   = 38_000
	maxOfOthers = 270_000
	maxOfAll    = 1_400_000
)

// initialized is a package in the init trace of the runtime.
type initialized struct {
	name  string
	bytes int
}

var initLine = regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) bytes, \d+ allocs$`)

// TestInitIsSmall checks that package initialization is small. Large values belong into a
// sync.OnceValue.
func TestInitIsSmall(t *testing.T) {
	t.Parallel()
	program, err := stage.Program()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, "version", "--json") // not a plain command
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	var packages []initialized
	all := 0
	for _, found := range initLine.FindAllStringSubmatch(string(text), -1) {
		bytes, err := strconv.Atoi(found[2])
		require.NoError(t, err)
		packages = append(packages, initialized{name: found[1], bytes: bytes})
		all += bytes
	}
	require.Greater(t, len(packages), 50, "the runtime told nothing to judge:\n%s", text)
	slices.SortFunc(packages, func(a, b initialized) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, p := range packages {
		most := maxOfOthers
		if p.name == "main" || strings.HasPrefix(p.name, source.Module+"/") {
			most = maxOfOurs
		}
		if p.bytes > most {
			t.Errorf("%s allocates %d bytes before main, and may %d", p.name, p.bytes, most)
		}
	}
	if all > maxOfAll {
		t.Errorf("all packages allocate %d bytes before main, and may %d; the largest: %s", all, maxOfAll, fmt.Sprint(packages[:8]))
	}
}
