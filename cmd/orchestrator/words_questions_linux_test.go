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
