package team

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// A process that an agent has started is neither the operator nor another agent, however it was
// started. People are notified. An agent with operator = true may be the operator, by its name.
//
// Rows: S-01.
func TestLineage(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "victim" {
  command = ["sh", "-c", "echo $ORC_SOCKET >victim.part; mv victim.part victim; exec cat"]
}
agent "evil" {
  command = ["sh", "evil.sh"]
  restart {
    policy = "never"
  }
}
agent "boss" {
  command  = ["sh", "-c", "orchestrator --state-dir $ORC_STATE_DIR task add allowed --json; exec cat"]
  operator = true
}
`, "evil.sh", `
while [ ! -s victim ]; do sleep 0.05; done
asks() {
  orchestrator --state-dir "$ORC_STATE_DIR" task add stolen 2>&1
  echo "$1 $?"
}
asks plainly
setsid sh -c 'orchestrator --state-dir "$ORC_STATE_DIR" task add stolen >away 2>&1; echo "setsid $?" >>away'
cat away
rm away
(setsid sh -c '(orchestrator --state-dir "$ORC_STATE_DIR" task add stolen >away 2>&1; echo "forked $?" >>away) &' &)
while ! grep -q ^forked away 2>/dev/null; do sleep 0.05; done
cat away
env -i PATH="$PATH" DIR="$ORC_STATE_DIR" setsid sh -c '(orchestrator --state-dir "$DIR" task add stolen >clean 2>&1; echo "cleared $?" >>clean) &'
while ! grep -q ^cleared clean 2>/dev/null; do sleep 0.05; done
cat clean
ORC_SOCKET=$(cat victim) ORC_TOKEN= orchestrator task add stolen 2>&1
echo "victim $?"
orchestrator task add mine --json
exec cat
`).Up("--json")
	stage.WaitFor(t, "last answer", func() bool {
		return strings.Contains(strings.Join(s.Lines("evil", control.StreamOut), "\n"), `"submittedBy":"agent:evil"`)
	})
	said := strings.Join(s.Lines("evil", control.StreamOut), "\n")
	for _, way := range []string{"plainly", "setsid", "forked", "cleared", "victim"} {
		require.Contains(t, said, "\n"+way+" 4", said)
	}
	require.Contains(t, said, "was started by agent evil, and this is the operators' socket")
	require.Contains(t, said, "was started by agent evil, and this is the socket of agent victim")
	told := s.WaitForEvents(1, events.AgentRefused, "evil")[0]
	require.Regexp(t, `^tried to be the operator: orchestrator \(process \d+\) asked for POST /api/\S+ at the operators' socket$`, told.Text)

	boss := strings.Join(s.WaitForLines(1, "boss"), "\n")
	require.Contains(t, boss, `"submittedBy":"operator:agent:boss"`)
	require.NotContains(t, s.Ask("task", "ls", "--json"), "stolen")
	s.Stop() // the audit is whole then
	audit := 0
	for _, line := range s.Audited() {
		if why, _ := line["why"].(string); strings.Contains(why, "was started by an agent,") || strings.Contains(why, "was started by agent evil") {
			audit++
			require.Positive(t, line["pid"])
			require.Equal(t, "orchestrator", line["program"])
		}
	}
	require.Equal(t, 5, audit)
}

// withoutCgroup is up in a system that delegates no cgroup. An ordinary user cannot take one away, and
// mostly has none.
func withoutCgroup(s *stage.Orchestrator, flags ...string) *stage.Orchestrator {
	const hidden = `unshare -m true 2>/dev/null || exec "$0" "$@"
exec unshare -m sh -c 'umount -a -l -t cgroup2; exec "$0" "$@"' "$0" "$@"`
	s.Start(exec.Command("sh", append([]string{"-c", hidden, s.Program, "up", "--state-dir", s.State(), "--timeout", "6m"}, flags...)...))
	return s
}

// systems are the two ways to find the run of an orphan.
var systems = map[string]func(s *stage.Orchestrator, flags ...string) *stage.Orchestrator{"cgroup": (*stage.Orchestrator).Up, "trace": withoutCgroup}

// forge asks as an orphan that names the run of the agent boss in its environment: at the operators'
// socket, and at the socket of boss. The arguments are the folder of that agent and the state directory.
const forge = `
while [ ! -s "$1/boss" ]; do sleep 0.05; done
read run socket <"$1/boss"
env -u ORC_TOKEN ORC_RUN_ID="$run" ORC_SOCKET="$socket" STATE="$2" setsid sh -c '(
	until [ -e orphaned ]; do sleep 0.05; done
	orchestrator --host "$STATE/api.sock" token issue --sub mallory --role admin >forged 2>&1
	echo "operator $?" >>forged
	orchestrator task add stolen >>forged 2>&1
	echo "boss $?" >>forged
) &'
touch orphaned
while ! grep -q ^boss forged 2>/dev/null; do sleep 0.05; done
cat forged
exec cat
`

