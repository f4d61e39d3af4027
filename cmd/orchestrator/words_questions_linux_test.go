package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

// questions returns the open questions from the API.
func (s *stage) questions() []wire.Question {
	s.t.Helper()
	var list wire.QuestionList
	s.operated(&list, "list-questions", `{}`)
	return list.Questions
}

func (s *stage) waitForQuestions(n int) []wire.Question {
	s.t.Helper()
	var found []wire.Question
	waitForThat(s.t, fmt.Sprintf("%d questions", n), func() bool {
		found = s.questions()
		return len(found) == n
	})
	return found
}

// An agent asks a question. The API lists it with its labels, and accepts only one of its values
// as the answer.
//
// Rows: B-58, B-59, B-61, B-62.
func TestWordsAskAndAnswer(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	id := a.request("ask-user", `{"question":"Which database shall I write for?","options":[{"label":"PostgreSQL","value":"postgres"},{"label":"SQLite","value":"sqlite"}],"timeout":300000}`)
	asked := h.waitForQuestions(1)[0]
	require.Equal(t, "a", asked.Agent)
	require.Equal(t, "Which database shall I write for?", asked.Question)
	require.Equal(t, []wire.Option{{Label: "PostgreSQL", Value: "postgres"}, {Label: "SQLite", Value: "sqlite"}}, asked.Options)
	require.True(t, asked.Blocking)
	status, body := h.operate("answer-question", fmt.Sprintf(`{"questionId":%q,"answer":"basic"}`, asked.ID))
	require.Equal(t, http.StatusBadRequest, status, "%s", body)
	require.Contains(t, string(body), "postgres")
	require.Len(t, h.questions(), 1)
	require.Empty(t, a.answers(id))

	require.Contains(t, h.ask("inbox"), "[sqlite: SQLite]")
	h.ask("inbox", "answer", asked.ID, "postgres")
	m := a.answer(id)
	var said struct {
		Answer   string
		Metadata struct{ AnsweredAt string }
	}
	require.NoError(t, json.Unmarshal(m.Payload, &said))
	require.Equal(t, "postgres", said.Answer)
	_, err := time.Parse(time.RFC3339, said.Metadata.AnsweredAt)
	require.NoError(t, err)
	require.Empty(t, h.questions())
	status, _ = h.operate("answer-question", fmt.Sprintf(`{"questionId":%q,"answer":"sqlite"}`, asked.ID))
	require.Equal(t, http.StatusNotFound, status, "it was answered")
	a.quiet()
	require.Len(t, a.answers(id), 1)

	free := a.request("ask-user", `{"question":"And why?"}`)
	h.answerQuestion(h.waitForQuestions(1)[0].ID, "two\nlines")
	require.Contains(t, string(a.answer(free).Payload), `"answer":"two\nlines"`)
	h.stop()
}

// A question uses its own timeout, not that of the file.
//
// Rows: B-60, T-07.
func TestWordsOwnTimeout(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a")+"protocol {\n  request_timeout = \"100ms\"\n}\n", "a")
	a := h.cast("a")[0]
	long := a.request("ask-user", `{"question":"long?","timeout":300000}`)
	for range 3 {
		require.Equal(t, "TIMEOUT", a.answer(a.request("ask-user", `{"question":"short?"}`)).Error.Code)
	}
	asked := h.waitForQuestions(1)[0]
	require.Equal(t, "long?", asked.Question)
	at, err := time.Parse(time.RFC3339, asked.AskedAt)
	require.NoError(t, err)
	due, err := time.Parse(time.RFC3339, asked.Deadline)
	require.NoError(t, err)
	require.Equal(t, 5*time.Minute, due.Sub(at))
	h.answerQuestion(asked.ID, "yes")
	require.Nil(t, a.answer(long).Error)
	h.stop()
}

