package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// answerPages answers query-tasks and poll-messages from lists of that many entries. It fails at
// the page that begins after entry failAt.
func answerPages(tasks, messages, failAt int) func(question) (any, error) {
	return func(q question) (any, error) {
		switch b := q.body.(type) {
		case *wire.QueryTasks:
			begin := 0
			_, _ = fmt.Sscanf(b.Cursor, "t-%d", &begin)
			if begin > 0 && begin == failAt {
				return nil, io.ErrUnexpectedEOF
			}
			end := min(begin+int(b.Limit), tasks)
			l := &wire.TaskList{More: int64(tasks - end)}
			for n := begin; n < end; n++ {
				l.Tasks = append(l.Tasks, wire.Task{ID: fmt.Sprintf("t-%d", n+1)})
			}
			if l.More > 0 {
				l.Cursor = fmt.Sprintf("t-%d", end)
			}
			return l, nil
		case *wire.PollMessages:
			begin := int64(0)
			if b.Cursor != nil {
				begin = *b.Cursor
			}
			end := min(begin+max(b.Limit, 10), int64(messages))
			l := &mail.List{More: end < int64(messages), Messages: []mail.Message{}}
			for n := begin; n < end; n++ {
				l.Messages = append(l.Messages, mail.Message{Seq: n + 1})
			}
			return l, nil
		}
		return nil, io.ErrUnexpectedEOF
	}
}

// TestListsAreComplete checks that a list without a limit is complete, however many pages it
// has. A list with a limit names the next page.
func TestListsAreComplete(t *testing.T) {
	h := buildHub(t, nil)
	for _, count := range []int{0, 1, pageTasks, pageTasks + 1, 3*pageTasks + 5} {
		h.answer = answerPages(count, count, 0)
		response, text := h.at().do(t, http.MethodGet, "/api/v1/server/tasks", "")
		require.Equal(t, http.StatusOK, response.StatusCode)
		var list struct{ Tasks []struct{ ID string } }
		require.NoError(t, json.Unmarshal([]byte(text), &list))
		require.Len(t, list.Tasks, count)
		for n := range list.Tasks {
			require.Equal(t, fmt.Sprintf("t-%d", n+1), list.Tasks[n].ID)
		}
		require.Empty(t, response.Header.Get("Link"))

		response, text = h.at().do(t, http.MethodGet, "/api/bus/poll?actor=HO%3Afar", "")
		require.Equal(t, http.StatusOK, response.StatusCode)
		var mail []struct{ Seq int }
		require.NoError(t, json.Unmarshal([]byte(text), &mail))
		require.Len(t, mail, count)
		for n := range mail {
			require.Equal(t, n+1, mail[n].Seq)
		}
	}
	response, text := h.at().do(t, http.MethodGet, "/api/v1/server/tasks?limit=2&cursor=t-3&status=pending", "")
	require.Equal(t, `</api/v1/server/tasks?cursor=t-5&limit=2&status=pending>; rel="next"`, response.Header.Get("Link"))
	require.Contains(t, text, fmt.Sprintf(`"more":%d,"cursor":"t-5"}`, 3*pageTasks))
	response, _ = h.at().do(t, http.MethodGet, "/api/v1/server/tasks?limit=2&cursor=t-3004", "")
	require.Empty(t, response.Header.Get("Link"))
	response, text = h.at().do(t, http.MethodGet, "/api/v1/server/tasks?limit=0", "")
	require.Equal(t, http.StatusUnprocessableEntity, response.StatusCode, text)
}

// TestListCutOff checks that a list that cannot be read to its end does not look complete.
func TestListCutOff(t *testing.T) {
	h := buildHub(t, nil)
	h.answer = answerPages(3*pageTasks, 0, pageTasks)
	by := h.at()
	response, err := by.client.Get("http://orchestrator/api/v1/server/tasks")
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	text, err := io.ReadAll(response.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NotContains(t, string(text), "]}")

	h.answer = func(question) (any, error) { return nil, &wire.Error{Code: wire.CodeDenied, Message: "no"} }
	refused, answer := by.do(t, http.MethodGet, "/api/v1/server/tasks", "")
	require.Equal(t, http.StatusForbidden, refused.StatusCode, answer)
}
