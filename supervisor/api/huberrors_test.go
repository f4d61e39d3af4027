package api

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// TestHubRefusals checks how the hub encodes refusals of operations.
//
// Rows, K-06.
func TestHubRefusals(t *testing.T) {
	h := buildHub(t, nil)
	details := func(pairs ...any) map[string]any {
		found := make(map[string]any)
		for i := 0; i < len(pairs); i += 2 {
			found[pairs[i].(string)] = pairs[i+1]
		}
		return found
	}
	for _, test := range []struct {
		refusal error
		status  int
		want    string
	}{
		{&wire.Error{Code: wire.CodeInvalid, Message: "no requirements", Details: details("pointer", "/requirements")}, 422,
			`{"error":{"code":"invalid","message":"no requirements","details":{"pointer":"/requirements"},"recoverable":false},"detail":"no requirements"}`},
		{&wire.Error{Code: wire.CodeDenied, Message: "not yours", Hint: "ask them"}, 403,
			`{"error":{"code":"denied","message":"not yours","details":{},"recoverable":false,"hint":"ask them"},"detail":"not yours"}`},
		{&wire.Error{Code: wire.CodeUnauthenticated, Message: "who?"}, 401,
			`{"error":{"code":"unauthenticated","message":"who?","details":{},"recoverable":false},"detail":"who?"}`},
		{&wire.Error{Code: wire.CodeNotFound, Message: "none"}, 404,
			`{"error":{"code":"not_found","message":"none","details":{},"recoverable":false},"detail":"none"}`},
		{&wire.Error{Code: wire.CodeUnknownType, Message: "no operation"}, 404,
			`{"error":{"code":"unknown_type","message":"no operation","details":{},"recoverable":false},"detail":"no operation"}`},
		{&wire.Error{Code: wire.CodeConflict, Message: "is done", Details: details("reason", "wrong_state", "state", "done")}, 409,
			`{"error":{"code":"conflict","message":"is done","details":{"reason":"wrong_state","state":"done"},"recoverable":false},"detail":"is done"}`},
		{&wire.Error{Code: wire.CodeConflict, Message: "waits", Details: details("reason", "blocked", "waitsFor", []string{"t-0"})}, 409,
			`{"error":{"code":"conflict","message":"waits","details":{"reason":"blocked","waits_for":["t-0"]},"recoverable":true},"detail":"waits"}`},
		{&wire.Error{Code: wire.CodeConflict, Message: "no", Details: details("taskId", "t-1", "state", "assigned", "status", "queued"), Hint: "start it first, with start-task"}, 409,
			`{"error":{"code":"conflict","message":"no","details":{"state":"assigned","status":"assigned","task_id":"t-1"},"recoverable":false,` +
				`"hint":"start it first, with POST /api/v1/servers/tasks/{id}/start"},"detail":"no"}`},
		{&wire.Error{Code: wire.CodeConflict, Message: "circle", Details: details("code", "TASK_GRAPH_CYCLE", "path", []string{"t-1", "t-1"})}, 409,
			`{"error":{"code":"conflict","message":"circle","details":{"code":"TASK_GRAPH_CYCLE","path":["t-1","t-1"]},"recoverable":false},"detail":"circle"}`},
		{&wire.Error{Code: wire.CodeLimited, Message: "later"}, 429,
			`{"error":{"code":"limited","message":"later","details":{},"recoverable":true},"detail":"later"}`},
		{&wire.Error{Code: wire.CodeTimeout, Message: "too late"}, 504,
			`{"error":{"code":"timeout","message":"too late","details":{},"recoverable":true},"detail":"too late"}`},
		{errors.New("the password is hunter2"), 500,
			`{"error":{"code":"internal","message":"internal error; see the orchestrator's log","details":{},"recoverable":true},"detail":"internal error; see the orchestrator's log"}`},
	} {
		h.answer = func(question) (any, error) { return nil, test.refusal }
		for i := range hubRoutes() {
			route := &hubRoutes()[i]
			if status := test.status; !route.takesBody() && status != 500 && status != 403 {
				continue // not possible for reads
			}
			response, text := h.ask(t, h.at(), route.method(), filled(route), validBody(route))
			require.Equal(t, test.status, response.StatusCode, text)
			require.Equal(t, test.want, text)
		}
		_, refused := h.taken()
		require.Empty(t, refused, "whoever decided has noted it")
	}
}