// An event:question is listed for people, who may answer it. The agent does not get the answer.
//
// Rows: B-18, B-63, B-67.
func TestWordsOpenQuestion(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	a.say(telling("q", "question", `{"question":"May I drop the old column?","context":{"rows":15}}`) + "\n")
	asked := h.waitForQuestions(1)[0]
	require.False(t, asked.Blocking)
	require.Equal(t, "a", asked.Agent)
	require.JSONEq(t, `{"rows":15}`, string(asked.Context))
	var reply wire.QuestionReply
	h.operated(&reply, "answer-question", fmt.Sprintf(`{"questionId":%q,"answer":"no"}`, asked.ID))
	require.False(t, reply.Told)
	a.quiet()
	require.Len(t, a.all(), 1, "nothing was written back")
	h.stop()
}

// The text of a question is escaped on the screen and stored unchanged.
//
// Rows: B-58, B-80.
func TestWordsQuestionIsInert(t *testing.T) {
	t.Parallel()
	const evil = "\x1b[2J\x1b]0;owned\x07<script>alert(1)</script>\u202e\r\nq9  root  yes?"
	h := troupe(t, puppets("a"), "a")
	h.start(exec.Command(h.program, "up", "--state-dir", h.state(), "--timeout", "3m"))
	a := h.enter("a")
	spelled, err := json.Marshal(evil)
	require.NoError(t, err)
	id := a.request("ask-user", fmt.Sprintf(`{"question":%s,"options":[{"label":%s,"value":"y"}]}`, spelled, spelled))
	asked := h.waitForQuestions(1)[0]
	require.Equal(t, evil, asked.Question)
	require.Equal(t, evil, asked.Options[0].Label)
	waitForThat(t, "question on the console", func() bool { return strings.Contains(h.said.all(), "owned") })
	screens := map[string]string{"console": h.said.all(), "inbox": h.ask("inbox"), "events": h.ask("events")}
	for name, screen := range screens {
		require.Contains(t, screen, `\x1b[2J`, name)
		for _, c := range screen {
			require.True(t, c == '\n' || c >= ' ' && c != 0x7f && c != 0x202e, "%s: %q in %q", name, c, screen)
		}
		for line := range strings.Lines(screen) {
			require.False(t, strings.HasPrefix(line, "q9"), "%s: a line of its own making", name)
		}
	}
	h.ask("inbox", "answer", asked.ID, "y")
	require.Contains(t, string(a.answer(id).Payload), `"answer":"y"`)
	h.stop()
}

// A question is kept after its run ends. If the next run asks it again, it is the same question,
// and the next run gets the answer.
//
// Rows: B-30, B-61.
func TestWordsQuestionIsAskedAgain(t *testing.T) {
	t.Parallel()
	h := troupe(t, quick+phoenix, "phoenix")
	a := h.cast("phoenix")[0]
	line := asking("why", "ask-user", `{"question":"why?","timeout":300000}`) + "\n"
	a.say(line)
	asked := h.waitForQuestions(1)[0]
	a.die()
	a = h.enter("phoenix")
	require.Len(t, h.questions(), 1, "it waits for an answer still")
	a.say(line)
	a.quiet()
	require.Equal(t, asked.ID, h.waitForQuestions(1)[0].ID, "nobody is asked twice")
	var reply wire.QuestionReply
	h.operated(&reply, "answer-question", fmt.Sprintf(`{"questionId":%q,"answer":"because"}`, asked.ID))
	require.True(t, reply.Told)
	require.Contains(t, string(a.answer("why").Payload), "because")
	a.quiet()
	require.Len(t, a.answers("why"), 1)
	h.stop()
}

