package team

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// A confined agent speaks as itself and works in its folder. It gets neither at the operator, nor at
// another agent, nor at secrets and files that are not its own.
func TestConfinedAgent(t *testing.T) {
	t.Parallel()
	// The file victim is there from the start: beside a hidden file, a later one cannot be read.
	s := stage.New(t, stage.QuickStop+`
secret "model" {
  file = "model.key"
}
agent "victim" {
  command = ["sh", "-c", "echo $$ $ORC_SOCKET >victim; exec cat"]
  env     = { MODEL = secret.model }
}
agent "evil" {
  command = ["sh", "../evil.sh"]
  dir     = "work"
  confine {
    hide    = ["private"]
    network = "none"
  }
  restart {
    policy = "never"
  }
}
`, "victim", "", "model.key", "secret", "private", "secret", "plain", "plain", "evil.sh", `
while [ ! -s ../victim ]; do sleep 0.05; done
read pid socket <../victim
tries() {
  if "$@" >/dev/null 2>&1; then echo "$* done"; else echo "$* refused"; fi
}
tries cat ../plain
tries cat ../model.key
tries cat ../private
tries cat $ORC_STATE_DIR/jwt.key
tries cat $ORC_STATE_DIR/lock
tries cat /proc/$pid/environ
tries cat /proc/$PPID/environ
tries kill -0 $pid
tries kill -0 $PPID
tries cp ../plain ../orchestrator.hcl
tries cp ../plain ../new
tries cp ../plain own
tries mktemp
tries orchestrator --state-dir "$ORC_STATE_DIR" task add stolen
ORC_SOCKET=$socket tries orchestrator task add stolen
tries orchestrator task add mine
echo over
exec cat
`)
	require.NoError(t, os.Mkdir(s.Path("work"), 0o700))
	s.Up("--json")
	stage.WaitFor(t, "the end of the script", func() bool {
		return strings.HasSuffix(strings.Join(s.Lines("evil", control.StreamOut), "\n"), "over")
	})
	pid := s.Agent("victim").PID
	said := strings.Join(s.Lines("evil", control.StreamOut), "\n")
	said = strings.NewReplacer(s.Dir, "DIR", strconv.Itoa(pid), "VICTIM", strconv.Itoa(s.Process.Process.Pid), "UP").Replace(said)
	require.Equal(t, `cat ../plain done
cat ../model.key refused
cat ../private refused
cat DIR/state/jwt.key refused
cat DIR/state/lock refused
cat /proc/VICTIM/environ refused
cat /proc/UP/environ refused
kill -0 VICTIM refused
kill -0 UP refused
cp ../plain ../orchestrator.hcl refused
cp ../plain ../new refused
cp ../plain own done
mktemp done
orchestrator --state-dir DIR/state task add stolen refused
orchestrator task add stolen refused
orchestrator task add mine done
over`, said)
	s.Stop()
	left, err := os.ReadDir(s.Path("state/tmp"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A confined agent gets no hidden file by naming it as an artifact, which the orchestrator reads.
func TestConfinedArtifact(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "a" {
  command = ["sh", "-c", <<-EOT
    while read -r line; do
      case "$line" in
      *notify:task-assigned*)
        task=$(expr "$line" : '.*"taskId":"\([^"]*\)"')
        echo '{"type":"request:complete-task","id":"1","timestamp":"2026-11-21T14:00:00Z","payload":{"taskId":"'"$task"'","result":"done","artifacts":[{"name":"key","path":"inner/key"}]}}' ;;
      *response*) echo "$line" >&2 ;;
      esac
    done
    EOT
  ]
  dir = "work"
  capabilities { names = ["go"] }
  confine {
    hide = ["work/inner"]
  }
}
`)
	require.NoError(t, os.MkdirAll(s.Path("work/inner"), 0o700))
	s.Write("work/inner/key", "the hidden text")
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "a")
	s.Ask("task", "add", "Pages", "--capability", "go")
	stage.WaitFor(t, "a response", func() bool { return len(s.Lines("a", control.StreamErr)) > 0 })
	require.Contains(t, s.Lines("a", control.StreamErr)[0], "a confined agent must be allowed to read all of it")
	require.NotContains(t, s.Ask("task", "ls", "--json"), "the hidden text")
}

// An agent that cannot be confined as in its block does not start, and its end has the reason. It
// runs after a reload with another block.
func TestConfinementIsWrong(t *testing.T) {
	t.Parallel()
	const agent = `
agent "a" {
  command = ["sh", "-c", "echo it runs; exec cat"]
  dir     = "work"
  confine {
    write = ["WRITE"]
  }
}
`
	s := stage.New(t, stage.QuickStop+strings.Replace(agent, "WRITE", "absent", 1))
	require.NoError(t, os.Mkdir(s.Path("work"), 0o700))
	s.Up("--json")
	failed := s.WaitForEvents(1, events.AgentGaveUp, "a")[0]
	require.Equal(t, []string{"orchestrator: this agent was not started: it cannot be confined: allowing " + s.Path("absent") +
		": no such file or directory"}, s.Lines("a", control.StreamErr))
	require.Equal(t, 126, *failed.Figures.ExitCode)
	require.Empty(t, s.Lines("a", control.StreamOut))
	s.Write("orchestrator.hcl", stage.QuickStop+strings.Replace(agent, "WRITE", "work", 1))
	require.Contains(t, s.Ask("reload"), "confine takes effect only at a start")
	s.Ask("agent", "start", "a")
	require.Equal(t, []string{"it runs"}, s.WaitForLines(1, "a"))
}

// onOldKernel runs a command as on a kernel without Landlock: a filter refuses its system calls.
const onOldKernel = `
import ctypes, os, struct, sys
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x50000 | 38), (0x06, 0, 0, 0x7fff0000)]
text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *c) for c in code))
prog = struct.pack("HP", len(code), ctypes.addressof(text))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.c_char_p(prog), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
`

// On a kernel without Landlock, a confined agent is refused at its start. Doctor finds it out
// before, and check --security counts one with best_effort as not confined.
func TestConfinementOnOldKernel(t *testing.T) {
	t.Parallel()
	s := stage.New(t, strings.Replace(stage.QuickStop, "defaults {", "defaults {\n  confine {}", 1)+`
