package api

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

func readAnswer(t *testing.T, from io.Reader) (*http.Response, string) {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(from), nil)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, strings.TrimSpace(string(text))
}

// senders returns the routes that take a body, and a function that returns a client that may
// call them.
func (h *hubHouse) senders() (routes []*route, by func(*route) asks) {
	for i := range hubRoutes() {
		if hubRoutes()[i].takesBody() {
			routes = append(routes, &hubRoutes()[i])
		}
	}
	return routes, func(*route) asks { return h.at() }
}

// TestHubBodiesThatCannotBeRead checks that an unreadable body is refused in the same way on
// every route, without a call of the operation.
//
// Rows, K-06.
func TestHubBodiesThatCannotBeRead(t *testing.T) {
	h := buildHub(t, nil)
	routes, by := h.senders()
	require.GreaterOrEqual(t, len(routes), 24)
	for name, test := range map[string]struct {
		body   string
		header http.Header
		status int
		code   wire.Code
		points bool
	}{
		"cut off":            {body: `{"title":"x`, status: 400, code: wire.CodeMalformed, points: true},
		"cut off after a :":  {body: `{"title":`, status: 400, code: wire.CodeMalformed, points: true},
		"no JSON":            {body: `title=x`, status: 400, code: wire.CodeMalformed, points: true},
		"a word":             {body: `nope`, status: 400, code: wire.CodeMalformed, points: true},
		"a comma too many":   {body: `{"title":"x",}`, status: 400, code: wire.CodeMalformed, points: true},
		"single quotes":      {body: `{'title':'x'}`, status: 400, code: wire.CodeMalformed, points: true},
		"garbage behind":     {body: `{"title":"x"} x`, status: 400, code: wire.CodeMalformed, points: true},
		"two objects":        {body: `{}{}`, status: 400, code: wire.CodeMalformed, points: true},
		"no UTF-8":           {body: "{\"title\":\"\xff\"}", status: 400, code: wire.CodeMalformed, points: true},
		"a control":          {body: "{\"title\":\"\x00\"}", status: 400, code: wire.CodeMalformed, points: true},
		"a byte order mark":  {body: "\xef\xbb\xbf{}", status: 400, code: wire.CodeMalformed, points: true},
		"UTF-16":             {body: "\xff\xfe{\x00}\x00", status: 400, code: wire.CodeMalformed, points: true},
		"half a character":   {body: `{"title":"\ud800"}`, status: 422, code: wire.CodeInvalid, points: true},
		"null":               {body: `null`, status: 422, code: wire.CodeInvalid, points: true},
		"a list":             {body: `[{"title":"x"}]`, status: 422, code: wire.CodeInvalid, points: true},
		"a text":             {body: `"x"`, status: 422, code: wire.CodeInvalid, points: true},
		"a number":           {body: `1`, status: 422, code: wire.CodeInvalid, points: true},
		"deep":               {body: `{"x":` + strings.Repeat("[", 8) + strings.Repeat("]", 8) + `}`, status: 422, code: wire.CodeInvalid, points: true},
		"deep without end":   {body: `{"x":` + strings.Repeat("[", 60_000), status: 422, code: wire.CodeInvalid, points: true},
		"deep, and a quote":  {body: `{"\"[[[[[[[[[":"\\","x":` + strings.Repeat(`{"a":`, 30_00), status: 422, code: wire.CodeInvalid, points: true},
		"brackets in a text": {body: `{"x":"` + strings.Repeat("[", 100) + `"`, status: 400, code: wire.CodeMalformed, points: true},
		"huge":               {body: `{"x":"` + strings.Repeat("x", 1<<16) + `"}`, status: 413, code: wire.CodeTooLarge},
		"plain text":         {body: `{}`, header: http.Header{"Content-Type": {"text/plain"}}, status: 415, code: wire.CodeMediaType},
		"a form":             {body: `title=x`, header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, status: 415, code: wire.CodeMediaType},
		"another charset":    {body: `{}`, header: http.Header{"Content-Type": {"application/json; charset=latin1"}}, status: 415, code: wire.CodeMediaType},
		"packed":             {body: `{}`, header: http.Header{"Content-Encoding": {"gzip"}}, status: 415, code: wire.CodeMediaType},
	} {
		for _, route := range routes {
			a := by(route)
			a.header = test.header
			response, text := h.ask(t, a, route.method(), filled(route), test.body)
			pointer := requireRefused(t, response, text, test.status, test.code)
			require.Equal(t, test.points, pointer == "", "%s: %s: %s", name, route.pattern, text)
			asked, refused := h.taken()
			require.Empty(t, asked, "%s: %s", name, route.pattern)
			if test.code != wire.CodeMediaType { // checked before the operation is known
				require.Len(t, refused, 1, "%s: %s", name, route.pattern)
				require.Equal(t, route.operation, refused[0].operation)
				require.Equal(t, test.code, refused[0].body.(*wire.Error).Code)
			}
		}
	}
}