// A program that uses an agent's key at the API gets its answer there.
//
// Rows: B-21, B-26, B-61, B-62.
func TestWordsAskAtTheDoor(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	var issued wire.IssuedKey
	h.operated(&issued, "issue-key", `{"agent":"a"}`)
	type said struct {
		status int
		body   []byte
	}
	heard := make(chan said, 1)
	go func() {
		status, body := h.operate("ask-user", `{"question":"at the door?","timeout":300000}`, issued.Key)
		heard <- said{status, body}
	}()
	asked := h.waitForQuestions(1)[0]
	require.Equal(t, "a", asked.Agent)
	h.answerQuestion(asked.ID, "come in")
	answer := <-heard
	require.Equal(t, http.StatusOK, answer.status, "%s", answer.body)
	require.Contains(t, string(answer.body), "come in")
	status, body := h.operate("ask-user", `{"question":"too late?","timeout":100}`, issued.Key)
	require.Equal(t, http.StatusGatewayTimeout, status, "%s", body)
	status, _ = h.operate("list-questions", `{}`, issued.Key)
	require.Equal(t, http.StatusForbidden, status)
	status, _ = h.operate("query-agents", `{}`, "orc_wrong")
	require.Equal(t, http.StatusUnauthorized, status)
	a.quiet()
	require.Len(t, a.all(), 1, "what was asked at the door is not answered on the pipe")
	h.stop()
}

// Tests of answers: each request has exactly one, and its form never varies.

