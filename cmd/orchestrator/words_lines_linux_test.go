package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// A request on stdout is answered on stdin. Two requests in one write are two, and one in three
// writes is one.
//
// Rows: B-01, B-02, B-03, B-17, B-21, B-24, T-01.
func TestWordsChunkIsNoLine(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	a.say(asking("one", "query-agents", `{}`) + "\n" + asking("two", "query-tasks", `{}`) + "\n")
	require.Equal(t, "response:success", a.answer("one").Type)
	require.Equal(t, "response:success", a.answer("two").Type)

	line := asking("three", "query-agents", `{}`)
	for _, part := range []string{line[:7], line[7:40], line[40:]} {
		a.say(part)
		h.status() // gives the part time to be read alone; the result does not depend on it
	}
	require.Empty(t, a.answers("three"), "there is no line yet")
	a.say("\n")
	require.Equal(t, "response:success", a.answer("three").Type)
	a.quiet()
	for _, id := range []string{"one", "two", "three"} {
		require.Len(t, a.answers(id), 1, id)
	}
	require.Empty(t, h.lines("a", control.StreamOut), "a message is no log")
	h.stop()
}

// A message may be as long as a line, and may be the unterminated end of the stream.
//
// Rows: B-02, B-09, B-10, T-01.
func TestWordsLongAndLast(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	long := strings.Repeat("long ", 400<<10)
	task := a.submit(fmt.Sprintf(`{"type":"t","name":"n","description":%q}`, long))
	var reply struct{ Task struct{ Description string } }
	a.granted(&reply, "get-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	require.True(t, reply.Task.Description == long, "%d bytes came back", len(reply.Task.Description))
	a.say(telling("e", "question", `{"question":"my last words?"}`))
	a.exit(0)
	h.waitForEvents(1, events.AgentExited, "a")
	require.Len(t, h.waitForEvents(1, events.QuestionAsked, "a"), 1)
	h.stop()
}

// logLines are lines that are not messages of any protocol.
var logLines = []string{
	"hello", "{", "}", `{"level":"info","msg":"x"}`, `{"type":"info","message":"x"}`, "123", `"s"`, "[1]", "null", "true", "",
	`[{"type":"request:get-task","id":"1"}]`, `{"TYPE":"request:query-agents","id":"1","timestamp":"` + noon + `"}`,
	`{"type":7,"id":"1"}`, `{"type":"event:log","type":"event:log","id":"1","timestamp":"` + noon + `"}`,
	asking("1", "query-agents", "{}") + " " + asking("2", "query-agents", "{}"),
	"text before " + asking("1", "query-agents", "{}"), strings.TrimSuffix(asking("1", "query-agents", "{}"), "}"),
}

// Lines that are not messages are logged unchanged and get no answer.
//
// Rows: B-04, B-05, B-84, T-03.
func TestWordsLog(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	a.say(strings.Join(logLines, "\n") + "\n")
	require.Equal(t, logLines, h.waitForLines(len(logLines), "a"))
	a.quiet()
	require.Len(t, a.all(), 1, "only what was asked is answered")
	for id, twice := range map[string]string{"2": `"type":"request:query-agents"`, "3": `"timestamp":"` + noon + `"`, "4": `"payload":{}`} {
		a.say(fmt.Sprintf(`{"type":"request:query-agents",%s,"id":%q,"timestamp":%q,"payload":{}}`, twice, id, noon) + "\n")
		require.Equal(t, "INVALID_REQUEST", a.answer(id).Error.Code, twice)
	}
	h.stop()
	require.Equal(t, logLines, h.logged("a", ".out"))
}

// Invalid UTF-8 is logged, and later messages are still read.
//
// Rows: B-09.
func TestWordsBinary(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	bad := "\xff\xfe\x00\x1b[2J" + strings.Repeat("\xc3(", 1000)
	a.say(bad + "\n" + strings.TrimSuffix(asking("1", "query-agents", `{"role":"`+"\xff"+`"}`), "") + "\n")
	h.waitForLines(2, "a")
	a.say(strings.Repeat("x", 1<<20) + "\n")
	a.quiet()
	require.Empty(t, a.answers("1"))
	h.stop()
	require.Equal(t, bad, h.logged("a", ".out")[0])
}

// Lines on stderr are logged and are never messages.
//
// Rows: B-06.
func TestWordsOnStderr(t *testing.T) {
	t.Parallel()
	s := newStage(t, quick+`
agent "a" {
  command = ["sh", "a.sh"]
}
`, "a.sh", "echo '"+asking("wrong", "query-agents", "{}")+"' >&2; echo '"+asking("right", "query-agents", "{}")+"'; read -r answer; echo \"heard $answer\"; exec cat").up("--json")
	heard := s.waitForLines(1, "a")[0]
	require.Contains(t, heard, `"correlationId":"right"`)
	waitForThat(t, "line on stderr", func() bool { return len(s.lines("a", control.StreamErr)) == 1 })
	require.Equal(t, asking("wrong", "query-agents", "{}"), s.lines("a", control.StreamErr)[0])
	s.stop()
	for _, line := range s.lines("a", control.StreamOut) {
		require.NotContains(t, line, "wrong")
	}
}

// An agent that uses no messages works as without them.
//
// Rows: B-07.
func TestWordsToNobody(t *testing.T) {
	t.Parallel()
	s := newStage(t, quick+`
agent "a" {
  command = ["sh", "-c", "echo a; sleep 0.1; echo b"]
}
`).up("--json", "--exit-when-idle")
	require.Equal(t, cli.ExitOK, s.await())
	require.Equal(t, []string{"a", "b"}, s.lines("a", control.StreamOut))
	require.Contains(t, s.events(events.AgentExited, "a")[0].Text, "exit 0")
}

// Tasks are announced to every agent, even one that only copies its stdin to a file.
//
// Rows: B-08, B-70.
func TestWordsToACopier(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss")+`
agent "copier" {
  command = ["sh", "-c", "exec cat >copied"]
  capabilities {
    names = ["copy"]
  }
}
`, "boss")
	boss := h.cast("boss")[0]
	task := boss.submit(`{"type":"t","name":"n","requiredCapabilities":["copy"]}`)
	waitForThat(t, "notice in the file", func() bool {
		text, _ := os.ReadFile(h.path("copied"))
		return strings.Contains(string(text), task.ID) && strings.HasSuffix(string(text), "\n")
	})
	h.stop()
	text, err := os.ReadFile(h.path("copied"))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	require.Len(t, lines, 2)
	require.Equal(t, "notify:task-assigned", heardAs(t, lines[0]).Type)
	require.JSONEq(t, fmt.Sprintf(`{"taskId":%q,"message":"Task assigned. Use TaskGet to view details."}`, task.ID), string(heardAs(t, lines[0]).Payload))
	require.Equal(t, "notify:shutdown", heardAs(t, lines[1]).Type)
}

// echoHCL is an agent that echoes its input.
const echoHCL = `
agent "echo" {
  command = ["cat"]
  capabilities {
    names = ["echo"]
  }
}
`

// An agent that echoes its input causes no loop: echoed messages of the orchestrator get no
// answer.
//
// Rows: B-19, B-20, T-02.
func TestWordsEcho(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss")+echoHCL, "boss")
	boss := h.cast("boss")[0]
	task := boss.submit(`{"type":"t","name":"n","requiredCapabilities":["echo"]}`)
	waitForThat(t, "echo", func() bool { return len(h.lines("echo", control.StreamOut)) == 1 })
	boss.granted(nil, "cancel-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	waitForThat(t, "echo", func() bool { return len(h.lines("echo", control.StreamOut)) == 2 })
	for _, line := range []string{
		`{"type":"response:success","id":"x","correlationId":"y","timestamp":"` + noon + `","payload":{}}`,
		`{"type":"response:error","id":"x","correlationId":"y","timestamp":"` + noon + `","error":{"code":"TIMEOUT","message":"m"}}`,
		`{"type":"notify:shutdown","id":"x","timestamp":"` + noon + `","payload":{}}`,
		`{"type":"notify:nothing","id":"x","timestamp":"` + noon + `","payload":{}}`,
	} {
		boss.say(line + "\n")
	}
	boss.quiet()
	require.Len(t, boss.all(), 3, "submit, cancel, and the question at the end")
	h.waitForLines(4, "boss")
	h.stop()
	lines := h.lines("echo", control.StreamOut)
	require.Len(t, lines, 3, "what it was told, each once")
	for i, kind := range []string{"task-assigned", "task-cancelled", "shutdown"} {
		require.Equal(t, "notify:"+kind, heardAs(t, lines[i]).Type)
	}
}

// On a terminal, messages are not echoed back as output, and pass unchanged in both directions.
//
// Rows: T-05.
func TestWordsOnATerminal(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss")+`
agent "tty" {
  command = ["puppet", "tty"]
  pty     = true
  capabilities {
    names = ["tty"]
  }
}
`, "boss", "tty")
	all := h.cast("boss", "tty")
	boss, tty := all[0], all[1]
	long := strings.Repeat("x", 10_000)
	task := boss.submit(fmt.Sprintf(`{"type":"t","name":"n","description":%q,"requiredCapabilities":["tty"]}`, long))
	tty.assigned(task.ID)
	var reply struct{ Task struct{ Description string } }
	tty.granted(&reply, "get-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	require.Equal(t, long, reply.Task.Description)
	tty.say(asking("crlf", "query-agents", "{}") + "\r\n")
	tty.answer("crlf")
	require.Empty(t, h.lines("tty", control.StreamOut))
	h.stop()
}
