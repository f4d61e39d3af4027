package stdio

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// A request on stdout is answered on stdin. Two requests in one write are two, and one in three
// writes is one.
//
// Rows: B-01, B-02, B-03, B-17, B-21, B-24, T-01.
func TestStdioLinesInChunks(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a"), "a")
	a := h.StartAll("a")[0]
	a.Say(stage.Request("one", "query-agents", `{}`) + "\n" + stage.Request("two", "query-tasks", `{}`) + "\n")
	require.Equal(t, "response:success", a.Answer("one").Type)
	require.Equal(t, "response:success", a.Answer("two").Type)

	line := stage.Request("three", "query-agents", `{}`)
	for _, part := range []string{line[:7], line[7:40], line[40:]} {
		a.Say(part)
		h.Status() // gives the part time to be read alone; the result does not depend on it
	}
	require.Empty(t, a.Answers("three"), "there is no line yet")
	a.Say("\n")
	require.Equal(t, "response:success", a.Answer("three").Type)
	a.Settle()
	for _, id := range []string{"one", "two", "three"} {
		require.Len(t, a.Answers(id), 1, id)
	}
	require.Empty(t, h.Lines("a", control.StreamOut), "a message is no log")
	h.Stop()
}

// A message may be as long as a line, and may be the unterminated end of the stream.
//
// Rows: B-02, B-09, B-10, T-01.
func TestStdioLongAndLastLine(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a"), "a")
	a := h.StartAll("a")[0]
	long := strings.Repeat("long ", 400<<10)
	task := a.Submit(fmt.Sprintf(`{"type":"t","name":"n","description":%q}`, long))
	var reply struct{ Task struct{ Description string } }
	a.Granted(&reply, "get-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	require.True(t, reply.Task.Description == long, "%d bytes came back", len(reply.Task.Description))
	a.Say(stage.Event("e", "question", `{"question":"my last words?"}`))
	a.Exit(0)
	h.WaitForEvents(1, events.AgentExited, "a")
	require.Len(t, h.WaitForEvents(1, events.QuestionAsked, "a"), 1)
	h.Stop()
}

// logLines are lines that are not messages of any protocol.
var logLines = []string{
	"hello", "{", "}", `{"level":"info","msg":"x"}`, `{"type":"info","message":"x"}`, "123", `"s"`, "[1]", "null", "true", "",
	`[{"type":"request:get-task","id":"1"}]`, `{"TYPE":"request:query-agents","id":"1","timestamp":"` + stage.Noon + `"}`,
	`{"type":7,"id":"1"}`, `{"type":"event:log","type":"event:log","id":"1","timestamp":"` + stage.Noon + `"}`,
	stage.Request("1", "query-agents", "{}") + " " + stage.Request("2", "query-agents", "{}"),
	"text before " + stage.Request("1", "query-agents", "{}"), strings.TrimSuffix(stage.Request("1", "query-agents", "{}"), "}"),
}

// Lines that are not messages are logged unchanged and get no answer.
//
// Rows: B-04, B-05, B-84, T-03.
func TestStdioLinesOfLog(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a"), "a")
	a := h.StartAll("a")[0]
	a.Say(strings.Join(logLines, "\n") + "\n")
	require.Equal(t, logLines, h.WaitForLines(len(logLines), "a"))
	a.Settle()
	require.Len(t, a.All(), 1, "only what was asked is answered")
	for id, twice := range map[string]string{"2": `"type":"request:query-agents"`, "3": `"timestamp":"` + stage.Noon + `"`, "4": `"payload":{}`} {
		a.Say(fmt.Sprintf(`{"type":"request:query-agents",%s,"id":%q,"timestamp":%q,"payload":{}}`, twice, id, stage.Noon) + "\n")
		require.Equal(t, "INVALID_REQUEST", a.Answer(id).Error.Code, twice)
	}
	h.Stop()
	require.Equal(t, logLines, h.Logged("a", ".out"))
}

// Invalid UTF-8 is logged, and later messages are still read.
//
// Rows: B-09.
func TestStdioBinaryOutput(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a"), "a")
	a := h.StartAll("a")[0]
	bad := "\xff\xfe\x00\x1b[2J" + strings.Repeat("\xc3(", 1000)
	a.Say(bad + "\n" + strings.TrimSuffix(stage.Request("1", "query-agents", `{"role":"`+"\xff"+`"}`), "") + "\n")
	h.WaitForLines(2, "a")
	a.Say(strings.Repeat("x", 1<<20) + "\n")
	a.Settle()
	require.Empty(t, a.Answers("1"))
	h.Stop()
	require.Equal(t, bad, h.Logged("a", ".out")[0])
}

// Lines on stderr are logged and are never messages.
//
// Rows: B-06.
func TestStdioMessagesOnStderr(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "a" {
  command = ["sh", "a.sh"]
}
`, "a.sh", "echo '"+stage.Request("wrong", "query-agents", "{}")+"' >&2; echo '"+stage.Request("right", "query-agents", "{}")+"'; read -r answer; echo \"heard $answer\"; exec cat").Up("--json")
	heard := s.WaitForLines(1, "a")[0]
	require.Contains(t, heard, `"correlationId":"right"`)
	stage.WaitFor(t, "line on stderr", func() bool { return len(s.Lines("a", control.StreamErr)) == 1 })
	require.Equal(t, stage.Request("wrong", "query-agents", "{}"), s.Lines("a", control.StreamErr)[0])
	s.Stop()
	for _, line := range s.Lines("a", control.StreamOut) {
		require.NotContains(t, line, "wrong")
	}
}

// An agent that uses no messages works as without them.
//
// Rows: B-07.
func TestStdioAgentWithoutMessages(t *testing.T) {
	t.Parallel()
	s := stage.New(t, stage.QuickStop+`
agent "a" {
  command = ["sh", "-c", "echo a; sleep 0.1; echo b"]
}
`).Up("--json", "--exit-when-idle")
	require.Equal(t, cli.ExitOK, s.Await())
	require.Equal(t, []string{"a", "b"}, s.Lines("a", control.StreamOut))
	require.Contains(t, s.Events(events.AgentExited, "a")[0].Text, "exit 0")
}

// Tasks are announced to every agent, even one that only copies its stdin to a file.
//
// Rows: B-08, B-70.
func TestStdioAgentThatCopiesItsInput(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.PatientStop+stage.ScriptedAgents("boss")+`
agent "copier" {
  command = ["sh", "-c", "exec cat >copied"]
  capabilities {
    names = ["copy"]
  }
}
`, "boss")
	boss := h.StartAll("boss")[0]
	task := boss.Submit(`{"type":"t","name":"n","requiredCapabilities":["copy"]}`)
	stage.WaitFor(t, "notice in the file", func() bool {
		text, _ := os.ReadFile(h.Path("copied"))
		return strings.Contains(string(text), task.ID) && strings.HasSuffix(string(text), "\n")
	})
	h.Stop()
	text, err := os.ReadFile(h.Path("copied"))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	require.Len(t, lines, 2)
	require.Equal(t, "notify:task-assigned", stage.Received(t, lines[0]).Type)
	require.JSONEq(t, fmt.Sprintf(`{"taskId":%q,"message":"Task assigned. Use TaskGet to view details."}`, task.ID), string(stage.Received(t, lines[0]).Payload))
	require.Equal(t, "notify:shutdown", stage.Received(t, lines[1]).Type)
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
func TestStdioEcho(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.PatientStop+stage.ScriptedAgents("boss")+echoHCL, "boss")
	boss := h.StartAll("boss")[0]
	task := boss.Submit(`{"type":"t","name":"n","requiredCapabilities":["echo"]}`)
	stage.WaitFor(t, "echo", func() bool { return len(h.Lines("echo", control.StreamOut)) == 1 })
	boss.Granted(nil, "cancel-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	stage.WaitFor(t, "echo", func() bool { return len(h.Lines("echo", control.StreamOut)) == 2 })
	for _, line := range []string{
		`{"type":"response:success","id":"x","correlationId":"y","timestamp":"` + stage.Noon + `","payload":{}}`,
		`{"type":"response:error","id":"x","correlationId":"y","timestamp":"` + stage.Noon + `","error":{"code":"TIMEOUT","message":"m"}}`,
		`{"type":"notify:shutdown","id":"x","timestamp":"` + stage.Noon + `","payload":{}}`,
		`{"type":"notify:nothing","id":"x","timestamp":"` + stage.Noon + `","payload":{}}`,
	} {
		boss.Say(line + "\n")
	}
	boss.Settle()
	require.Len(t, boss.All(), 3, "submit, cancel, and the question at the end")
	h.WaitForLines(4, "boss")
	h.Stop()
	lines := h.Lines("echo", control.StreamOut)
	require.Len(t, lines, 3, "what it was told, each once")
	for i, kind := range []string{"task-assigned", "task-cancelled", "shutdown"} {
		require.Equal(t, "notify:"+kind, stage.Received(t, lines[i]).Type)
	}
}

// On a terminal, messages are not echoed back as output, and pass unchanged in both directions.
//
// Rows: T-05.
func TestStdioAgentInATerminal(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("boss")+`
agent "tty" {
  command = ["scripted", "tty"]
  pty     = true
  capabilities {
    names = ["tty"]
  }
}
`, "boss", "tty")
	all := h.StartAll("boss", "tty")
	boss, tty := all[0], all[1]
	long := strings.Repeat("x", 10_000)
	task := boss.Submit(fmt.Sprintf(`{"type":"t","name":"n","description":%q,"requiredCapabilities":["tty"]}`, long))
	tty.Assigned(task.ID)
	var reply struct{ Task struct{ Description string } }
	tty.Granted(&reply, "get-task", fmt.Sprintf(`{"taskId":%q}`, task.ID))
	require.Equal(t, long, reply.Task.Description)
	tty.Say(stage.Request("crlf", "query-agents", "{}") + "\r\n")
	tty.Answer("crlf")
	require.Empty(t, h.Lines("tty", control.StreamOut))
	h.Stop()
}

// An event is recorded with the id of the agent that owns its pipe. It is never answered, valid or
// not.
//
// Rows: B-15, B-18, B-63, B-64, B-66, B-67.
func TestStdioEventsAreRecorded(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("boss")+holder("auto"), "boss", "holder")
	all := h.StartAll("boss", "holder")
	boss, held := all[0], all[1]
	task := boss.Submit(toHold)
	held.Assigned(task.ID)
	for _, line := range []string{
		stage.Event("1", "progress", fmt.Sprintf(`{"taskId":%q,"progress":0.75,"message":"Compiles, now the manual"}`, task.ID)),
		stage.Event("2", "error", fmt.Sprintf(`{"taskId":%q,"error":"it can live with that","recoverable":true}`, task.ID)),
		stage.Event("3", "error", `{"error":"of no task","stack":"here\nthere"}`),
		stage.Event("4", "question", `{"question":"fine?"}`),
	} {
		held.Say(line + "\n")
	}
	held.Settle()
	require.Equal(t, 0.75, boss.Task(task.ID).Progress)
	require.Equal(t, "Compiles, now the manual", boss.Task(task.ID).Message)
	require.Equal(t, "running", boss.Task(task.ID).Status)
	for kind, says := range map[string]string{
		events.TaskProgress: "75%  Compiles", events.TaskTrouble: "it can live with that", events.QuestionAsked: "fine?",
	} {
		found := h.WaitForEvents(1, kind, "holder")[0]
		require.Contains(t, found.Text, says)
		require.Equal(t, "holder", found.Agent)
	}
	require.Len(t, h.WaitForEvents(2, events.TaskTrouble, "holder"), 2)
	require.Contains(t, string(h.Events(events.TaskTrouble, "holder")[1].Payload), `here\nthere`)
	held.Say(stage.Event("5", "progress", fmt.Sprintf(`{"taskId":%q,"progress":1}`, task.ID)) + "\n")
	held.Settle()
	require.Equal(t, "running", boss.Task(task.ID).Status, "all of it is not the end of it")
	require.Len(t, held.All(), 3, "the notice and the answers to two questions")
	h.Stop()
}

// An event:log is written to the log with its level and context.
//
// Rows: B-65.
func TestStdioLogEvent(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a"), "a")
	a := h.StartAll("a")[0]
	entry := stage.Event("l", "log", `{"level":"warn","message":"Warmed the cache","context":{"table":"users","rows":1000}}`)
	a.Say(entry + "\n" + stage.Event("m", "log", `{"level":"loud","message":"of a level of its own"}`) + "\n")
	stage.WaitFor(t, "entries in the log", func() bool { return len(h.Logged("a", ".out")) == 2 })
	require.Equal(t, entry, h.Logged("a", ".out")[0], "the file has it word for word")
	a.Settle()
	require.Len(t, a.All(), 1)
	shown := h.Ask("logs", "a", "--json")
	require.Contains(t, shown, "Warmed the cache")
	require.Contains(t, shown, "warn")
	require.Contains(t, shown, "1000")
	h.Stop()
}

// An event that is invalid or not allowed for the agent has no effect and gets no answer. People
// see that it was refused.
//
// Rows: B-63, B-64, B-68, B-78.
func TestStdioIgnoredEvents(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("boss", "other")+holder("auto"), "boss", "other", "holder")
	all := h.StartAll("boss", "other", "holder")
	boss, other, held := all[0], all[1], all[2]
	task := boss.Submit(toHold)
	held.Assigned(task.ID)
	await(boss, task.ID, "running")
	progress := fmt.Sprintf(`{"taskId":%q,"progress":0.5}`, task.ID)
	fatal := fmt.Sprintf(`{"taskId":%q,"error":"mine now","recoverable":false}`, task.ID)
	for i, line := range []string{
		stage.Event("1", "progress", progress), stage.Event("2", "error", fatal),
		stage.Event("3", "progress", `{"taskId":"task-nope","progress":0.5}`),
		stage.Event("4", "progress", fmt.Sprintf(`{"taskId":%q,"progress":1.5}`, task.ID)),
		stage.Event("5", "progress", `{"progress":"half"}`), stage.Event("6", "nope", `{}`),
		`{"type":"event:question","timestamp":"` + stage.Noon + `","payload":{"question":"without an id?"}}`,
		strings.Replace(stage.Event("8", "question", `{"question":"somebody else's?"}`), `"id"`, `"agentId":"holder","id"`, 1),
	} {
		other.Say(line + "\n")
		other.Settle()
		require.Len(t, other.All(), i+1, line)
	}
	boss.Say(stage.Event("9", "error", fatal) + "\n" + stage.Event("10", "progress", progress) + "\n")
	boss.Settle()
	require.Equal(t, "running", boss.Task(task.ID).Status, "only its agent may tell of it")
	require.Zero(t, boss.Task(task.ID).Progress)
	require.Empty(t, h.Questions())
	require.Contains(t, h.WaitForEvents(1, events.AgentRefused, "other")[0].Text, "event:progress")
	h.Stop()
	require.Empty(t, h.Events(events.TaskProgress, ""))
}

// Every request is a line in the audit: agent, operation, id and outcome. So are refused
// requests and ignored events.
//
// Rows: B-78, B-81.
func TestStdioAudit(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a"), "a")
	a := h.StartAll("a")[0]
	a.Say(stage.Request("yes", "query-agents", `{}`) + "\n")
	a.Say(stage.Request("no", "get-task", `{"taskId":"task-nope"}`) + "\n")
	a.Say(stage.Request("bad", "submit-task", `{}`) + "\n")
	a.Say(stage.Request("none", "nope", `{}`) + "\n")
	a.Say(strings.Replace(stage.Request("mask", "query-agents", `{}`), `"id"`, `"agentId":"b","id"`, 1) + "\n")
	a.Say(`{"type":"request:query-agents","id":7,"timestamp":"` + stage.Noon + `"}` + "\n")
	a.Say(strings.Replace(stage.Event("event", "question", `{"question":"x"}`), `"id"`, `"agentId":"b","id"`, 1) + "\n")
	a.Say("a plain line\n" + stage.Event("fine", "question", `{"question":"x"}`) + "\n")
	a.Say(stage.Request("wait", "ask-user", `{"question":"y?"}`) + "\n")
	a.Say(stage.Request("yes", "submit-task", `{"type":"t","name":"n"}`) + "\n")
	a.Answer("yes")
	a.Settle()
	h.Operated(nil, "list-questions", `{}`)
	h.Operate("answer-question", `{"questionId":"q99","answer":"x"}`)
	h.Stop()
	type entry struct{ actor, kind, id, outcome any }
	var got []entry
	for _, line := range h.Audited() {
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
func TestStdioIgnoredAndRefused(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a", "b", "c"), "a", "b", "c")
	actors := h.StartAll("a", "b", "c")
	actors[0].Say(stage.Event("e", "error", `{"taskId":"none","error":"the tap is broken","recoverable":false}`) + "\n")
	refused := h.WaitForEvents(1, events.AgentRefused, "a")[0].Text
	require.Contains(t, refused, "event:error")
	require.Contains(t, refused, "its error: the tap is broken")
	actors[0].Say(stage.Event("f", "error", `{"taskId":"none","error":"the tap drips","recoverable":true}`) + "\n")
	h.WaitForEvents(1, events.TaskTrouble, "a")
	require.Regexp(t, `(?m) a \. the tap drips$`, h.Ask("logs", "a"))

	actors[1].Say(`{"from_actor":"HO:x","to_actor":"GO","topic":"message.direct","payload":7,"idempotency_key":"key-7"}` + "\n")
	require.Contains(t, h.WaitForEvents(1, events.AgentRefused, "b")[0].Text, `with the idempotency_key "key-7"`)

	for n, o := range wire.ControlOperations {
		id := fmt.Sprint("op", n)
		actors[2].Say(stage.Request(id, o.Name, "{}") + "\n")
		require.Equal(t, "UNAUTHORIZED", actors[2].Answer(id).Error.Code, o.Name)
	}
	h.Stop()
}
