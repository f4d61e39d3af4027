package join

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
)

// A line of an editor that is too long is answered, and the next one is read.
func TestLongLine(t *testing.T) {
	var out strings.Builder
	in := io.MultiReader(
		strings.NewReader(`{"id":1,"method":"`), strings.NewReader(strings.Repeat("x", maxFrame)), strings.NewReader("\"}\n\n"),
		strings.NewReader("no JSON\n"), strings.NewReader(`{"id":2,"method":"nope"}`),
	)
	e := &editor{app: cli.New(cli.Env{Stdin: in}), stdout: newOutbox(&out), waiting: map[string]chan answer{}, turn: map[string]*turn{}}
	require.NoError(t, e.read(t.Context()))
	e.stdout.close(time.Minute)
	require.Equal(t, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the line is longer than 33554432 bytes"}}
{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the line is not a JSON object"}}
{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"unknown method \"nope\""}}
`, out.String())
}

// An editor that does not read gets at most its bound of kept messages.
func TestEditorThatReadsNothing(t *testing.T) {
	in := strings.NewReader(strings.Repeat(`{"id":1,"method":"`+strings.Repeat("x", 1<<20)+"\"}\n", 2*maxUnread>>20)) // a part is being written
	read, write := io.Pipe()
	defer read.Close()
	f := cli.FailureOf(serveACP(cli.New(cli.Env{Stdin: io.MultiReader(in, read), Stdout: write}), acpFlags{}))
	require.Equal(t, "the editor has not read 67108864 bytes of messages", f.Message)
}

// A leader that does not have the stdin of an agent ends with words for people.
func TestLeadWithoutOrchestrator(t *testing.T) {
	a := cli.New(cli.Env{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Environ: []string{"ORC_AGENT_ID=lead", "ORC_SESSION=change"}})
	f := cli.FailureOf(lead(a))
	require.Equal(t, cli.ExitNotRunning, f.Exit)
	require.Equal(t, "no orchestrator on stdin: it has ended, or it did not start this command", f.Message)
}
