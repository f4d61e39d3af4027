package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire"
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
	h := troupe(t, unhurried+puppetAgents("boss")+`
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
	h := troupe(t, unhurried+puppetAgents("boss")+echoHCL, "boss")
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

// An event is recorded with the id of the agent whose pipe it came on. It is never answered,
// valid or not.
//
// Rows: B-15, B-18, B-63, B-64, B-66, B-67.
func TestWordsEventsAreRecorded(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss")+holder("auto"), "boss", "holder")
	all := h.cast("boss", "holder")
	boss, held := all[0], all[1]
	task := boss.submit(toHold)
	held.assigned(task.ID)
	for _, line := range []string{
		telling("1", "progress", fmt.Sprintf(`{"taskId":%q,"progress":0.75,"message":"Compiles, now the manual"}`, task.ID)),
		telling("2", "error", fmt.Sprintf(`{"taskId":%q,"error":"it can live with that","recoverable":true}`, task.ID)),
		telling("3", "error", `{"error":"of no task","stack":"here\nthere"}`),
		telling("4", "question", `{"question":"fine?"}`),
	} {
		held.say(line + "\n")
	}
	held.quiet()
	require.Equal(t, 0.75, boss.task(task.ID).Progress)
	require.Equal(t, "Compiles, now the manual", boss.task(task.ID).Message)
	require.Equal(t, "running", boss.task(task.ID).Status)
	for kind, says := range map[string]string{
		events.TaskProgress: "75%  Compiles", events.TaskTrouble: "it can live with that", events.QuestionAsked: "fine?",
	} {
		found := h.waitForEvents(1, kind, "holder")[0]
		require.Contains(t, found.Text, says)
		require.Equal(t, "holder", found.Agent)
	}
	require.Len(t, h.waitForEvents(2, events.TaskTrouble, "holder"), 2)
	require.Contains(t, string(h.events(events.TaskTrouble, "holder")[1].Payload), `here\nthere`)
	held.say(telling("5", "progress", fmt.Sprintf(`{"taskId":%q,"progress":1}`, task.ID)) + "\n")
	held.quiet()
	require.Equal(t, "running", boss.task(task.ID).Status, "all of it is not the end of it")
	require.Len(t, held.all(), 3, "the notice and the answers to two questions")
	h.stop()
}

// An event:log is written to the log with its level and context.
//
// Rows: B-65.
func TestWordsLogEvent(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	entry := telling("l", "log", `{"level":"warn","message":"Warmed the cache","context":{"table":"users","rows":1000}}`)
	a.say(entry + "\n" + telling("m", "log", `{"level":"loud","message":"of a level of its own"}`) + "\n")
	waitForThat(t, "entries in the log", func() bool { return len(h.logged("a", ".out")) == 2 })
	require.Equal(t, entry, h.logged("a", ".out")[0], "the file has it word for word")
	a.quiet()
	require.Len(t, a.all(), 1)
	shown := h.ask("logs", "a", "--json")
	require.Contains(t, shown, "Warmed the cache")
	require.Contains(t, shown, "warn")
	require.Contains(t, shown, "1000")
	h.stop()
}

// An invalid event, or one that the agent may not send, changes nothing and gets no answer.
// People see that it was refused.
//
// Rows: B-63, B-64, B-68, B-78.
func TestWordsEventsThatAreIgnored(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("boss", "other")+holder("auto"), "boss", "other", "holder")
	all := h.cast("boss", "other", "holder")
	boss, other, held := all[0], all[1], all[2]
	task := boss.submit(toHold)
	held.assigned(task.ID)
	boss.await(task.ID, "running")
	progress := fmt.Sprintf(`{"taskId":%q,"progress":0.5}`, task.ID)
	fatal := fmt.Sprintf(`{"taskId":%q,"error":"mine now","recoverable":false}`, task.ID)
	for i, line := range []string{
		telling("1", "progress", progress), telling("2", "error", fatal),
		telling("3", "progress", `{"taskId":"task-nope","progress":0.5}`),
		telling("4", "progress", fmt.Sprintf(`{"taskId":%q,"progress":1.5}`, task.ID)),
		telling("5", "progress", `{"progress":"half"}`), telling("6", "nope", `{}`),
		`{"type":"event:question","timestamp":"` + noon + `","payload":{"question":"without an id?"}}`,
		strings.Replace(telling("8", "question", `{"question":"somebody else's?"}`), `"id"`, `"agentId":"holder","id"`, 1),
	} {
		other.say(line + "\n")
		other.quiet()
		require.Len(t, other.all(), i+1, line)
	}
	boss.say(telling("9", "error", fatal) + "\n" + telling("10", "progress", progress) + "\n")
	boss.quiet()
	require.Equal(t, "running", boss.task(task.ID).Status, "only its agent may tell of it")
	require.Zero(t, boss.task(task.ID).Progress)
	require.Empty(t, h.questions())
	require.Contains(t, h.waitForEvents(1, events.AgentRefused, "other")[0].Text, "event:progress")
	h.stop()
	require.Empty(t, h.events(events.TaskProgress, ""))
}

// audited returns the lines of the audit of requests.
func (s *stage) audited() (lines []map[string]any) {
	s.t.Helper()
	names, err := filepath.Glob(filepath.Join(s.state(), "audit", "*.jsonl"))
	require.NoError(s.t, err)
	slices.Sort(names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(s.t, err)
		for line := range strings.Lines(string(text)) {
			var entry map[string]any
			require.NoError(s.t, json.Unmarshal([]byte(line), &entry), "%q", line)
			lines = append(lines, entry)
		}
	}
	return lines
}

// Every request is a line in the audit: agent, operation, id and outcome. So are refused
// requests and ignored events.
//
// Rows: B-78, B-81.
func TestWordsAudit(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	a.say(asking("yes", "query-agents", `{}`) + "\n")
	a.say(asking("no", "get-task", `{"taskId":"task-nope"}`) + "\n")
	a.say(asking("bad", "submit-task", `{}`) + "\n")
	a.say(asking("none", "nope", `{}`) + "\n")
	a.say(strings.Replace(asking("mask", "query-agents", `{}`), `"id"`, `"agentId":"b","id"`, 1) + "\n")
	a.say(`{"type":"request:query-agents","id":7,"timestamp":"` + noon + `"}` + "\n")
	a.say(strings.Replace(telling("event", "question", `{"question":"x"}`), `"id"`, `"agentId":"b","id"`, 1) + "\n")
	a.say("a plain line\n" + telling("fine", "question", `{"question":"x"}`) + "\n")
	a.say(asking("wait", "ask-user", `{"question":"y?"}`) + "\n")
	a.say(asking("yes", "submit-task", `{"type":"t","name":"n"}`) + "\n")
	a.answer("yes")
	a.quiet()
	h.operated(nil, "list-questions", `{}`)
	h.operate("answer-question", `{"questionId":"q99","answer":"x"}`)
	h.stop()
	type entry struct{ actor, kind, id, outcome any }
	var got []entry
	for _, line := range h.audited() {
		require.NotEmpty(t, line["at"])
		if line["actor"] == "operator" {
			line["id"] = "?"
		}
		got = append(got, entry{line["actor"], line["type"], line["id"], line["outcome"]})
	}
	require.ElementsMatch(t, []entry{
		{"agent:a", "request:query-agents", "yes", "granted"},
		{"agent:a", "request:get-task", "no", "not_found"},
		{"agent:a", "request:submit-task", "bad", "invalid"},
		{"agent:a", "request:nope", "none", "unknown_type"},
		{"agent:a", "request:query-agents", "mask", "denied"},
		{"agent:a", "request:query-agents", 7.0, "invalid"},
		{"agent:a", "event:question", "event", "denied"},
		{"agent:a", "request:ask-user", "wait", "granted"},
		{"agent:a", "request:submit-task", "yes", "granted"},
		{"agent:a", "request:query-agents", "req-a-1", "granted"},
		{"operator", "request:list-questions", "?", "granted"},
		{"operator", "request:answer-question", "?", "not_found"},
	}, got)
}

// The log has the text of ignored error events, and the idempotency keys of refused mail.
// Operations of operators are refused as such.
func TestWordsIgnoredAndRefused(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a", "b", "c"), "a", "b", "c")
	actors := h.cast("a", "b", "c")
	actors[0].say(telling("e", "error", `{"taskId":"none","error":"the tap is broken","recoverable":false}`) + "\n")
	refused := h.waitForEvents(1, events.AgentRefused, "a")[0].Text
	require.Contains(t, refused, "event:error")
	require.Contains(t, refused, "it says: the tap is broken")
	actors[0].say(telling("f", "error", `{"taskId":"none","error":"the tap drips","recoverable":true}`) + "\n")
	h.waitForEvents(1, events.TaskTrouble, "a")
	require.Regexp(t, `(?m) a \. the tap drips$`, h.ask("logs", "a"))

	actors[1].say(`{"from_actor":"HO:x","to_actor":"GO","topic":"message.direct","payload":7,"idempotency_key":"key-7"}` + "\n")
	require.Contains(t, h.waitForEvents(1, events.AgentRefused, "b")[0].Text, `with the idempotency_key "key-7"`)

	for n, o := range wire.ControlOperations {
		id := fmt.Sprint("op", n)
		actors[2].say(asking(id, o.Name, "{}") + "\n")
		require.Equal(t, "UNAUTHORIZED", actors[2].answer(id).Error.Code, o.Name)
	}
	h.stop()
}