agent "strict" {
  command = ["cat"]
  dir     = "work"
}
agent "lenient" {
  command = ["sh", "-c", "echo it runs; exec cat"]
  dir     = "work"
  confine {
    best_effort = true
  }
}
`)
	require.NoError(t, os.Mkdir(s.Path("work"), 0o700))
	const why = "this kernel has no Landlock, which came with Linux 5.13 (function not implemented)"
	doctor := exec.Command("python3", "-c", onOldKernel, s.Program, "doctor")
	doctor.Dir, doctor.Env = s.Dir, s.Environ()
	text, err := doctor.CombinedOutput()
	require.ErrorContains(t, err, "exit status 1", "%s", text)
	require.Equal(t, 1, strings.Count(string(text), "it cannot be confined: "+why), string(text))

	security := exec.Command("python3", "-c", onOldKernel, s.Program, "check", "--security", "lenient", "strict")
	security.Dir, security.Env = s.Dir, s.Environ()
	text, err = security.Output()
	require.NoError(t, err)
	require.Regexp(t, `(?s)^strict\n.*confinement +no .*lenient\n.*confinement +yes +is not confined: not fully supported on this system`, string(text))

	s.Start(exec.Command("python3", "-c", onOldKernel, s.Program, "up", "--state-dir", s.State(), "--timeout", "3m", "--json"))
	failed := s.WaitForEvents(1, events.AgentGaveUp, "strict")[0]
	require.Contains(t, failed.Text, "it cannot be confined: "+why+"; set best_effort = true in its confine block")
	require.Equal(t, 126, *failed.Figures.ExitCode)
	require.Equal(t, []string{"it runs"}, s.WaitForLines(1, "lenient"))
	require.Equal(t, []string{"orchestrator: this agent is confined only in part, or not at all: " + why}, s.Lines("lenient", control.StreamErr))
	s.Stop()
}