// TestHubBodyThatDoesNotArrive checks that a truncated body is an error.
func TestHubBodyThatDoesNotArrive(t *testing.T) {
	h := buildHub(t, nil)
	response, text := h.raw(t, "POST /api/v1/tasks HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{}")
	requireRefused(t, response, text, http.StatusBadRequest, wire.CodeMalformed)
	asked, _ := h.taken()
	require.Empty(t, asked)
}

// wrong maps each schema to bodies that are refused, with the wrong place. The schema in the
// document accepts the ones that begin with !.
var wrong = map[string]map[string]string{
	"hub.new-task": {
		``:                                          "/title",
		`{}`:                                        "/title",
		`{"title":1,"spec":"x"}`:                    "/title",
		`{"title":" \t","spec":"x"}`:                "/title",
		`{"title":null,"spec":"x"}`:                 "/title",
		`{"title":["x"],"spec":"x"}`:                "/title",
		`!{"title":"x","title":"y"}`:                "/title",
		`{"title":"x"}`:                             "/spec",
		`{"title":"x","spec":""}`:                   "/spec",
		`{"title":"x","spec":{}}`:                   "/spec",
		`{"title":"x","spec":"y","type":7}`:         "/type",
		`{"title":"x","spec":"y","priority":true}`:  "/priority",
		`{"title":"x","spec":"y","priority":" "}`:   "/priority",
		`{"title":"x","spec":"y","target_repo":{}}`: "/target_repo",
		`{"title":"x","spec":"y","acceptance_criteria":"x"}`:                                                     "/acceptance_criteria",
		`{"title":"x","spec":"y","acceptance_criteria":["x",""]}`:                                                "/acceptance_criteria/1",
		`{"title":"x","spec":"y","project_id":1}`:                                                                "/project_id",
		`{"title":"x","spec":"y","session_id":[]}`:                                                               "/session_id",
		`{"title":"x","spec":"y","dependencies":{}}`:                                                             "/dependencies",
		`{"title":"x","spec":"y","dependencies":[1]}`:                                                            "/dependencies/0",
		`{"title":"x","spec":"y","dependencies":["a",{}]}`:                                                       "/dependencies/1/depends_on_task_id",
		`{"title":"x","spec":"y","dependencies":[{"depends_on_task_id":"a","dependency_type":"needs"}]}`:         "/dependencies/0/dependency_type",
		`{"title":"x","spec":"y","dependencies":[{"depends_on_task_id":"a","dependency_type":"input"}]}`:         "/dependencies/0/contract_key",
		`{"title":"x","spec":"y","dependency_ids":"a"}`:                                                          "/dependency_ids",
		`{"title":"x","spec":"y","dependency_ids":["a",2]}`:                                                      "/dependency_ids/1",
		`{"title":"x","spec":"y","structured_spec":[]}`:                                                          "/structured_spec",
		`{"title":"x","spec":"y","structured_spec":{}}`:                                                          "/structured_spec/$schema",
		`{"title":"x","spec":"y","structured_spec":{"$schema":"other"}}`:                                         "/structured_spec/$schema",
		`{"title":"x","spec":"y","structured_spec":{"$schema":"orchestratia/task-spec/v1"}}`:                     "/structured_spec/requirements",
		`{"title":"x","spec":"y","structured_spec":{"$schema":"orchestratia/task-spec/v1","requirements":[{}]}}`: "/structured_spec/requirements/0/description",
		`{"title":"x","spec":"y","requirements":[]}`:                                                             "/requirements",
		`{"title":"x","spec":"y","requirements":{"languages":"go"}}`:                                             "/requirements/languages",
	},
	"hub.changes": {
		`{"title":""}`:                        "/title",
		`{"title":1}`:                         "/title",
		`{"spec":[]}`:                         "/spec",
		`{"type":" "}`:                        "/type",
		`{"priority":{}}`:                     "/priority",
		`{"status":"done"}`:                   "/status",
		`{"id":"t-2"}`:                        "/id",
		`{"result":{}}`:                       "/result",
		`{"dependencies":[]}`:                 "/dependencies",
		`{"dependency_ids":[]}`:               "/dependency_ids",
		`{"resolved_inputs":{}}`:              "/resolved_inputs",
		`{"structured_spec":{"$schema":"x"}}`: "/structured_spec/$schema",
		`!{"spec":"a","spec":"b"}`:            "/spec",
	},
	"hub.completion": {
		``:                             "/result",
		`{}`:                           "/result",
		`{"result":null}`:              "/result",
		`!{"result":[{"a":1,"a":2}]}`:  "/result/0/a",
		`{"result":"a","artifacts":7}`: "/artifacts",
		`!{"result":"a","artifacts":[{"name":"x"}]}`: "/artifacts/0/content",
		`!{"result":"a","result":{}}`:                "/result",
	},
	"hub.failure":      {`{"error":7}`: "/error", `!{"error":"a","error":"b"}`: "/error"},
	"hub.cancellation": {`{"reason":{}}`: "/reason", `!{"reason":"a","reason":"b"}`: "/reason"},
	"hub.call-for-help": {
		`{"question":{}}`: "/question", `!{"question":"a","context":1,"context":2}`: "/context",
	},
	"hub.new-note": {
		``: "/content", `{"content":""}`: "/content", `{"content":7}`: "/content", `{"content":"x","urgent":"yes"}`: "/urgent",
	},
	"hub.plan":     {``: "/plan", `{"plan":null}`: "/plan", `{"plan":"\n"}`: "/plan", `{"plan":[]}`: "/plan", `{"plan":7}`: "/plan"},
	"hub.feedback": {``: "/feedback", `{"feedback":""}`: "/feedback", `{"feedback":[]}`: "/feedback"},
	"hub.assignee": {
		``: "/session_name", `{"session_name":" "}`: "/session_name", `{"server_id":7}`: "/server_id",
		`{"session_name":"a","require_plan":"no"}`: "/require_plan", `!{"session_name":"a","session_name":"b"}`: "/session_name",
	},
	"hub.new-dependency": {
		``: "/depends_on_task_id", `{"depends_on_task_id":7}`: "/depends_on_task_id", `{"depends_on_task_id":"a","dependency_type":"soft"}`: "/dependency_type",
		`{"depends_on_task_id":"a","dependency_type":"input"}`: "/contract_key", `{"depends_on_task_id":"a","contract_key":7}`: "/contract_key",
	},
	"hub.heartbeat": {
		`{"capabilities":[]}`: "/capabilities", `{"capabilities":{"max_concurrent_tasks":-1}}`: "/capabilities/max_concurrent_tasks",
		`!{"capabilities":{},"capabilities":{"tools":["x"]}}`: "/capabilities",
	},
	"hub.registration": {
		``: "/name", `{"name":""}`: "/name", `{"name":"a"}`: "/registration_token", `{"name":"a","registration_token":7}`: "/registration_token",
		`{"name":"a","registration_token":"t","ip":7}`: "/ip", `{"name":"a","registration_token":"t","repos":[]}`: "/repos",
		`{"name":"a","registration_token":"t","capabilities":{"repos":{"shop":1}}}`: "/capabilities/repos/shop",
		`!{"name":"a","name":"b","registration_token":"t"}`:                         "/name",
	},
}

