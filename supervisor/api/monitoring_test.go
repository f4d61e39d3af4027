package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/identity"
	"orchestrator/wire/trace"
)

func figured(d *API) {
	d.Metrics = func(_ context.Context, to io.Writer) error {
		_, err := io.WriteString(to, "agents 2\n")
		return err
	}
}

// TestMetricsAccess checks that metrics have the access rule of the status, because they name
// agents.
func TestMetricsAccess(t *testing.T) {
	h := build(t, figured, TCP{})
	env, shut := h.run(t, "r1")
	defer shut()
	bearer := func(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }
	tcp := func(header http.Header) asks { return asks{client: over(""), url: h.tcp.URL(), header: header} }
	for name, c := range map[string]struct {
		by   asks
		want int
	}{
		"operators' socket": {asks{client: over(h.socket)}, http.StatusOK},
		"socket of a run":   {asks{client: over(env[EnvSocket])}, http.StatusForbidden},
		"nobody":            {tcp(nil), http.StatusUnauthorized},
		"viewer":            {tcp(bearer(h.token(t, wire.PersonViewer))), http.StatusOK},
		"admin":             {tcp(bearer(h.token(t, wire.PersonAdmin))), http.StatusOK},
		"agent":             {tcp(bearer("orc_coder")), http.StatusForbidden},
		"actor":             {tcp(bearer("orc_far")), http.StatusForbidden},
		"wrong":             {tcp(bearer("orc_wrong")), http.StatusUnauthorized},
	} {
		response, text := c.by.do(t, http.MethodGet, metricsPath, "")
		require.Equal(t, c.want, response.StatusCode, name)
		if c.want == http.StatusOK {
			require.Equal(t, "agents 2", text, name)
			require.Equal(t, inFigures, response.Header.Get("Content-Type"), name)
		}
	}
	head, none := asks{client: over(h.socket)}.do(t, http.MethodHead, metricsPath, "")
	require.Equal(t, http.StatusOK, head.StatusCode)
	require.Empty(t, none)
}

// TestMetricsThatFail checks that metrics that fail halfway are an error.
func TestMetricsThatFail(t *testing.T) {
	h := build(t, func(d *API) {
		d.Metrics = func(_ context.Context, to io.Writer) error {
			_, _ = io.WriteString(to, "agents 2\n")
			return errors.New("it broke")
		}
	}, TCP{})
	response, text := asks{client: over(h.socket)}.do(t, http.MethodGet, metricsPath, "")
	require.Equal(t, http.StatusInternalServerError, response.StatusCode)
	require.NotContains(t, text, "agents 2")
	require.NotContains(t, text, "it broke")
}

// TestMetricsAreOptional checks that an API without metrics answers with 404.
func TestMetricsAreOptional(t *testing.T) {
	h := build(t, nil, TCP{})
	response, _ := asks{client: over(h.socket)}.do(t, http.MethodGet, metricsPath, "")
	require.Equal(t, http.StatusNotFound, response.StatusCode)
}

const (
	theTrace  = "0af7651916cd43dd8448eb211c80319c"
	theSpan   = "b7ad6b7169203331"
	theParent = "00-" + theTrace + "-" + theSpan + "-01"
)

// noTraces lists headers that count as none.
var noTraces = map[string]http.Header{
	"none":            nil,
	"empty":           {"Traceparent": {""}},
	"twice":           {"Traceparent": {theParent, theParent}},
	"no trace":        {"Traceparent": {"00-00000000000000000000000000000000-" + theSpan + "-01"}},
	"no span":         {"Traceparent": {"00-" + theTrace + "-0000000000000000-01"}},
	"capitals":        {"Traceparent": {strings.ToUpper(theParent)}},
	"never a version": {"Traceparent": {"ff-" + theTrace + "-" + theSpan + "-01"}},
	"cut off":         {"Traceparent": {theParent[:len(theParent)-1]}},
	"something else":  {"Traceparent": {"yes"}},
	"the state alone": {"Tracestate": {"congo=t61rcWkgMzE"}},
}

