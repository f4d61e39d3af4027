package stdio

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/events"
)

// An agent asks a question. The API lists it with its labels, and accepts only one of its values
// as the answer.
//
// Rows: B-58, B-59, B-61, B-62.
func TestStdioAskAndAnswer(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a"), "a")
	a := h.StartAll("a")[0]
	id := a.Request("ask-user", `{"question":"Which database shall I write for?","options":[{"label":"PostgreSQL","value":"postgres"},{"label":"SQLite","value":"sqlite"}],"timeout":300000}`)
	asked := h.WaitForQuestions(1)[0]
	require.Equal(t, "a", asked.Agent)
	require.Equal(t, "Which database shall I write for?", asked.Question)
	require.Equal(t, []wire.Option{{Label: "PostgreSQL", Value: "postgres"}, {Label: "SQLite", Value: "sqlite"}}, asked.Options)
	require.True(t, asked.Blocking)
	status, body := h.Operate("answer-question", fmt.Sprintf(`{"questionId":%q,"answer":"basic"}`, asked.ID))
	require.Equal(t, http.StatusBadRequest, status, "%s", body)
	require.Contains(t, string(body), "postgres")
	require.Len(t, h.Questions(), 1)
	require.Empty(t, a.Answers(id))

	require.Contains(t, h.Ask("inbox"), "[sqlite: SQLite]")
	h.Ask("inbox", "answer", asked.ID, "postgres")
	m := a.Answer(id)
	var said struct {
		Answer   string
		Metadata struct{ AnsweredAt string }
	}
	require.NoError(t, json.Unmarshal(m.Payload, &said))
	require.Equal(t, "postgres", said.Answer)
	_, err := time.Parse(time.RFC3339, said.Metadata.AnsweredAt)
	require.NoError(t, err)
	require.Empty(t, h.Questions())
	status, _ = h.Operate("answer-question", fmt.Sprintf(`{"questionId":%q,"answer":"sqlite"}`, asked.ID))
	require.Equal(t, http.StatusNotFound, status, "it was answered")
	a.Settle()
	require.Len(t, a.Answers(id), 1)

	free := a.Request("ask-user", `{"question":"And why?"}`)
	h.AnswerQuestion(h.WaitForQuestions(1)[0].ID, "two\nlines")
	require.Contains(t, string(a.Answer(free).Payload), `"answer":"two\nlines"`)
	h.Stop()
}

// A question uses its own timeout, not that of the file.
//
// Rows: B-60, T-07.
func TestStdioTimeoutOfAQuestion(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a")+"protocol {\n  request_timeout = \"100ms\"\n}\n", "a")
	a := h.StartAll("a")[0]
	long := a.Request("ask-user", `{"question":"long?","timeout":300000}`)
	for range 3 {
		require.Equal(t, "TIMEOUT", a.Answer(a.Request("ask-user", `{"question":"short?"}`)).Error.Code)
	}
	asked := h.WaitForQuestions(1)[0]
	require.Equal(t, "long?", asked.Question)
	at, err := time.Parse(time.RFC3339, asked.AskedAt)
	require.NoError(t, err)
	due, err := time.Parse(time.RFC3339, asked.Deadline)
	require.NoError(t, err)
	require.Equal(t, 5*time.Minute, due.Sub(at))
	h.AnswerQuestion(asked.ID, "yes")
	require.Nil(t, a.Answer(long).Error)
	h.Stop()
}

// An event:question is listed for people, who may answer it. The agent does not get the answer.
//
// Rows: B-18, B-63, B-67.
func TestStdioOpenQuestion(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a"), "a")
	a := h.StartAll("a")[0]
	a.Say(stage.Event("q", "question", `{"question":"May I drop the old column?","context":{"rows":15}}`) + "\n")
	asked := h.WaitForQuestions(1)[0]
	require.False(t, asked.Blocking)
	require.Equal(t, "a", asked.Agent)
	require.JSONEq(t, `{"rows":15}`, string(asked.Context))
	var reply wire.QuestionReply
	h.Operated(&reply, "answer-question", fmt.Sprintf(`{"questionId":%q,"answer":"no"}`, asked.ID))
	require.False(t, reply.Told)
	a.Settle()
	require.Len(t, a.All(), 1, "nothing was written back")
	h.Stop()
}

