package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// A process that an agent has started is neither the operator nor another agent, however it was
// started. People are told. An agent with operator = true may be the operator, by its name.
//
// Rows: S-01.
func TestLineage(t *testing.T) {
	t.Parallel()
	s := newStage(t, quick+`
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
`).up("--json")
	waitForThat(t, "last answer", func() bool {
		return strings.Contains(strings.Join(s.lines("evil", control.StreamOut), "\n"), `"submittedBy":"agent:evil"`)
	})
	said := strings.Join(s.lines("evil", control.StreamOut), "\n")
	for _, way := range []string{"plainly", "setsid", "forked", "cleared", "victim"} {
		require.Contains(t, said, "\n"+way+" 4", said)
	}
	require.Contains(t, said, "was started by agent evil, and this is the operators' socket")
	require.Contains(t, said, "was started by agent evil, and this is the socket of agent victim")
	told := s.waitForEvents(1, events.AgentRefused, "evil")[0]
	require.Regexp(t, `^tried to be the operator: orchestrator \(process \d+\) asked for POST /api/\S+ at the operators' socket$`, told.Text)

	boss := strings.Join(s.waitForLines(1, "boss"), "\n")
	require.Contains(t, boss, `"submittedBy":"operator:agent:boss"`)
	require.NotContains(t, s.ask("task", "ls", "--json"), "stolen")
	s.stop() // the audit is whole then
	audit := 0
	for _, line := range s.audited() {
		if why, _ := line["why"].(string); strings.Contains(why, "was started by an agent") || strings.Contains(why, "was started by agent evil") {
			audit++
			require.Positive(t, line["pid"])
			require.Equal(t, "orchestrator", line["program"])
		}
	}
	require.Equal(t, 5, audit)
}

// A process that an agent of one orchestrator has started is not the operator of another one, unless that
// orchestrator descends from the same agent.
func TestLineageOfOthers(t *testing.T) {
	t.Parallel()
	theirs := newStage(t, quick+`agent "idle" { command = ["cat"] }`).up()
	s := newStage(t, quick+`
agent "evil" {
  command  = ["sh", "evil.sh"]
  operator = true
}
`, "evil.sh", `
orchestrator --state-dir "`+theirs.state()+`" task add stolen 2>&1
echo "theirs $?"
setsid sh -c 'orchestrator --state-dir "`+theirs.state()+`" task add stolen >away 2>&1; echo "setsid $?" >>away'
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
`).up("--json")
	waitForThat(t, "last answer", func() bool {
		return strings.Contains(strings.Join(s.lines("evil", control.StreamOut), "\n"), "\nown ")
	})
	said := strings.Join(s.lines("evil", control.StreamOut), "\n")
	require.Contains(t, said, "was started by an agent of another orchestrator, and this is the operators' socket")
	require.Contains(t, said, "\ntheirs 4")
	require.Contains(t, said, "\nsetsid 4")
	require.Contains(t, said, "\nown 0")
	require.NotContains(t, theirs.ask("task", "ls", "--json"), "stolen")
	s.stop()
	theirs.stop()
}
