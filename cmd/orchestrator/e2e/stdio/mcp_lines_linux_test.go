package stdio

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire/events"
)

// A rawGuest is an MCP client that writes its messages itself.
type rawGuest struct {
	t       *testing.T
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// startRawGuest starts a client that joins as a guest, and has shaken hands.
func startRawGuest(s *stage.Orchestrator, name string) *rawGuest {
	s.T.Helper()
	g := &rawGuest{t: s.T, command: s.GuestCommand("--as", name)}
	var err error
	g.in, err = g.command.StdinPipe()
	require.NoError(s.T, err)
	out, err := g.command.StdoutPipe()
	require.NoError(s.T, err)
	g.out = bufio.NewReader(out)
	require.NoError(s.T, g.command.Start())
	alarm := time.AfterFunc(stage.Patience, func() { _ = g.command.Process.Kill() })
	s.T.Cleanup(func() {
		alarm.Stop()
		_ = g.command.Process.Kill()
	})
	g.write(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	require.Contains(s.T, g.read(), `"id":"hello"`)
	g.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return g
}

func (g *rawGuest) write(line string) {
	g.t.Helper()
	_, err := io.WriteString(g.in, line+"\n")
	require.NoError(g.t, err)
}

func (g *rawGuest) read() string {
	g.t.Helper()
	line, err := g.out.ReadString('\n')
	require.NoError(g.t, err)
	return line
}

// call calls a tool.
func (g *rawGuest) call(id, tool, arguments string) {
	g.t.Helper()
	g.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments))
}

// A line that is not a message is answered with an error, and the next one is read.
func TestMCPBadLines(t *testing.T) {
	s := stage.New(t, stage.QuickStop+stage.OneIdler).Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "")
	ann := startRawGuest(s, "ann")
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	long := strings.Repeat("x", 17<<20)
	for _, test := range []struct {
		line string
		id   string // of the answer
		code int    // 0: a result
	}{
		{"hello", "null", -32700},
		{`{"jsonrpc":"2.0","id":1,`, "null", -32700},
		{ping + " and more", "null", -32700},
		{"\xff\xfe", "null", -32700},
		{strings.Repeat("[", 1_000_000), "null", -32700},
		{"{}", "null", -32600},
		{"null", "null", -32600},
		{"7", "null", -32600},
		{"[]", "null", -32600},
		{"[7]", "null", -32600},
		{`{"jsonrpc":"1.0","id":"a","method":"ping"}`, `"a"`, -32600},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, "null", -32600},
		{`{"jsonrpc":"2.0","id":3,"method":7}`, "3", -32600},
		{`{"jsonrpc":"2.0","id":4,"method":"ping","params":{"x":"` + long + `"}}`, "4", -32600},
		{long, "null", -32600},
		{`{"jsonrpc":"2.0","id":5,"method":"nothing"}`, "5", -32601},
		{`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":[]}`, "6", -32602},
		{"\t" + ping + "\r", "1", 0},
		{"[" + ping + "]", "1", 0},
	} {
		ann.write("\n" + test.line)
		line := ann.read()
		var answer struct {
			ID     json.RawMessage `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  struct {
				Code int `json:"code"`
			} `json:"error"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &answer))
		require.Equal(t, test.code, answer.Error.Code, "%.100s: %s", test.line, line)
		require.Equal(t, test.code == 0, answer.Result != nil, line)
		require.Equal(t, test.id, string(answer.ID), "%.100s: %s", test.line, line)
	}
	_, err := io.WriteString(ann.in, ping) // without a line end
	require.NoError(t, err)
	require.NoError(t, ann.in.Close())
	require.NoError(t, ann.command.Wait())
}

// A question is withdrawn when its call is cancelled, and when its guest leaves, is killed or ends
// with the orchestrator.
func TestMCPQuestionsOfGuests(t *testing.T) {
	s := stage.New(t, stage.QuickStop+stage.OneIdler).Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "")
	asked := 0
	ask := func() *rawGuest {
		ann := startRawGuest(s, "ann")
		ann.call("q", "ask_human", `{"question":"Which?","options":["a","b"]}`)
		asked++
		s.WaitForEvents(asked, events.QuestionAsked, "ann")
		return ann
	}
	ann := ask()
	ann.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}`)
	s.WaitForQuestions(0)
	require.NoError(t, ann.in.Close())
	require.NoError(t, ann.command.Wait())
	s.WaitForEvents(1, events.AgentForgotten, "ann")

	ann = ask()
	require.NoError(t, ann.in.Close())
	require.NoError(t, ann.command.Wait())
	s.WaitForQuestions(0)
	s.WaitForEvents(2, events.AgentForgotten, "ann")

	ann = ask()
	require.NoError(t, ann.command.Process.Kill())
	s.WaitForQuestions(0)
	s.WaitForEvents(3, events.AgentForgotten, "ann")

	ann = ask()
	require.NoError(t, s.Process.Process.Kill())
	require.Error(t, ann.command.Wait())
	s.Await()
	s.Up("--json").WaitForEvents(1, events.AgentStarted, "idler")
	s.WaitForQuestions(0)
}