// The text of a question is escaped on the screen and stored unchanged.
//
// Rows: B-58, B-80.
func TestStdioQuestionIsInert(t *testing.T) {
	t.Parallel()
	const evil = "\x1b[2J\x1b]0;owned\x07<script>alert(1)</script>\u202e\r\nq9  root  yes?"
	h := stage.NewTeam(t, stage.Scripted("a"), "a")
	h.Start(exec.Command(h.Program, "up", "--state-dir", h.State(), "--timeout", "3m"))
	a := h.NextRun("a")
	spelled, err := json.Marshal(evil)
	require.NoError(t, err)
	id := a.Request("ask-user", fmt.Sprintf(`{"question":%s,"options":[{"label":%s,"value":"y"}]}`, spelled, spelled))
	asked := h.WaitForQuestions(1)[0]
	require.Equal(t, evil, asked.Question)
	require.Equal(t, evil, asked.Options[0].Label)
	stage.WaitFor(t, "question on the console", func() bool { return strings.Contains(h.Stdout.All(), "owned") })
	screens := map[string]string{"console": h.Stdout.All(), "inbox": h.Ask("inbox"), "events": h.Ask("events")}
	for name, screen := range screens {
		require.Contains(t, screen, `\x1b[2J`, name)
		for _, c := range screen {
			require.True(t, c == '\n' || c >= ' ' && c != 0x7f && c != 0x202e, "%s: %q in %q", name, c, screen)
		}
		for line := range strings.Lines(screen) {
			require.False(t, strings.HasPrefix(line, "q9"), "%s: a line of its own making", name)
		}
	}
	h.Ask("inbox", "answer", asked.ID, "y")
	require.Contains(t, string(a.Answer(id).Payload), `"answer":"y"`)
	h.Stop()
}

// A question is kept after its run ends. If the next run asks it again, it is the same question,
// and the next run gets the answer.
//
// Rows: B-30, B-61.
func TestStdioQuestionIsAskedAgain(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.QuickStop+phoenix, "phoenix")
	a := h.StartAll("phoenix")[0]
	line := stage.Request("why", "ask-user", `{"question":"why?","timeout":300000}`) + "\n"
	a.Say(line)
	asked := h.WaitForQuestions(1)[0]
	a.Kill()
	a = h.NextRun("phoenix")
	require.Len(t, h.Questions(), 1, "it waits for an answer still")
	a.Say(line)
	a.Settle()
	require.Equal(t, asked.ID, h.WaitForQuestions(1)[0].ID, "nobody is asked twice")
	var reply wire.QuestionReply
	h.Operated(&reply, "answer-question", fmt.Sprintf(`{"questionId":%q,"answer":"because"}`, asked.ID))
	require.True(t, reply.Told)
	require.Contains(t, string(a.Answer("why").Payload), "because")
	a.Settle()
	require.Len(t, a.Answers("why"), 1)
	h.Stop()
}