// TestTraceOfNewTasks checks that a new task without a trace gets the trace of its request. All
// other members stay unchanged.
//
// Rows: D-13, D-14.
func TestTraceOfNewTasks(t *testing.T) {
	const block = `"traceId":"` + theTrace + `","spanId":"` + theSpan + `"`
	header := http.Header{"Traceparent": {theParent}, "Tracestate": {"congo=t61rcWkgMzE"}}
	for text, want := range map[string]string{
		`{"type":"x"}`:                    `{"type":"x","observability":{` + block + `}}`,
		` { } `:                           `{ "observability":{` + block + `}}`,
		`{"n":1.00,"observability":null}`: `{"n":1.00,"observability":{` + block + `}}`,
		`{"observability":{"baggage":{"n":1.0}},"a":"\u0062"}`: `{"observability":{"baggage":{"n":1.0},` + block + `},"a":"\u0062"}`,
		`{"observability":{"traceId":null,"spanId":""}}`:       `{"observability":{` + block + `}}`,
		`{"observability":{"traceId":"mine"}}`:                 "",
		`{"observability":{"spanId":"mine"}}`:                  "",
		`{"observability":{"traceId":7}}`:                      "",
		`{"observability":{"traceId":"a","traceId":"b"}}`:      "",
		`{"observability":[]}`:                                 "",
		`{"observability":{},"observability":{}}`:              "",
		`{"observability":`:                                    "",
		`[]`:                                                   "",
		``:                                                     "",
		`{"a":` + strings.Repeat("[", 9) + strings.Repeat("]", 9): "",
	} {
		if want == "" {
			want = text
		}
		require.Equal(t, want, string(inTrace([]byte(text), header, 8)), text)
		for name, none := range noTraces {
			require.Equal(t, text, string(inTrace([]byte(text), none, 8)), name)
		}
	}
}

// TestTraceComesWithRequests checks that exactly the routes that make tasks read the header.
//
// Rows: D-13.
func TestTraceComesWithRequests(t *testing.T) {
	var sent string
	h := buildHub(t, func(d *API) {
		fakeOf(d).ask = func(_ context.Context, _ identity.Caller, _ string, text []byte) (any, error) {
			sent = string(text)
			return &wire.TaskReply{}, nil
		}
	})
	const block = `"observability":{"traceId":"` + theTrace + `","spanId":"` + theSpan + `"}`
	for operation, want := range map[string]string{
		"submit-task": `{"a":1,` + block + `}`, "submit-task-request": `{"a":1,` + block + `}`, "update-task": `{"a":1}`,
	} {
		by := h.at()
		by.header = http.Header{"Traceparent": {theParent}}
		response, text := by.do(t, http.MethodPost, operationsPath+operation, `{"a":1}`)
		require.Equal(t, http.StatusOK, response.StatusCode, text)
		require.Equal(t, want, sent, operation)
	}
	asked := func(header http.Header, path string) *delegation.Trace {
		by := h.at()
		if strings.Contains(path, "/server/") {
			by = h.as(withKey("coder"))
		} else {
			by.header = http.Header{}
		}
		for name, values := range header {
			by.header[name] = values
		}
		response, text := h.ask(t, by, http.MethodPost, path, `{"title":"x","spec":"y"}`)
		require.Equal(t, http.StatusCreated, response.StatusCode, text)
		questions, _ := h.taken()
		return questions[0].body.(*wire.SubmitTask).Observability
	}
	for _, path := range []string{"/api/v1/tasks", "/api/v1/server/tasks"} {
		require.Equal(t, &delegation.Trace{TraceID: theTrace, SpanID: theSpan}, asked(http.Header{"Traceparent": {theParent}}, path))
		for name, none := range noTraces {
			require.Nil(t, asked(none, path), name)
		}
	}
}