// TestHubBodiesThatAreWrong checks that an invalid body is refused with the wrong place, and
// that the document does not accept it either.
//
// Rows, K-06.
func TestHubBodiesThatAreWrong(t *testing.T) {
	h := buildHub(t, nil)
	routes, by := h.senders()
	met := make(map[string]bool)
	for _, route := range routes {
		if route.read.schema != "hub."+route.operation { // TestHubBodiesThatCannotBeRead has the rest
			met[route.read.schema] = true
		}
		for body, place := range wrong[route.read.schema] {
			body, unsaid := strings.CutPrefix(body, "!")
			response, text := h.ask(t, by(route), route.method(), filled(route), body)
			pointer := requireRefused(t, response, text, http.StatusUnprocessableEntity, wire.CodeInvalid)
			require.Equal(t, place, pointer, "%s: %s: %s", route.pattern, body, text)
			if body != "" && !unsaid {
				require.False(t, h.document.mayBeSaid(t, route, body), "%s: %s", route.pattern, body)
			}
			asked, refused := h.taken()
			require.Empty(t, asked)
			require.Len(t, refused, 1)
		}
	}
	for schema := range wrong {
		require.True(t, met[schema], schema)
	}
	require.Len(t, met, len(wrong)+1, "and those that take whatever object")
}