// A program that uses an agent's key at the API gets its answer there.
//
// Rows: B-21, B-26, B-61, B-62.
func TestStdioAskOverHTTP(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a"), "a")
	a := h.StartAll("a")[0]
	var issued wire.IssuedKey
	h.Operated(&issued, "issue-key", `{"agent":"a"}`)
	type said struct {
		status int
		body   []byte
	}
	heard := make(chan said, 1)
	go func() {
		status, body := h.Operate("ask-user", `{"question":"at the door?","timeout":300000}`, issued.Key)
		heard <- said{status, body}
	}()
	asked := h.WaitForQuestions(1)[0]
	require.Equal(t, "a", asked.Agent)
	h.AnswerQuestion(asked.ID, "come in")
	answer := <-heard
	require.Equal(t, http.StatusOK, answer.status, "%s", answer.body)
	require.Contains(t, string(answer.body), "come in")
	status, body := h.Operate("ask-user", `{"question":"too late?","timeout":100}`, issued.Key)
	require.Equal(t, http.StatusGatewayTimeout, status, "%s", body)
	status, _ = h.Operate("list-questions", `{}`, issued.Key)
	require.Equal(t, http.StatusForbidden, status)
	status, _ = h.Operate("query-agents", `{}`, "orc_wrong")
	require.Equal(t, http.StatusUnauthorized, status)
	a.Settle()
	require.Len(t, a.All(), 1, "what was asked at the door is not answered on the pipe")
	h.Stop()
}

// Tests of answers: each request has exactly one, and its form never varies.