// Rows: B-13, B-14, B-22, B-24, B-25, T-06.
func TestWordsAnswerOfSuccess(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	ids := []string{"req-7b1c90de-52f4-4c1e-9a60-3d5e8f0a2100", "1", "ünïcödé ✓ 😀", `with "quotes" and \`, "\u2028", strings.Repeat("long", 1000)}
	seen := make(map[string]bool)
	for _, id := range ids {
		spelled, err := json.Marshal(id)
		require.NoError(t, err)
		a.say(fmt.Sprintf(`{"type":"request:query-agents","id":%s,"timestamp":"%s","payload":{}}`, spelled, noon) + "\n")
		m := a.answer(id)
		require.Equal(t, []string{"correlationId", "id", "payload", "timestamp", "type"}, m.keys)
		require.Equal(t, "response:success", m.Type)
		require.NotEmpty(t, m.ID)
		require.False(t, seen[m.ID], "two answers with one id")
		seen[m.ID] = true
		_, err = time.Parse(time.RFC3339, m.Timestamp)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(m.Timestamp, "Z"))
	}
	// The id is the same in any spelling.
	a.say(`{"type":"request:query-agents","id":"\u0041\/b","timestamp":"` + noon + `"}` + "\n")
	a.answer("A/b")
	h.stop()
}

// Rows: B-12, B-14, B-16, B-23, B-27, B-28, B-33, B-74, B-76.
func TestWordsAnswerOfError(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	for i, test := range []struct{ kind, rest, code string }{
		{"request:nope", `,"timestamp":"` + noon + `","payload":{}`, "INVALID_MESSAGE_TYPE"},
		{"request:", `,"timestamp":"` + noon + `","payload":{}`, "INVALID_MESSAGE_TYPE"},
		{"request:submit-task", `,"timestamp":"` + noon + `","payload":{"type":"t"}`, "INVALID_REQUEST"},
		{"request:submit-task", `,"timestamp":"` + noon + `"`, "INVALID_REQUEST"},
		{"request:query-agents", `,"timestamp":"` + noon + `","payload":[]`, "INVALID_REQUEST"},
		{"request:query-agents", `,"timestamp":"` + noon + `","payload":"{}"`, "INVALID_REQUEST"},
		{"request:query-agents", `,"payload":{}`, "INVALID_REQUEST"},
		{"request:query-agents", `,"timestamp":"yesterday","payload":{}`, "INVALID_REQUEST"},
		{"request:query-agents", `,"timestamp":1700000000,"payload":{}`, "INVALID_REQUEST"},
		{"request:query-agents", `,"timestamp":"` + noon + `","payload":{"role":"boss"}`, "INVALID_REQUEST"},
		{"request:query-tasks", `,"timestamp":"` + noon + `","payload":{"limit":0}`, "INVALID_REQUEST"},
		{"request:get-task", `,"timestamp":"` + noon + `","payload":{}`, "INVALID_REQUEST"},
		{"request:get-task", `,"timestamp":"` + noon + `","payload":{"taskId":"task-nope"}`, "NOT_FOUND"},
		{"request:ask-user", `,"timestamp":"` + noon + `","payload":{}`, "INVALID_REQUEST"},
		{"request:list-questions", `,"timestamp":"` + noon + `","payload":{}`, "UNAUTHORIZED"},
		{"request:query-agents", `,"timestamp":"` + noon + `","agentId":"b","payload":{}`, "UNAUTHORIZED"},
	} {
		id := fmt.Sprintf("bad-%d", i)
		a.say(fmt.Sprintf(`{"type":%q,"id":%q%s}`, test.kind, id, test.rest) + "\n")
		m := a.answer(id)
		require.Equal(t, []string{"correlationId", "error", "id", "timestamp", "type"}, m.keys)
		require.Equal(t, "response:error", m.Type)
		require.Equal(t, test.code, m.Error.Code, "%s%s", test.kind, test.rest)
		require.NotEmpty(t, m.Error.Message)
		require.NotNil(t, m.Error.Details)
	}
	role := a.refused("INVALID_REQUEST", "query-agents", `{"role":"gardener"}`)
	require.Equal(t, "Invalid role specified", role.Message)
	require.Equal(t, "gardener", role.Details["role"])
	a.quiet()
	h.stop()
}

// A request without a usable id is answered too.
//
// Rows: B-13, B-21, B-27.
func TestWordsAnswerWithoutID(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	for _, test := range []struct{ member, correlation string }{
		{"", "null"}, {`"id":null,`, "null"}, {`"id":{},`, "null"}, {`"id":7,`, "7"}, {`"id":9007199254740993,`, "9007199254740993"}, {`"id":"",`, `""`},
	} {
		before := len(a.all())
		a.say(`{"type":"request:query-agents",` + test.member + `"timestamp":"` + noon + `","payload":{}}` + "\n")
		a.wait("answer", func(*message) bool { return len(a.all()) > before })
		m := a.all()[before]
		require.Equal(t, "INVALID_REQUEST", m.Error.Code, test.member)
		require.Equal(t, test.correlation, string(m.CorrelationID), test.member)
	}
	h.stop()
}

// A misspelled request is refused; a line that only resembles one is a log line.
//
// Rows: B-28, T-03.
func TestWordsMisspelt(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	a.say(`{"type":"query-agents","id":"1","timestamp":"` + noon + `","payload":{}}` + "\n")
	require.Equal(t, "INVALID_MESSAGE_TYPE", a.answer("1").Error.Code)
	a.say(`{"type":"event:nope","id":"2","timestamp":"` + noon + `","payload":{}}` + "\n")
	a.quiet()
	require.Empty(t, a.answers("2"), "events have no answer")
	h.waitForLines(1, "a")
	h.stop()
}

// An open question does not delay the answers to later requests.
//
// Rows: B-26, T-07.
func TestWordsAnswersOutOfOrder(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	a.say(asking("slow", "ask-user", `{"question":"which?","timeout":300000}`) + "\n" + asking("fast", "query-agents", `{}`) + "\n")
	a.answer("fast")
	require.Empty(t, a.answers("slow"))
	h.answerQuestion("q1", "this one")
	require.Equal(t, "response:success", a.answer("slow").Type)
	h.stop()
}

// answerQuestion answers a question as a person would. It waits until the question has arrived.
func (s *stage) answerQuestion(id, answer string) {
	s.t.Helper()
	waitForThat(s.t, "question "+id, func() bool {
		status, _ := s.operate("answer-question", fmt.Sprintf(`{"questionId":%q,"answer":%q}`, id, answer))
		return status == http.StatusOK
	})
}

// A repeated request gets the first answer and has no second effect. The same id with another
// payload is refused.
//
// Rows: B-21, B-30.
func TestWordsRepeat(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a"), "a")
	a := h.cast("a")[0]
	line := asking("same", "submit-task", `{"type":"t","name":"once"}`) + "\n"
	a.say(line + line)
	waitForThat(t, "two answers", func() bool { return len(a.answers("same")) == 2 })
	first, second := a.answers("same")[0], a.answers("same")[1]
	require.JSONEq(t, string(first.Payload), string(second.Payload))
	a.say(asking("same", "submit-task", `{"type":"t","name":"another"}`) + "\n")
	waitForThat(t, "third answer", func() bool { return len(a.answers("same")) == 3 })
	require.Equal(t, "INVALID_REQUEST", a.answers("same")[2].Error.Code)
	var list struct{ Tasks []aTask }
	a.granted(&list, "query-tasks", `{}`)
	require.Len(t, list.Tasks, 1)
	require.Len(t, h.events(events.TaskCreated, ""), 1)
	h.stop()
}

// A question times out after its own timeout, or else after that of the file. A late answer is
// refused.
//
// Rows: B-29, B-60, T-07.
func TestWordsTimeout(t *testing.T) {
	t.Parallel()
	h := troupe(t, puppets("a")+`
protocol {
  request_timeout = "1s"
}
`, "a")
	a := h.cast("a")[0]
	began := time.Now()
	long := a.request("ask-user", `{"question":"long?","timeout":300000}`)
	byFile := a.request("ask-user", `{"question":"by the file?"}`)
	require.Equal(t, "TIMEOUT", a.answer(byFile).Error.Code)
	require.GreaterOrEqual(t, time.Since(began), time.Second)
	began = time.Now()
	own := a.request("ask-user", `{"question":"by itself?","timeout":1500}`)
	require.Equal(t, "TIMEOUT", a.answer(own).Error.Code)
	require.GreaterOrEqual(t, time.Since(began), 1500*time.Millisecond)
	status, _ := h.operate("answer-question", `{"questionId":"q2","answer":"late"}`)
	require.Equal(t, http.StatusNotFound, status)
	h.answerQuestion("q1", "in time")
	require.Contains(t, string(a.answer(long).Payload), "in time")
	a.quiet()
	for _, id := range []string{long, byFile, own} {
		require.Len(t, a.answers(id), 1)
	}
	h.stop()
}

// A run that repeats a request of the previous run gets its answer, and the effect happens once.
//
// Rows: B-30.
func TestWordsRepeatByTheNextRun(t *testing.T) {
	t.Parallel()
	h := troupe(t, quick+phoenix, "phoenix")
	a := h.cast("phoenix")[0]
	line := asking("same", "submit-task", `{"type":"t","name":"once"}`) + "\n"
	a.say(line)
	var first, second struct{ Task aTask }
	require.NoError(t, json.Unmarshal(a.answer("same").Payload, &first))
	a.die()
	a = h.enter("phoenix")
	a.say(line)
	require.NoError(t, json.Unmarshal(a.answer("same").Payload, &second))
	require.Equal(t, first.Task.ID, second.Task.ID)
	other := asking("same", "submit-task", `{"type":"t","name":"another life, another task"}`) + "\n"
	a.die()
	a = h.enter("phoenix")
	a.say(other)
	require.NoError(t, json.Unmarshal(a.answer("same").Payload, &second))
	require.NotEqual(t, first.Task.ID, second.Task.ID, "ids begin anew with each run")
	h.stop()
}

// phoenix is a puppet that is always restarted at once.
const phoenix = `
agent "phoenix" {
  command = ["puppet", "phoenix"]
  restart {
    policy = "always"
    delay  = "10ms"
    factor = 1
    jitter = 0
    burst  = 1000
  }
}
`