// Rows.
func TestHubQueries(t *testing.T) {
	h := buildHub(t, nil)
	for query, want := range map[string]struct {
		status    int
		code      wire.Code
		parameter any
	}{
		"tasks?status=queued":                                    {422, wire.CodeInvalid, "status"},
		"tasks?status=in_review":                                 {422, wire.CodeInvalid, "status"},
		"tasks?status=Pending":                                   {422, wire.CodeInvalid, "status"},
		"tasks?status=pending&status=done":                       {422, wire.CodeInvalid, "status"},
		"tasks?project_id=a&project_id=b":                        {422, wire.CodeInvalid, "project_id"},
		"tasks/check?session_id=a&session_id=b":                  {422, wire.CodeInvalid, "session_id"},
		"tasks?status=%zz":                                       {400, wire.CodeMalformed, nil},
		"tasks?status=pending;project_id=a":                      {400, wire.CodeMalformed, nil},
		"tasks/check?session_id=" + "%00%ff%20" + "&session_id=": {422, wire.CodeInvalid, "session_id"},
	} {
		response, text := h.ask(t, h.at(), http.MethodGet, "/api/v1/server/"+query, "")
		requireRefused(t, response, text, want.status, want.code)
		var refusal hubRefusal
		require.NoError(t, object.Decode([]byte(text), &refusal))
		require.Equal(t, want.parameter, refusal.Error.Details["parameter"], query)
		asked, _ := h.taken()
		require.Empty(t, asked, query)
	}
	for _, state := range hubStates() {
		response, text := h.ask(t, h.at(), http.MethodGet, "/api/v1/server/tasks?status="+state, "")
		require.Equal(t, http.StatusOK, response.StatusCode, text)
	}
	require.Equal(t, []string{"pending", "assigned", "planning", "plan_review", "running", "needs_human", "done", "failed", "cancelled"}, hubStates())
}

