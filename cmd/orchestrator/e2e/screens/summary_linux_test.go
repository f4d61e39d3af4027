package screens

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
)

// idles runs a team until it is idle and returns the exit code and the output.
func idles(t *testing.T, hcl string, flags ...string) (code int, text string) {
	t.Helper()
	s := stage.New(t, hcl)
	cmd := exec.CommandContext(t.Context(), s.Program, append([]string{"up", "--exit-when-idle", "--timeout", "1m", "--state-dir", s.State()}, flags...)...)
	cmd.Dir, cmd.Env = s.Dir, s.Environ()
	said, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return failed.ExitCode(), string(said)
	}
	require.NoError(t, err)
	return 0, string(said)
}

// If the record breaks, the summary names no task that was not recorded.
func TestSummaryOfABrokenRecord(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "agent \"w\" {\n  command = [\"cat\"]\n}\n")
	s.Up()
	stage.WaitFor(t, "orchestrator", func() bool {
		_, _, code := s.Call("task", "add", "First")
		return code == cli.ExitOK
	})
	info, err := os.Stat(filepath.Join(s.State(), "events.db-wal"))
	require.NoError(t, err)
	s.RoomFor(uint64(info.Size()) + 8<<10)
	_, _, code := s.Call("task", "add", "Second", "--spec", strings.Repeat("x", 60<<10))
	require.NotEqual(t, cli.ExitOK, code)
	require.Equal(t, cli.ExitNo, s.Await())
	require.Contains(t, s.Stdout.All(), "1 task in ")
	require.NotContains(t, s.Stdout.All(), "Second")
	require.NotContains(t, s.Stdout.All(), "Why: orchestrator why")
}

// submitter returns an agent that submits tasks, reads the answers, and exits.
func submitter(payloads ...string) string {
	words := []string{"sh", "-c", `printf '%s\n' "$@"; for said; do read -r heard; done`, "boss"}
	for i, payload := range payloads {
		words = append(words, stage.Request(fmt.Sprint("boss-", i), "submit-task", payload))
	}
	for i := range words {
		words[i] = strconv.Quote(words[i])
	}
	return "agent \"boss\" {\n  command = [" + strings.Join(words, ", ") + "]\n  role = \"planner\"\n}\n"
}

func workers(t *testing.T, more string) string {
	return "\nagent \"worker\" {\n  command = [\"" + stage.Fixture(t, "worker") + "\"]\n" + more + "}\n"
}

// The exit code is zero only if all tasks are done; otherwise the last lines list the unfinished
// ones.
func TestIdleEnds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		hcl  string
		code int
		says []string
	}{
		"done": {
			submitter(`{"type":"x","requiredRole":"worker","name":"Write"}`, `{"type":"x","requiredRole":"worker","name":"Read"}`) + workers(t, ""), cli.ExitOK,
			[]string{`^Done in [\d.ms]+: 2 of 2 tasks$`, `^  worker  2 tasks`, `none refused, nothing lost\.$`},
		},
		"failed": {
			submitter(`{"type":"x","requiredRole":"worker","name":"Write","payload":{"fail":"no ink"}}`, `{"type":"x","requiredRole":"worker","name":"Read"}`) + workers(t, ""), cli.ExitNo,
			[]string{`^2 tasks in [\d.ms]+: 1 done, 1 failed$`, `^  worker  2 tasks .*1 failed$`, `^  x [0-9a-f]{8} "Write" failed: no ink$`, `orchestrator why [0-9a-f]{8}$`},
		},
		"crashed": {
			submitter(`{"type":"x","requiredRole":"worker","name":"Write","payload":{"crash":true}}`) + workers(t, "  restart {\n    delay = \"10ms\"\n    jitter = 0\n  }\n"), cli.ExitNo,
			[]string{`^1 task in [\d.ms]+: 1 failed$`, `^  worker  1 task .*1 failed, \d crash`, `^  x [0-9a-f]{8} "Write" failed: `},
		},
		"gave up": {
			"agent \"a\" {\n  command = [\"sh\", \"-c\", \"exit 78\"]\n}\n", cli.ExitNo, []string{`^  a +1 crash, gave up$`},
		},
		"planner failed": {
			"agent \"boss\" {\n  command = [\"sh\", \"-c\", \"exit 78\"]\n  role = \"planner\"\n}\n" + workers(t, ""), cli.ExitNo,
			[]string{`^\S+ no agent is left to submit tasks$`, `^  boss +1 crash, gave up$`},
		},
		"architect failed": {
			"session \"house\" {\n  member \"boss\" { type = \"architect\" }\n  member \"worker\" { type = \"developer\" }\n}\n" +
				"agent \"boss\" {\n  command = [\"sh\", \"-c\", \"exit 78\"]\n}\n" + workers(t, ""), cli.ExitNo,
			[]string{`^\S+ no agent is left to submit tasks$`},
		},
		"nothing": {"agent \"a\" {\n  command = [\"true\"]\n}\n", cli.ExitOK, []string{`nothing left running\n\z`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, text := idles(t, test.hcl)
			require.Equal(t, test.code, code, text)
			for _, says := range test.says {
				require.Regexp(t, "(?m)"+says, text)
			}
		})
	}
}

// A task that depends on a failed one can never run. The program does not wait for it and exits
// with a failure.
func TestIdleBlockedForEver(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, "protocol {\n  on_dependency_failure = \"block\"\n}\n"+stage.Scripted("boss", "hand"), "boss", "hand")
	h.Up("--exit-when-idle")
	boss, hand := h.NextRun("boss"), h.NextRun("hand")
	first := boss.Submit(`{"type":"x","requiredRole":"worker","name":"Write"}`)
	boss.Submit(`{"type":"x","requiredRole":"worker","name":"Read","dependencies":["` + first.ID + `"]}`)
	boss.Exit(0)
	hand.Assigned(first.ID)
	hand.Request("fail-task", `{"taskId":"`+first.ID+`","error":"no ink"}`)
	require.Equal(t, cli.ExitNo, h.Await())
	require.Regexp(t, `(?m)no remaining task can be done\n(?s:.*)^2 tasks in \S+: 1 failed, 1 not done$`, h.Stdout.All())
	require.Regexp(t, `(?m)^  \. [0-9a-f]{8} Read, waits for `+first.ID[:8]+`$`, h.Stdout.All())
}

// --quiet and JSON output have no summary.
func TestNoSummary(t *testing.T) {
	t.Parallel()
	hcl := submitter(`{"type":"x","requiredRole":"worker","name":"Write"}`) + workers(t, "")
	for _, flag := range []string{"--quiet", "--json", "--log-format=json"} {
		code, text := idles(t, hcl, flag)
		require.Equal(t, cli.ExitOK, code)
		require.NotContains(t, text, "Done in", flag)
		require.NotContains(t, text, "nothing lost", flag)
	}
}

// The program waits for a task that no agent can do, and reports that it waits.
func TestIdleSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+submitter(`{"type":"x","requiredRole":"reviewer","name":"Carve it"}`)+workers(t, "")).Up("--exit-when-idle")
	stage.WaitFor(t, "word of what is waited for", func() bool {
		return regexp.MustCompile(`Waiting for [0-9a-f]{8} "Carve it", pending: orchestrator why [0-9a-f]{8}\n`).MatchString(s.Stderr.All())
	})
	s.Signal(syscall.SIGTERM)
	require.Equal(t, cli.ExitNo, s.Await(), "it was not done")
}