// TestHubAnswersOfAnotherKind checks that an answer of an unexpected type is an internal error.
func TestHubAnswersOfAnotherKind(t *testing.T) {
	h := buildHub(t, nil)
	for _, answer := range []any{nil, 7, &wire.Nothing{}, (*wire.TaskReply)(nil), wire.TaskReply{}} {
		h.answer = func(question) (any, error) { return answer, nil }
		response, text := h.ask(t, h.at(), http.MethodPost, "/api/v1/tasks/t-1/approve-plan", "")
		requireRefused(t, response, text, http.StatusInternalServerError, wire.CodeInternal)
	}
}

// TestHubPointers checks that the wrong place is given in the terms of the request. The refusal
// itself is not changed, because other callers may share it.
//
// Rows.
func TestHubPointers(t *testing.T) {
	h := buildHub(t, nil)
	task := `{"title":"x","spec":"y","dependencies":["a",{"depends_on_task_id":"b","dependency_type":"related"}],"dependency_ids":["b","c","d"]}`
	link := `{"depends_on_task_id":"a"}`
	for _, test := range []struct{ path, body, said, want string }{
		{"/api/v1/server/tasks", task, "/payload/dependencies/0", "/dependencies/0"},
		{"/api/v1/server/tasks", task, "/payload/dependencies/1", "/dependencies/1"},
		{"/api/v1/server/tasks", task, "/payload/dependencies/2", "/dependency_ids/0"},
		{"/api/v1/server/tasks", task, "/payload/dependencies/3", "/dependency_ids/1"},
		{"/api/v1/server/tasks", task, "/payload/dependencies/4", "/dependency_ids/2"},
		{"/api/v1/tasks", `{"title":"x","spec":"y","dependency_ids":["b","c"]}`, "/payload/dependencies/1", "/dependency_ids/1"},
		{"/api/v1/tasks", task, "/payload/dependencies/9", "/dependencies/9"},
		{"/api/v1/tasks", task, "/payload/dependencies/x", "/dependencies/x"},
		{"/api/v1/tasks", task, "/title", "/title"},
		{"/api/v1/server/tasks/t-1/dependencies", link, "/payload/dependsOnTaskId", "/depends_on_task_id"},
		{"/api/v1/server/tasks/t-1/dependencies", link, "/payload/contractKey", "/contract_key"},
		{"/api/v1/server/tasks/t-1/complete", `{"result":"x"}`, "/result/contracts/api/status", "/result/contracts/api/status"},
		{"/api/v1/servers/register", `{"name":"x","registration_token":"y"}`, "/registration_token", "/registration_token"},
	} {
		refusal := &wire.Error{Code: wire.CodeConflict, Message: "no", Details: map[string]any{"pointer": test.said, "n": 1}}
		h.answer = func(question) (any, error) { return nil, refusal }
		response, text := h.ask(t, h.at(), http.MethodPost, test.path, test.body)
		require.Equal(t, test.want, requireRefused(t, response, text, http.StatusConflict, wire.CodeConflict))
		require.Equal(t, map[string]any{"pointer": test.said, "n": 1}, refusal.Details)
	}
}

func TestDeeper(t *testing.T) {
	for text, deepest := range map[string]int{
		"": 0, "{}": 1, "[[]]": 2, `{"[[":"]{\"["}`: 1, `["\\",[1]]`: 2, strings.Repeat("[", 9): 9, "}}[[": 0, `"[[["`: 0, `[[][][]]`: 2,
	} {
		require.False(t, deeper([]byte(text), deepest), text)
		if deepest > 0 {
			require.True(t, deeper([]byte(text), deepest-1), text)
		}
	}
}