// Rows: B-13, B-14, B-22, B-24, B-25, T-06.
func TestStdioSuccessResponse(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a"), "a")
	a := h.StartAll("a")[0]
	ids := []string{"req-7b1c90de-52f4-4c1e-9a60-3d5e8f0a2100", "1", "ünïcödé ✓ 😀", `with "quotes" and \`, "\u2028", strings.Repeat("long", 1000)}
	seen := make(map[string]bool)
	for _, id := range ids {
		spelled, err := json.Marshal(id)
		require.NoError(t, err)
		a.Say(fmt.Sprintf(`{"type":"request:query-agents","id":%s,"timestamp":"%s","payload":{}}`, spelled, stage.Noon) + "\n")
		m := a.Answer(id)
		require.Equal(t, []string{"correlationId", "id", "payload", "timestamp", "type"}, m.Keys)
		require.Equal(t, "response:success", m.Type)
		require.NotEmpty(t, m.ID)
		require.False(t, seen[m.ID], "two answers with one id")
		seen[m.ID] = true
		_, err = time.Parse(time.RFC3339, m.Timestamp)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(m.Timestamp, "Z"))
	}
	// The id is the same in any spelling.
	a.Say(`{"type":"request:query-agents","id":"\u0041\/b","timestamp":"` + stage.Noon + `"}` + "\n")
	a.Answer("A/b")
	h.Stop()
}

// Rows: B-12, B-14, B-16, B-23, B-27, B-28, B-33, B-74, B-76.
func TestStdioErrorResponse(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a"), "a")
	a := h.StartAll("a")[0]
	for i, test := range []struct{ kind, rest, code string }{
		{"request:nope", `,"timestamp":"` + stage.Noon + `","payload":{}`, "INVALID_MESSAGE_TYPE"},
		{"request:", `,"timestamp":"` + stage.Noon + `","payload":{}`, "INVALID_MESSAGE_TYPE"},
		{"request:submit-task", `,"timestamp":"` + stage.Noon + `","payload":{"type":"t"}`, "INVALID_REQUEST"},
		{"request:submit-task", `,"timestamp":"` + stage.Noon + `"`, "INVALID_REQUEST"},
		{"request:query-agents", `,"timestamp":"` + stage.Noon + `","payload":[]`, "INVALID_REQUEST"},
		{"request:query-agents", `,"timestamp":"` + stage.Noon + `","payload":"{}"`, "INVALID_REQUEST"},
		{"request:query-agents", `,"payload":{}`, "INVALID_REQUEST"},
		{"request:query-agents", `,"timestamp":"yesterday","payload":{}`, "INVALID_REQUEST"},
		{"request:query-agents", `,"timestamp":1700000000,"payload":{}`, "INVALID_REQUEST"},
		{"request:query-agents", `,"timestamp":"` + stage.Noon + `","payload":{"role":"boss"}`, "INVALID_REQUEST"},
		{"request:query-tasks", `,"timestamp":"` + stage.Noon + `","payload":{"limit":0}`, "INVALID_REQUEST"},
		{"request:get-task", `,"timestamp":"` + stage.Noon + `","payload":{}`, "INVALID_REQUEST"},
		{"request:get-task", `,"timestamp":"` + stage.Noon + `","payload":{"taskId":"task-nope"}`, "NOT_FOUND"},
		{"request:ask-user", `,"timestamp":"` + stage.Noon + `","payload":{}`, "INVALID_REQUEST"},
		{"request:list-questions", `,"timestamp":"` + stage.Noon + `","payload":{}`, "UNAUTHORIZED"},
		{"request:query-agents", `,"timestamp":"` + stage.Noon + `","agentId":"b","payload":{}`, "UNAUTHORIZED"},
	} {
		id := fmt.Sprintf("bad-%d", i)
		a.Say(fmt.Sprintf(`{"type":%q,"id":%q%s}`, test.kind, id, test.rest) + "\n")
		m := a.Answer(id)
		require.Equal(t, []string{"correlationId", "error", "id", "timestamp", "type"}, m.Keys)
		require.Equal(t, "response:error", m.Type)
		require.Equal(t, test.code, m.Error.Code, "%s%s", test.kind, test.rest)
		require.NotEmpty(t, m.Error.Message)
		require.NotNil(t, m.Error.Details)
	}
	role := a.Refused("INVALID_REQUEST", "query-agents", `{"role":"gardener"}`)
	require.Equal(t, "Invalid role specified", role.Message)
	require.Equal(t, "gardener", role.Details["role"])
	a.Settle()
	h.Stop()
}

// A request without a usable id is answered too.
//
// Rows: B-13, B-21, B-27.
func TestStdioRequestWithoutID(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a"), "a")
	a := h.StartAll("a")[0]
	for _, test := range []struct{ member, correlation string }{
		{"", "null"}, {`"id":null,`, "null"}, {`"id":{},`, "null"}, {`"id":7,`, "7"}, {`"id":9007199254740993,`, "9007199254740993"}, {`"id":"",`, `""`},
	} {
		before := len(a.All())
		a.Say(`{"type":"request:query-agents",` + test.member + `"timestamp":"` + stage.Noon + `","payload":{}}` + "\n")
		a.Wait("answer", func(*stage.Message) bool { return len(a.All()) > before })
		m := a.All()[before]
		require.Equal(t, "INVALID_REQUEST", m.Error.Code, test.member)
		require.Equal(t, test.correlation, string(m.CorrelationID), test.member)
	}
	h.Stop()
}

// A misspelled request is refused; a line that only resembles one is a log line.
//
// Rows: B-28, T-03.
func TestStdioMisspelled(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a"), "a")
	a := h.StartAll("a")[0]
	a.Say(`{"type":"query-agents","id":"1","timestamp":"` + stage.Noon + `","payload":{}}` + "\n")
	require.Equal(t, "INVALID_MESSAGE_TYPE", a.Answer("1").Error.Code)
	a.Say(`{"type":"event:nope","id":"2","timestamp":"` + stage.Noon + `","payload":{}}` + "\n")
	a.Settle()
	require.Empty(t, a.Answers("2"), "events have no answer")
	h.WaitForLines(1, "a")
	h.Stop()
}

// An open question does not delay the answers to later requests.
//
// Rows: B-26, T-07.
func TestStdioAnswersOutOfOrder(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a"), "a")
	a := h.StartAll("a")[0]
	a.Say(stage.Request("slow", "ask-user", `{"question":"which?","timeout":300000}`) + "\n" + stage.Request("fast", "query-agents", `{}`) + "\n")
	a.Answer("fast")
	require.Empty(t, a.Answers("slow"))
	h.AnswerQuestion("q1", "this one")
	require.Equal(t, "response:success", a.Answer("slow").Type)
	h.Stop()
}

// A repeated request gets the first answer and has no second effect. The same id with another
// payload is refused.
//
// Rows: B-21, B-30.
func TestStdioRepeatedRequest(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a"), "a")
	a := h.StartAll("a")[0]
	line := stage.Request("same", "submit-task", `{"type":"t","name":"once"}`) + "\n"
	a.Say(line + line)
	stage.WaitFor(t, "two answers", func() bool { return len(a.Answers("same")) == 2 })
	first, second := a.Answers("same")[0], a.Answers("same")[1]
	require.JSONEq(t, string(first.Payload), string(second.Payload))
	a.Say(stage.Request("same", "submit-task", `{"type":"t","name":"another"}`) + "\n")
	stage.WaitFor(t, "third answer", func() bool { return len(a.Answers("same")) == 3 })
	require.Equal(t, "INVALID_REQUEST", a.Answers("same")[2].Error.Code)
	var list struct{ Tasks []stage.Task }
	a.Granted(&list, "query-tasks", `{}`)
	require.Len(t, list.Tasks, 1)
	require.Len(t, h.Events(events.TaskCreated, ""), 1)
	h.Stop()
}

// A question times out after its own timeout, or else after the one in the file. A late answer is
// refused.
//
// Rows: B-29, B-60, T-07.
func TestStdioTimeout(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.Scripted("a")+`
protocol {
  request_timeout = "1s"
}
`, "a")
	a := h.StartAll("a")[0]
	began := time.Now()
	long := a.Request("ask-user", `{"question":"long?","timeout":300000}`)
	byFile := a.Request("ask-user", `{"question":"by the file?"}`)
	require.Equal(t, "TIMEOUT", a.Answer(byFile).Error.Code)
	require.GreaterOrEqual(t, time.Since(began), time.Second)
	began = time.Now()
	own := a.Request("ask-user", `{"question":"by itself?","timeout":1500}`)
	require.Equal(t, "TIMEOUT", a.Answer(own).Error.Code)
	require.GreaterOrEqual(t, time.Since(began), 1500*time.Millisecond)
	status, _ := h.Operate("answer-question", `{"questionId":"q2","answer":"late"}`)
	require.Equal(t, http.StatusNotFound, status)
	h.AnswerQuestion("q1", "in time")
	require.Contains(t, string(a.Answer(long).Payload), "in time")
	a.Settle()
	for _, id := range []string{long, byFile, own} {
		require.Len(t, a.Answers(id), 1)
	}
	h.Stop()
}

// A run that repeats a request of the previous run gets its answer, and the effect happens once.
//
// Rows: B-30.
func TestStdioRepeatByTheNextRun(t *testing.T) {
	t.Parallel()
	h := stage.NewTeam(t, stage.QuickStop+phoenix, "phoenix")
	a := h.StartAll("phoenix")[0]
	line := stage.Request("same", "submit-task", `{"type":"t","name":"once"}`) + "\n"
	a.Say(line)
	var first, second struct{ Task stage.Task }
	require.NoError(t, json.Unmarshal(a.Answer("same").Payload, &first))
	a.Kill()
	a = h.NextRun("phoenix")
	a.Say(line)
	require.NoError(t, json.Unmarshal(a.Answer("same").Payload, &second))
	require.Equal(t, first.Task.ID, second.Task.ID)
	other := stage.Request("same", "submit-task", `{"type":"t","name":"another life, another task"}`) + "\n"
	a.Kill()
	a = h.NextRun("phoenix")
	a.Say(other)
	require.NoError(t, json.Unmarshal(a.Answer("same").Payload, &second))
	require.NotEqual(t, first.Task.ID, second.Task.ID, "ids begin anew with each run")
	h.Stop()
}

// phoenix is a scripted agent that is always restarted at once.
const phoenix = `
agent "phoenix" {
  command = ["scripted", "phoenix"]
  restart {
    policy = "always"
    delay  = "10ms"
    factor = 1
    jitter = 0
    burst  = 1000
  }
}
`