// An orphan that names the run of another agent in its environment is neither that agent nor, if that agent may
// operate, the operator. People learn the run that it names. The same holds for a confined one.
//
// Rows: S-01.
func TestLineageOfForgers(t *testing.T) {
	t.Parallel()
	for name, up := range systems {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage.New(t, stage.QuickStop+`
agent "boss" {
  command  = ["sh", "-c", "echo $ORC_RUN_ID $ORC_SOCKET >boss.part; mv boss.part boss; exec cat"]
  operator = true
}
agent "free" {
  dir     = "free"
  command = ["sh", "../forge.sh", "..", "../state"]
}
agent "caged" {
  dir     = "caged"
  command = ["sh", "../forge.sh", abspath("."), abspath("state")]
  confine {
    write       = ["caged"]
    network     = "none"
    best_effort = true
  }
}
`, "forge.sh", forge)
			require.NoError(t, os.Mkdir(s.Path("free"), 0o700))
			require.NoError(t, os.Mkdir(s.Path("caged"), 0o700))
			up(s, "--json")
			for _, agent := range []string{"free", "caged"} {
				stage.WaitFor(t, "the answers to "+agent, func() bool {
					return strings.Contains(strings.Join(s.Lines(agent, control.StreamOut), "\n"), "\nboss ")
				})
				said := strings.Join(s.Lines(agent, control.StreamOut), "\n")
				require.Regexp(t, `\noperator [1-9]`, said)
				require.Regexp(t, `\nboss [1-9]`, said)
			}
			stage.WaitFor(t, "the report", func() bool {
				return slices.ContainsFunc(s.Events(events.AgentRefused, ""), func(e wire.Event) bool {
					return strings.Contains(e.Text, "tried to be the operator") && strings.Contains(e.Text, "which names the run of agent boss in its environment")
				})
			})
			require.NotContains(t, s.Ask("task", "ls", "--json"), "stolen")
			require.NotContains(t, s.Ask("token", "ls", "--json"), "mallory")
			s.Stop() // the audit is whole then
			refused := 0
			for _, line := range s.Audited() {
				if why, _ := line["why"].(string); strings.Contains(why, "was started by") {
					refused++
					require.Positive(t, line["pid"])
				}
			}
			require.GreaterOrEqual(t, refused, 2)
		})
	}
}

// A helper that its agent leaves alone remains that agent, also over an upgrade, as long as the
// orchestrator has seen it below the agent before. It is never the operator.
//
// Rows: S-01.
func TestLineageOfHelpers(t *testing.T) {
	t.Parallel()
	for name, up := range systems {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stage.New(t, stage.QuickStop+`
agent "boss" {
  command  = ["sh", "boss.sh"]
  operator = true
}
`, "boss.sh", `
setsid sh -c '(
	until [ -e orphaned ]; do sleep 0.05; done
	orchestrator task add mine >helped 2>&1
	echo "own $?" >>helped
	env -u ORC_SOCKET -u ORC_TOKEN orchestrator --host state/api.sock task add stolen >>helped 2>&1
	echo "operator $?" >>helped
) & until [ -e upgraded ]; do sleep 0.05; done'
touch orphaned
while ! grep -q ^operator helped 2>/dev/null; do sleep 0.05; done
cat helped
exec cat
`)
			up(s, "--json")
			s.WaitForEvents(1, events.AgentStarted, "boss")
			stage.WaitFor(t, "the helper", func() bool { return len(s.Processes()) >= 4 })
			s.Ask("upgrade")
			s.Write("upgraded", "")
			stage.WaitFor(t, "the answers", func() bool {
				return strings.Contains(strings.Join(s.Lines("boss", control.StreamOut), "\n"), "\noperator ")
			})
			said := strings.Join(s.Lines("boss", control.StreamOut), "\n")
			require.Contains(t, said, "\nown 0\n")
			require.Contains(t, said, "Its parents have ended, so it cannot be the operator")
			require.Contains(t, said, "\noperator 4")
			require.NotContains(t, s.Ask("task", "ls", "--json"), "stolen")
			s.Stop()
		})
	}
}

// A process that an agent of one orchestrator has started is not the operator of another one, unless that
// orchestrator descends from the same agent.
func TestLineageOfOthers(t *testing.T) {
	t.Parallel()
	theirs := stage.New(t, stage.QuickStop+`agent "idle" { command = ["cat"] }`).Up()
	s := stage.New(t, stage.QuickStop+`
agent "evil" {
  command  = ["sh", "evil.sh"]
  operator = true
}
`, "evil.sh", `
orchestrator --state-dir "`+theirs.State()+`" task add stolen 2>&1
echo "theirs $?"
setsid sh -c 'orchestrator --state-dir "`+theirs.State()+`" task add stolen >away 2>&1; echo "setsid $?" >>away'
cat away
mkdir inner
cp inner.hcl inner/orchestrator.hcl
cd inner
orchestrator up -d --yes 2>&1
orchestrator --state-dir .orchestrator task add own 2>&1
echo "own $?"
orchestrator --state-dir .orchestrator down 2>&1
exec cat
`, "inner.hcl", `agent "idle" {
  command = ["cat"]
}
`).Up("--json")
	stage.WaitFor(t, "last answer", func() bool {
		return strings.Contains(strings.Join(s.Lines("evil", control.StreamOut), "\n"), "\nown ")
	})
	said := strings.Join(s.Lines("evil", control.StreamOut), "\n")
	require.Contains(t, said, "was started by an agent of another orchestrator, and this is the operators' socket")
	require.Contains(t, said, "\ntheirs 4")
	require.Contains(t, said, "\nsetsid 4")
	require.Contains(t, said, "\nown 0")
	require.NotContains(t, theirs.Ask("task", "ls", "--json"), "stolen")
	s.Stop()
	theirs.Stop()
}
