package hosts

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// company holds the processes of a client at the beginning of its first turn: a server and a
// daemon.
const company = `sleep 1000 & echo $! >server
(setsid sh -c 'echo $$ >daemon; exec sleep 1000' &)
until [ -s daemon ]; do sleep 0.02; done
sleep 0.02
`

// forgetful is a client that has a server and a daemon when its first turn begins. If the turn is interrupted, it ends
// the shell of its command and loses the rest. In the second turn it notes whether the command still runs.
const forgetful = `
say() { echo "$1"; }
read -r hello
say '{"type":"control_response","response":{"subtype":"success","request_id":"orc_1","response":{}}}'
` + company + `while read -r line; do
  case "$line" in
  *'"subtype":"interrupt"'*)
    kill -9 $shell
    wait $shell
    say '{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools"}'
    ;;
  *'"type":"user"'*)
    say '{"type":"user","uuid":"'"$(expr "$line" : '.*"uuid":"\([^"]*\)"')"'","isReplay":true}'
    if [ -e command ]; then
      kill -0 $(cat command) 2>/dev/null && touch beside
      say '{"type":"result","is_error":false,"terminal_reason":"completed","result":"Done."}'
      continue
    fi
    sh -c 'timeout 1000 sh -c "echo \$\$ >began; mv began command; sleep 1000; true"; true' & shell=$!
    ;;
  esac
done
`

// possessive is an ACP client that keeps the command of a cancelled turn until its session is closed. Then it ends the
// shell of the command and loses the rest.
const possessive = `
say() { echo '{"jsonrpc":"2.0","id":'$1',"result":{'"$2"'}}'; }
read -r hello
say 1 '"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"resume":{},"close":{}}}'
` + company + `
while read -r line; do
  id=$(expr "$line" : '{"id":\([0-9]*\)')
  case "$line" in
  *session/new* | *session/resume*) say $id '"sessionId":"s","modes":{"currentModeId":"default","availableModes":[{"id":"default"}]}' ;;
  *session/cancel*) say $prompt '"stopReason":"cancelled"' ;;
  *session/close*)
    kill -9 $shell
    wait $shell
    say $id ''
    ;;
  *session/prompt*)
    prompt=$id
    if [ -e command ]; then
      kill -0 $(cat command) 2>/dev/null && touch beside
      say $id '"stopReason":"end_turn"'
      continue
    fi
    echo '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"tool_call","toolCallId":"c","kind":"execute","title":"make"}}}'
    sh -c 'timeout 1000 sh -c "echo \$\$ >began; mv began command; sleep 1000; true"; true' & shell=$!
    ;;
  esac
done
`

// When a task of a coding agent is cancelled, the command that its client has lost is ended before the next task
// begins. Commands that the client still has continue, and so does an earlier daemon. The same holds on a host.
func TestCancelledCommandEnds(t *testing.T) {
	t.Parallel()
	file := func(more string) string {
		return `
agent "coder" {
  protocol    = "claude"
  command     = ["sh", "client.sh"]
  on_turn_end = "complete"
` + more + `}
`
	}
	play := func(t *testing.T, hub, there *stage.Orchestrator) {
		hub.WaitForEvents(1, events.AgentStarted, "coder")
		id := strings.TrimSpace(hub.Ask("task", "add", "Count", "-q"))
		command := pidIn(there, "command")
		hub.Ask("task", "cancel", id)
		next := strings.TrimSpace(hub.Ask("task", "add", "Count again", "-q"))
		hub.WaitForState(next, wire.TaskDone)
		require.NoFileExists(t, there.Path("beside"), "the command ran beside the next task")
		require.False(t, stage.Alive(command))
		left := hub.WaitForEvents(1, events.AgentLeftOver, "coder")[0]
		require.Regexp(t, fmt.Sprintf(`^ended \d left-overs \(.*\b%d sh.*\) of an interrupted turn$`, command), left.Text)
		require.Regexp(t, `(?m)^ +left over .*ended \d left-overs .* of an interrupted turn$`, hub.Ask("why", "coder"))
		for _, spared := range []string{"server", "daemon"} {
			require.True(t, stage.Alive(pidIn(there, spared)), spared)
		}
		hub.Stop()
	}
	t.Run("here", func(t *testing.T) {
		t.Parallel()
		s := stage.New(t, file(""), "client.sh", forgetful)
		s.Up("--json")
		play(t, s, s)
	})
	t.Run("acp", func(t *testing.T) {
		t.Parallel()
		s := stage.New(t, strings.Replace(file(""), "claude", "acp", 1), "client.sh", possessive)
		s.Up("--json")
		play(t, s, s)
	})
	t.Run("host", func(t *testing.T) {
		t.Parallel()
		f := newFarm(t, file("  placement {}\n"))
		attic := stage.New(t, f.file, "token", f.Ask("token", "issue", "--actor", "HO:attic"), "client.sh", forgetful)
		join(attic, f.url)
		f.waitForAgent("coder", "attic")
		play(t, f.Orchestrator, attic)
	})
}

// pidIn waits for a file with a process id.
func pidIn(s *stage.Orchestrator, name string) int {
	s.T.Helper()
	var pid int
	stage.WaitFor(s.T, name, func() bool {
		text, err := os.ReadFile(s.Path(name))
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err == nil
	})
	return pid
}