// TestTraceGoesWithAnswers checks that a response with one task names the trace of the task,
// with the task's own span.
//
// Rows: D-13, D-43.
func TestTraceGoesWithAnswers(t *testing.T) {
	traced := func(trace, span string) *wire.TaskReply {
		return &wire.TaskReply{Task: wire.Task{ID: "t-1", Details: &wire.Details{Observability: &delegation.Trace{TraceID: trace, SpanID: span}}}}
	}
	own := fmt.Sprintf("00-%s-%s-01", theTrace, trace.SpanIDOf([]byte("t-1")))
	response := func(trace *delegation.Trace) *wire.TaskAnswer {
		return &wire.TaskAnswer{Document: wire.Raw(`{"id":"t-1","status":"pending"}`), Trace: trace}
	}
	for name, test := range map[string]struct {
		answer any
		want   string
	}{
		"in a trace":           {answer: traced(theTrace, theSpan), want: own},
		"another trace id":     {answer: traced("trace-1", theSpan)},
		"another span id":      {answer: traced(theTrace, "span-1")},
		"no span":              {answer: traced(theTrace, "")},
		"in none":              {answer: &wire.TaskReply{Task: wire.Task{ID: "t-1"}}},
		"a list":               {answer: &wire.TaskList{}},
		"a response":           {answer: response(traced(theTrace, theSpan).Task.Details.Observability), want: own},
		"a response elsewhere": {answer: response(&delegation.Trace{TraceID: "trace-1", SpanID: "span-1"})},
		"a response of none":   {answer: response(nil)},
	} {
		h := buildHub(t, func(d *API) {
			fakeOf(d).ask = func(context.Context, identity.Caller, string, []byte) (any, error) { return test.answer, nil }
		})
		h.answer = func(question) (any, error) { return test.answer, nil }
		response, text := h.at().do(t, http.MethodPost, operationsPath+"get-task", `{}`)
		require.Equal(t, http.StatusOK, response.StatusCode, text)
		require.Equal(t, test.want, response.Header.Get(traceparent), name)
		asked, _ := h.taken()
		require.Empty(t, asked, "nothing is asked that its caller has not")
		if reply, ok := test.answer.(*wire.TaskReply); ok {
			reply.Task.State = wire.TaskPending
			response, _ = h.at().do(t, http.MethodGet, "/api/v1/tasks/t-1", "")
			require.Equal(t, test.want, response.Header.Get(traceparent), name)
		}
	}
}

// TestTraceIsDescribed checks that the document describes both headers where they apply.
func TestTraceIsDescribed(t *testing.T) {
	doc := readDocument(t, everything())
	at := func(pattern string, path ...string) any {
		method, where, _ := strings.Cut(pattern, " ")
		var found any = doc.value["paths"].(map[string]any)[where].(map[string]any)[strings.ToLower(method)]
		for _, key := range path {
			found, _ = found.(map[string]any)[key]
		}
		return found
	}
	for pattern, status := range map[string]string{
		"POST /api/v1/operations/submit-task": "200", "POST /api/v1/operations/submit-task-request": "200", "POST /api/v1/tasks": "201", "POST /api/v1/server/tasks": "201",
	} {
		parameter := at(pattern, "parameters").([]any)[0].(map[string]any)
		require.Equal(t, []any{traceparent, "header"}, []any{parameter["name"], parameter["in"]}, pattern)
		require.Contains(t, at(pattern, "responses", status, "headers"), traceparent, pattern)
	}
	require.Contains(t, at("GET /api/v1/tasks/{id}", "responses", "200", "headers"), traceparent)
	require.Contains(t, at("POST /api/v1/operations/get-task", "responses", "200", "headers"), traceparent)
	require.Nil(t, at("POST /api/v1/operations/get-task", "parameters"))
	require.Nil(t, at("POST /api/v1/operations/status", "responses", "200", "headers"))
}