// TestHubIDs checks that any text in the path is an id, and that an impossible id is not found.
//
// Rows, T-54.
func TestHubIDs(t *testing.T) {
	h := buildHub(t, nil)
	h.answer = func(q question) (any, error) {
		return nil, &wire.Error{Code: wire.CodeNotFound, Message: "there is none", Details: map[string]any{"said": fmt.Sprintf("%+v", q.body)}}
	}
	for path, want := range map[string]string{
		"/api/v1/tasks/a%2Fb":                              "a/b",
		"/api/v1/tasks/a%20b":                              "a b",
		"/api/v1/tasks/%2e%2e":                             "..",
		"/api/v1/tasks/%25":                                "%",
		"/api/v1/tasks/caf%C3%A9":                          "café",
		"/api/v1/tasks/a%3Fb=c%23d":                        "a?b=c#d",
		"/api/v1/tasks/{id}":                               "{id}",
		"/api/v1/tasks/%22%3Cb%3E":                         `"<b>`,
		"/api/v1/server/tasks/poll":                        "poll",
		"/api/v1/server/tasks/checks":                      "checks",
		"/api/v1/server/tasks/" + strings.Repeat("x", 256): strings.Repeat("x", 256),
	} {
		response, text := h.ask(t, h.at(), http.MethodGet, path, "")
		requireRefused(t, response, text, http.StatusNotFound, wire.CodeNotFound)
		asked, _ := h.taken()
		require.Len(t, asked, 1, path)
		require.Equal(t, &wire.TaskID{TaskID: want}, asked[0].body)
	}
	for _, id := range []string{"%ff", "%00", "a%0ab", "%7f", strings.Repeat("x", 257), "%c3%28"} {
		for _, path := range []string{"/api/v1/tasks/" + id, "/api/v1/server/tasks/" + id + "/start", "/api/v1/server/tasks/t-1/dependencies/" + id} {
			method := map[bool]string{true: http.MethodPost, false: http.MethodGet}[strings.HasSuffix(path, "start")]
			if strings.Contains(path, "dependencies") {
				method = http.MethodDelete
			}
			response, text := h.ask(t, h.at(), method, path, "")
			requireRefused(t, response, text, http.StatusNotFound, wire.CodeNotFound)
			asked, refused := h.taken()
			require.Empty(t, asked, path)
			require.Len(t, refused, 1)
		}
	}
}

// TestHubWhereNothingIs checks unknown paths and methods of the hub.
//
// Rows: A-164, K-06, T-54.
func TestHubWhereNothingIs(t *testing.T) {
	h := buildHub(t, nil)
	for _, path := range []string{
		"/api/v1/tasks/", "/api/v1/tasks/t-1/", "/api/v1/tasks/t-1/nope", "/api/v1/tasks/t-1/notes/n9", "/api/v1/tasks//notes",
		"/api/v1/tasks/t-1/./notes", "/api/v1/tasks/../tasks/t-1", "/api/v1/server", "/api/v1/server/", "/api/v1/server/nope", "/api/v1/servers",
		"/api/v1/servers/tasks", "/api/v1/servers/tasks/t-1", "/api/v1/servers/servers", "/api/v1/server/tasks/t-1/approve-plan",
		"/api/v1/server/register", "/api/v1/tasks/t-1/plan",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "QUERY"} {
			conn, err := Dial(t.Context(), h.socket)
			require.NoError(t, err)
			_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\n\r\n", method, path)
			require.NoError(t, err)
			response, text := readAnswer(t, conn)
			require.NoError(t, conn.Close())
			require.Empty(t, response.Header.Get("Allow"), "%s %s", method, path)
			requireRefused(t, response, text, http.StatusNotFound, wire.CodeNotFound)
		}
	}
	response, text := h.at().do(t, http.MethodGet, "/api/v1/taskss", "")
	require.Equal(t, http.StatusNotFound, response.StatusCode)
	require.NotContains(t, text, `"detail"`, "that is no path of the hub")

	allow := make(map[string][]string)
	for i := range hubRoutes() {
		path := filled(&hubRoutes()[i])
		allow[path] = append(allow[path], hubRoutes()[i].method())
	}
	allow["/api/v1/server/tasks/check"] = slices.Clone(allow["/api/v1/server/tasks/t-1"]) // it could be an id
	for path, methods := range allow {
		if slices.Contains(methods, http.MethodGet) {
			methods = append(methods, http.MethodHead)
		}
		slices.Sort(methods)
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "QUERY"} {
			if slices.Contains(methods, method) {
				continue
			}
			response, text := h.ask(t, h.at(), method, path, "")
			requireRefused(t, response, text, http.StatusMethodNotAllowed, codeMethod)
			require.Equal(t, strings.Join(methods, ", "), response.Header.Get("Allow"), "%s %s", method, path)
		}
	}
	asked, _ := h.taken()
	require.Empty(t, asked)
}
