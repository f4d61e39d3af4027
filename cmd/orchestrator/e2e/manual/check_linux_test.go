package manual

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/check"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/cmd/orchestrator/project"
)

// patient gives long limits to checks of programs that are expected to succeed.
var patient = []string{"--wait", "2m", "--grace", "2m"}

// checkup runs check and returns its report.
func checkup(s *stage.Orchestrator, flags []string, command ...string) (report check.Report, exit int) {
	s.T.Helper()
	args := append([]string{"-u", "PYTHONUNBUFFERED", s.Program, "check", "--json"}, flags...)
	s.Start(exec.Command("env", append(append(args, "--"), command...)...))
	select {
	case <-s.Ended:
	case <-time.After(5 * time.Minute):
		require.Fail(s.T, "the check does not end")
	}
	require.Empty(s.T, s.Stderr.All())
	require.NoError(s.T, json.Unmarshal([]byte(s.Stdout.All()), &report), "%s", s.Stdout.All())
	require.Empty(s.T, s.Processes(), "left running")
	return report, s.Process.ProcessState.ExitCode()
}

// faults returns the failures and warnings among findings, as "VERDICT CHECK".
func faults(found check.Findings) []string {
	list := []string{}
	for _, one := range found {
		if one.Verdict == check.Fail || one.Verdict == check.Warn {
			list = append(list, string(one.Verdict)+" "+one.Check)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// worker returns a Python agent with code inserted in five places: at the start, before and
// after it completes its task, for other messages, and at the end of stdin.
func worker(begin, before, after, other, end string) string {
	return strings.NewReplacer("BEGIN", begin, "BEFORE", before, "AFTER", after, "OTHER", other, "END", end).Replace(`
import json, os, sys, time
def raw(data): sys.stdout.buffer.write(data); sys.stdout.buffer.flush()
def say(kind, id, payload, **more):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    raw(json.dumps({"type": kind, "id": id, "timestamp": now, "payload": payload, **more}).encode() + b"\n")
first = True
BEGIN
for line in sys.stdin:
    m = json.loads(line)
    if m["type"] != "notify:task-assigned":
        OTHER
        continue
    task = m["payload"]["taskId"]
    BEFORE
    say("request:complete-task", "done " + task, {"taskId": task})
    AFTER
    first = False
END
`)
}

// bad is an agent with one fault, and the findings of check about it.
type bad struct {
	name    string
	program string // in Python, unless it begins with #!
	flags   []string
	faults  []string
	text    string // expected in one of the findings
	cure    string
}

var badAgents = []bad{
	{
		name:    "buffers its output",
		program: "import json, sys\nfor line in sys.stdin:\n    m = json.loads(line)\n    if m['type'] == 'notify:task-assigned':\n        print('at work')\n        print(json.dumps({'type': 'request:complete-task', 'id': '1', 'timestamp': m['timestamp'], 'payload': {'taskId': m['payload']['taskId']}}))\n",
		flags:   []string{"--wait", "1s", "--grace", "2m"},
		faults:  []string{"fail buffering"}, text: "arrived all at once, after the end of stdin", cure: "PYTHONUNBUFFERED=1",
	},
	{
		name:    "says nothing and does nothing",
		program: "#!\ncat >/dev/null",
		flags:   []string{"--wait", "1s", "--grace", "2m", "--as", "planner"},
		faults:  []string{"fail task", "warn prints"}, text: "as a planner", cure: "request:complete-task",
	},
	{
		name:    "ends without its task",
		program: "#!\nread -r task\necho '{\"level\":\"info\"}'",
		flags:   []string{"--wait", "2m", "--grace", "2m", "--as", "worker"},
		faults:  []string{"warn task"}, text: "exit 0 counts as done, even if it ignored the task", cure: "request:complete-task",
	},
	{
		name:    "does not end with its stdin",
		program: worker("", "", "", "", "while True: time.sleep(1)"),
		flags:   []string{"--wait", "2m", "--grace", "500ms"},
		faults:  []string{"fail stop"}, text: "still running", cure: "Exit when stdin ends",
	},
	{
		name:    "does not end at all",
		program: worker("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)", "", "", "", "while True: time.sleep(1)"),
		flags:   []string{"--wait", "2m", "--grace", "500ms"},
		faults:  []string{"fail stop"}, text: "had to be killed", cure: "SIGTERM",
	},
	{
		name:    "reads nothing",
		program: "#!\nwhile :; do sleep 0.1; done",
		flags:   []string{"--wait", "1s", "--grace", "500ms"},
		faults:  []string{"warn prints", "warn stop"}, text: "never reads stdin", cure: `stdin = "null"`,
	},
	{
		name: "ends badly", program: worker("", "", "", "", "sys.exit('the database is gone')"),
		faults: []string{"fail exit-code"}, text: "the database is gone", cure: "Exit with 0",
	},
	{
		name: "crashes at once", program: "#!\necho no such model >&2; exit 3",
		faults: []string{"fail starts"}, text: "exit 3 after", cure: "by hand",
	},
	{
		name: "leaves a process behind", program: worker("", "if first: os.spawnlp(os.P_NOWAIT, 'setsid', 'setsid', 'sleep', '600')", "", "", ""),
		faults: []string{"fail left-overs"}, text: "leaves 1 process behind", cure: "wait for them",
	},
	{
		name: "does one task alone", program: worker("", "if not first: continue", "", "", ""),
		flags:  []string{"--wait", "3s", "--grace", "2m"},
		faults: []string{"fail again"}, text: "then no more", cure: "Keep reading",
	},
	{
		name: "dies of an answer", program: worker("", "", "", "if m['type'] == 'response:success': sys.exit(4)", ""),
		faults: []string{"fail again", "fail starts"}, text: "exit 4", cure: "",
	},
	{
		name: "dies of what it does not know", program: worker("", "", "", "if m['type'] == 'notify:weather' and len(line) < 1000: sys.exit(5)", ""),
		faults: []string{"fail unknown"}, text: "exit 5", cure: "Skip unknown types",
	},
	{
		name: "dies of a long line", program: worker("", "", "", "if len(line) > 100000: sys.exit(6)", ""),
		faults: []string{"fail long-input"}, text: "exit 6", cure: "bufio.Reader",
	},
	{
		name: "dies of a refusal", program: worker("", "", "", "if m['type'] == 'response:error': sys.exit(7)", ""),
		faults: []string{"fail cancelled"}, text: "exit 7", cure: "Treat response:error like",
	},
	{
		name: "says twice how a task ends", program: worker("", "", "say('request:fail-task', 'and ' + task, {'taskId': task, 'error': 'x'})", "", ""),
		faults: []string{"fail task-once"}, text: "is done and cannot be failed", cure: "Report the end",
	},
	{
		name: "names another task", program: worker("", "say('request:complete-task', 'no ' + task, {'taskId': 'no-task'})", "", "", ""),
		faults: []string{"fail task-ids"}, text: "does not exist", cure: "payload.taskId",
	},
	{
		name: "takes an id twice", program: worker("", "say('request:add-note', 'n', {'taskId': task, 'content': 'a'}); say('request:add-note', 'n', {'taskId': task, 'content': 'b'})", "", "", ""),
		faults: []string{"fail ids"}, text: "used for another request", cure: "a new id for every message",
	},
	{
		name: "has no clock", program: worker("", "raw(b'{\"type\":\"request:query-tasks\",\"id\":\"q\",\"timestamp\":\"today\"}\\n')", "", "", ""),
		faults: []string{"fail timestamps"}, text: `"today" is not an ISO 8601 time`, cure: "date -u",
	},
	{
		name: "has a wrong clock", program: worker("time.gmtime = lambda: time.localtime(1e9)", "", "", "", ""),
		faults: []string{"warn timestamps"}, text: "off by", cure: "UTC",
	},
	{
		name: "asks for nonsense", program: worker("", "say('request:submit-task', 's' + task, {'type': 'x'})", "", "", ""),
		faults: []string{"fail messages"}, text: "name is missing", cure: "orchestrator schema request:submit-task",
	},
	{
		name: "tells nonsense", program: worker("", "say('event:progress', 'p', {'progress': 0.5})", "", "", ""),
		faults: []string{"warn messages"}, text: "taskId is missing", cure: "orchestrator schema event:progress",
	},
	{
		name: "is somebody else", program: worker("", "say('request:query-tasks', 'q' + task, {}, agentId='somebody')", "", "", ""),
		faults: []string{"fail names"}, text: "somebody", cure: "$ORC_AGENT_ID",
	},
	{
		name: "has a word of its own", program: worker("", "say('cook', 'c', {})", "", "", ""),
		faults: []string{"fail types"}, text: `"cook"`, cure: "orchestrator schema",
	},
	{
		name: "floods", program: worker("", "", "", "", "for i in range(2000): say('event:progress', str(i), {'taskId': 'x', 'progress': 0.5})"),
		faults: []string{"fail rate", "warn task-ids"}, text: "over the limit", cure: "once a second",
	},
	{
		name: "prints what is almost a message",
		program: worker(strings.Join([]string{
			`raw(b"{'type': 'request:get-task', 'id': '1'}\n")`,
			`raw(b'{"type":"event:log","id":"1","type":"event:progress","timestamp":"2026-01-01T00:00:00Z"}\n')`,
			`raw(b'{"type":"ready"}\n{"type":"ready"}\n')`,
			`raw(b'{"type":"event:log","id":"1","pay{"type":"event:log","id":"2","payload":{}}\n')`,
			`raw(b'50 %{"type":"event:log","id":"2","payload":{"level":"info","message":"x"}}\n')`,
			`raw(b'{\n  "type": "request:query-tasks",\n  "id": "1"\n}\n')`,
			`raw(b'caf\xe9\n')`,
			`raw(b'\x1b[0m{"type":"request:query-tasks","id":"9","timestamp":"2026-01-01T00:00:00Z"}\n')`,
			`raw(b'x' * (17 << 20) + b'\n')`,
			`print('{"type":"request:query-tasks","id":"1","timestamp":"2026-01-01T00:00:00Z"}', file=sys.stderr, flush=True)`,
		}, "\n"), "", "", "", ""),
		faults: []string{
			"fail keys", "fail long-lines", "fail marks", "fail one-line", "fail stderr", "fail torn-lines",
			"warn json", "warn own-line", "warn types", "warn utf-8",
		},
		text: `not a message type: treated as log (2 lines): {"type":"ready"}`, cure: "json.dumps",
	},
}

func TestCheckBadAgents(t *testing.T) {
	t.Parallel()
	if !stage.HasRuntime(t, "python3") {
		return
	}
	for _, agent := range badAgents {
		t.Run(agent.name, func(t *testing.T) {
			t.Parallel()
			s := stage.New(t, "").Ship()
			s.Write("agent", agent.program)
			command := []string{"python3", "agent"}
			if strings.HasPrefix(agent.program, "#!") {
				command[0] = "sh"
			}
			flags := agent.flags
			if flags == nil {
				flags = patient
			}
			report, exit := checkup(s, flags, command...)
			got := faults(report.Findings)
			if agent.name == "dies of an answer" { // before or after the request to end
				require.Contains(t, got, "fail again", "%+v", report.Findings)
			} else {
				require.Equal(t, agent.faults, got, "%+v", report.Findings)
			}
			require.Equal(t, report.Failed > 0, exit == cli.ExitNo)
			var texts, cures []string
			for _, one := range report.Findings {
				texts, cures = append(texts, one.Text), append(cures, one.Cure)
				if one.Verdict == check.Fail || one.Verdict == check.Warn {
					require.NotEmpty(t, one.Cure, one.Text)
				}
			}
			require.Contains(t, strings.Join(texts, "\n"), agent.text)
			require.Contains(t, strings.Join(cures, "\n"), agent.cure)
		})
	}
}

// Programs that do no tasks are not faulty. Some are from the demo.
func TestCheckOtherAgents(t *testing.T) {
	t.Parallel()
	brief := []string{"--wait", "1s", "--grace", "2m"}
	for name, program := range map[string]string{
		"a log":              "echo one; cat >/dev/null",
		"one that ends":      "echo done",
		"one that asks":      `echo '{"type":"request:query-agents","id":"1","timestamp":"2026-01-01T00:00:00Z"}'; read -r answer; cat >/dev/null`,
		"one that asks you":  `echo '{"type":"request:ask-user","id":"1","timestamp":"2026-01-01T00:00:00Z","payload":{"question":"Which?","options":[{"value":"a"}]}}'; cat >/dev/null`,
		"one that hands out": `echo '{"type":"request:submit-task","id":"1","timestamp":"2026-01-01T00:00:00Z","payload":{"type":"x","name":"y","requiredRole":"reviewer"}}'; cat >/dev/null; exit 1`,
		"an echo":            "cat",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage.New(t, "").Ship()
			s.Write("agent.sh", program)
			report, exit := checkup(s, brief, "sh", "agent.sh")
			require.Empty(t, faults(report.Findings), "%+v", report.Findings)
			require.Equal(t, cli.ExitOK, exit)
			require.Equal(t, []string{"sh", "agent.sh"}, report.Command)
			require.NotEmpty(t, report.Notes)
		})
	}
}

// All checks of --full succeed for a good agent.
func TestCheckFull(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "").Ship()
	files, err := project.Starter("sh")
	require.NoError(t, err)
	s.Write("agent.sh", string(files[1].Text))
	report, exit := checkup(s, append([]string{"--full", "--as", "reviewer"}, patient...), "sh", "agent.sh")
	require.Empty(t, faults(report.Findings), "%+v", report.Findings)
	require.Equal(t, cli.ExitOK, exit)
	require.Equal(t, "reviewer", report.Role)
	var seen []string
	for _, one := range report.Findings {
		seen = append(seen, one.Check)
	}
	require.Equal(t, []string{
		"starts", "task", "messages", "stop", "left-overs",
		"again", "unknown", "long-input", "cancelled", "pieces", "many", "killed", "repeats",
	}, seen)
}

// Ctrl-C during a check, or closing its terminal, leaves no process behind.
func TestCheckInterrupted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		signal syscall.Signal
		exit   int
	}{
		"Ctrl-C":          {syscall.SIGINT, cli.ExitInterrupted},
		"closed terminal": {syscall.SIGHUP, cli.ExitHungUp},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage.New(t, "").Ship()
			s.Write("agent.sh", "trap '' TERM INT; setsid sleep 600 & : >here; while :; do sleep 600; done")
			s.Start(exec.Command("env", "--default-signal=HUP", s.Program, "check", "--wait", "10m", "--grace", "10m", "--", "sh", "agent.sh"))
			stage.WaitFor(t, "the agent to run", func() bool {
				_, err := os.Stat(s.Path("here"))
				return err == nil
			})
			s.Signal(c.signal)
			require.Equal(t, c.exit, s.Await())
			require.Empty(t, s.Processes(), "left running")
			left, err := os.ReadDir(s.Dir)
			require.NoError(t, err)
			for _, entry := range left {
				require.NotContains(t, entry.Name(), "orchestrator-check-")
			}
		})
	}
}
