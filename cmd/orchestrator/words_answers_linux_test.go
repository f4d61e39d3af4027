package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire/events"
)

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
