package session

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
	"orchestrator/wire/trace"
)

// traced sends a request with a traceparent and returns the answer and its traceparent.
func traced(v *stage.Caller, request, body, traceparent string) (answer *stage.Response, place string) {
	v.Hub.T.Helper()
	method, path, _ := strings.Cut(request, " ")
	asked, err := http.NewRequestWithContext(v.Hub.T.Context(), method, v.Hub.Url+"/api/v1"+path, strings.NewReader(body))
	require.NoError(v.Hub.T, err)
	asked.Header.Set(v.Header, v.Credential)
	asked.Header.Set("traceparent", traceparent)
	got, err := v.Client.Do(asked)
	require.NoError(v.Hub.T, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	require.NoError(v.Hub.T, err)
	answer = &stage.Response{Status: got.StatusCode, Header: got.Header, Text: strings.TrimSpace(string(text))}
	v.Hub.RequireLike(method+" /api/v1"+path, answer)
	return answer, got.Header.Get("traceparent")
}

// blocks has the members that every view of a delegated task shows.
type blocks struct {
	Context       json.RawMessage `json:"context"`
	Routing       json.RawMessage `json:"routing"`
	Observability json.RawMessage `json:"observability"`
}

// Every view of tasks shows delegated tasks. Their responses can be read in every way by agents
// and people that may see the task.
//
// Rows: D-05, D-06, D-07, D-08, D-09, D-10, D-12, D-13, D-14, D-31, D-32, D-33, D-34, D-40.
func TestDelegationViews(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+strings.TrimPrefix(kitchen(9), stage.QuickStop), "boss", "cook", "help")
	all := h.Open("boss", "cook", "help")
	boss, cook, help := all[0], all[1], all[2]
	ann, program := h.Person(), h.AgentCaller("boss")
	const context = `{"conversationId":"c-1","parentTaskId":"elsewhere","user":"eve","timestamp":"2026-02-04T14:30:00Z","priority":"urgent"}`
	const position = `{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7","baggage":{"n":12345678901234567890,"b":[1.50]}}`
	asks(boss, "t-1", "cook", `"context":`+context, `"observability":`+position)
	gets(cook, "t-1")
	says(cook, "t-1", "in_progress", `"message":"half"`)
	hear(boss, 1, "t-1", delegation.InProgress)

	shown := func(text string, below ...string) blocks {
		var found blocks
		value := json.RawMessage(text)
		for _, key := range below {
			var members map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(value, &members), text)
			value = members[key]
		}
		require.NoError(t, json.Unmarshal(value, &found), text)
		return found
	}
	for name, b := range map[string]blocks{
		"over stdio":     shown(string(boss.Granted(nil, "get-task", `{"taskId":"t-1"}`).Payload), "task"),
		"by its agent":   shown(string(cook.Granted(nil, "get-task", `{"taskId":"t-1"}`).Payload), "task"),
		"over HTTP":      shown(ann.Gets(nil, "GET /tasks/t-1", "").Text),
		"with a key":     shown(program.Gets(nil, "GET /server/tasks/t-1", "").Text),
		"on the command": shown(h.Ask("task", "show", "t-1", "--json"), "task"),
	} {
		require.JSONEq(t, context, string(b.Context), name)
		require.JSONEq(t, `{"source":"boss","target":"cook","delegationChain":["boss"]}`, string(b.Routing), name)
		require.JSONEq(t, position, string(b.Observability), name)
		require.Contains(t, string(b.Observability), `12345678901234567890`, name)
	}
	card := h.Ask("task", "show", "t-1")
	for _, words := range []string{"boss", "cook", "c-1", "eve", "4bf92f3577b34da6a3ce929d0e0e4736", "12345678901234567890"} {
		require.Contains(t, card, words)
	}

	// the tasks of a conversation
	asks(boss, "t-2", "cook", `"context":{"conversationId":"c-1"}`)
	asks(boss, "t-3", "cook", `"context":{"conversationId":"c-2"}`)
	boss.Settle()
	require.Equal(t, []string{"t-1", "t-2"}, boss.Tasks(`{"conversationId":"c-1"}`))
	require.Empty(t, boss.Tasks(`{"conversationId":"c-3"}`))
	require.Equal(t, "t-1\nt-2\n", h.Ask("task", "ls", "-q", "--conversation", "c-1"))

	// the final response
	says(cook, "t-1", "completed", `"result":{"n":1.50}`, `"metadata":{"x":2.50}`, `"odd":[]`)
	hear(boss, 1, "t-1", delegation.Completed)
	said := boss.Granted(nil, "get-task-response", `{"taskId":"t-1"}`).Payload
	var over aWord
	require.NoError(t, json.Unmarshal(said, &over))
	require.Equal(t, `{"n":1.50}`, string(over.Result))
	require.Equal(t, "cook", over.Metadata.Agent)
	require.Zero(t, *over.Metadata.RetryCount)
	began, ok := object.ParseTime(over.Metadata.StartedAt)
	require.True(t, ok)
	ended, ok := object.ParseTime(over.Metadata.CompletedAt)
	require.True(t, ok)
	require.Equal(t, ended.Sub(began).Milliseconds(), *over.Metadata.DurationMS)
	require.Contains(t, string(said), `"x":2.50`)
	for _, v := range []*stage.Caller{ann, program} {
		answer, place := traced(v, "POST /operations/get-task-response", `{"taskId":"t-1"}`, "")
		require.Equal(t, http.StatusOK, answer.Status, answer.Text)
		require.JSONEq(t, string(said), answer.Text)
		require.Equal(t, "00-4bf92f3577b34da6a3ce929d0e0e4736-"+trace.SpanIDOf([]byte("t-1"))+"-01", place)
	}
	require.JSONEq(t, string(said), withoutVersion(t, h.Ask("task", "response", "t-1", "--json")))
	help.Refused("UNAUTHORIZED", "get-task-response", `{"taskId":"t-1"}`)
	help.Refused("NOT_FOUND", "get-task-response", `{"taskId":"t-9"}`)
	h.Stop()
}

// withoutVersion returns JSON output without its format version.
func withoutVersion(t *testing.T, text string) string {
	t.Helper()
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(text), &members), text)
	delete(members, "format_version")
	rest, err := json.Marshal(members)
	require.NoError(t, err)
	return string(rest)
}

// Work can be submitted over HTTP. The traceparent header sets the trace unless the request
// does, and the answer has its own. A program with a key acts as its agent, which gets the
// responses; people query them.
//
// Rows: D-10, D-13, D-15, D-16, D-29, D-39, K-18.
func TestDelegationOverHTTP(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+strings.TrimPrefix(kitchen(9), stage.QuickStop), "boss", "cook", "help")
	all := h.Open("boss", "cook", "help")
	boss, cook := all[0], all[1]
	ann, program := h.Person(), h.AgentCaller("boss")
	const traceID, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	const submit = "POST /operations/submit-task-request"
	for n, row := range []struct {
		who          *stage.Caller
		header, more string
		trace, span  string
		source       string
	}{
		{ann, "00-" + traceID + "-" + span + "-01", ``, traceID, span, "orchestrator"},
		{program, "00-" + traceID + "-" + span + "-00", `,"observability":{"baggage":{"b":1.50}}`, traceID, span, "boss"},
		{ann, "00-" + traceID + "-" + span + "-01", `,"observability":{"traceId":"own"},"routing":{"source":"a program"}`, "own", trace.SpanIDOf([]byte("t-2")), "a program"},
		{ann, "00-nonsense-01", ``, trace.IDOf([]byte("t-3")), trace.SpanIDOf([]byte("t-3")), "orchestrator"},
	} {
		id := fmt.Sprint("t-", n)
		answer, place := traced(row.who, submit, fmt.Sprintf(`{"id":%q,"type":"cook","payload":{}%s}`, id, row.more), row.header)
		require.Equal(t, http.StatusOK, answer.Status, answer.Text)
		require.Contains(t, answer.Text, `"status":"pending"`)
		w := gets(cook, id)
		require.Equal(t, []string{row.trace, row.span, row.source}, []string{w.Observability.TraceID, w.Observability.SpanID, w.Routing.Source})
		want := ""
		if trace.IsID(row.trace) {
			want = "00-" + row.trace + "-" + trace.SpanIDOf([]byte(id)) + "-01"
		}
		require.Equal(t, want, place)
		says(cook, id, "completed", `"result":1`)
	}
	hear(boss, 1, "t-1", delegation.Completed)
	boss.Settle()
	for _, id := range []string{"t-0", "t-2", "t-3"} {
		require.Empty(t, words(boss, id))
	}

	for _, bad := range []struct {
		who             *stage.Caller
		body            string
		status          int
		code, at, fault string
	}{
		{ann, `{"id":"n","type":"cook","payload":[]}`, 400, "invalid", "/payload", ""},
		{ann, `{"id":"n","type":"cook","payload":{},"context":{"priority":"soon"}}`, 400, "invalid", "/context/priority", ""},
		{ann, `{"id":"n","type":"fly","payload":{}}`, 404, "not_found", "", "capability_not_found"},
		{ann, `{"id":"n","type":"cook","payload":{},"routing":{"target":"x"}}`, 404, "not_found", "", "agent_not_found"},
		{program, `{"id":"n","type":"cook","payload":{},"routing":{"target":"boss"}}`, 409, "conflict", "", "cycle"},
		{program, `{"id":"n","type":"cook","payload":{},"routing":{"source":"cook"}}`, 403, "denied", "/routing/source", ""},
		{ann, `{"id":"n","type":"cook","payload":{},"routing":{"source":"cook"}}`, 403, "denied", "/routing/source", ""},
		{ann, `{"id":"t-1","type":"cook","payload":{"n":1}}`, 400, "invalid", "/id", "id_reused"},
	} {
		r := bad.who.Ask(strings.Replace(submit, " ", " /api/v1", 1), bad.body)
		require.Equal(t, bad.status, r.Status, "%s: %s", bad.body, r.Text)
		var refusal stage.HTTPRefusal
		require.NoError(t, json.Unmarshal([]byte(r.Text), &refusal))
		require.Equal(t, bad.code, refusal.Error.Code, r.Text)
		if bad.at != "" {
			require.Contains(t, fmt.Sprint(refusal.Error.Details["pointer"]), bad.at, r.Text)
		}
		if bad.fault != "" {
			require.Equal(t, bad.fault, refusal.Error.Details["reason"], r.Text)
		}
	}
	h.Stop()
}

// The shipped schemas describe all lines of delegation, and the program can check a line before
// it is sent.
//
// Rows: D-01, D-02, D-03, D-18, D-19, D-27, D-42, T-33.
func TestDelegationSchemas(t *testing.T) {
	t.Parallel()
	h, all := plot(t, kitchen(9), "boss", "cook", "help")
	boss, cook := all[0], all[1]
	schema := func(name string) *jsonschema.Schema {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(h.Ask("schema", name)))
		require.NoError(t, err)
		c := jsonschema.NewCompiler()
		require.NoError(t, c.AddResource("urn:it", value))
		compiled, err := c.Compile("urn:it")
		require.NoError(t, err)
		return compiled
	}
	like := func(s *jsonschema.Schema, line string) error {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		require.NoError(t, err)
		return s.Validate(value)
	}
	request, response, act := schema("task-request"), schema("task-response"), schema("task-act")
	asked := requesting("t-1", "cook", `"context":{"priority":"low","user":null}`, `"observability":{"baggage":{}}`, `"x":1`)
	boss.Say(asked + "\n")
	require.NoError(t, like(request, gets(cook, "t-1").line))
	acts(boss, "t-1", delegation.ActStatus, `{}`)
	require.NoError(t, like(act, hear(cook, 1, "t-1", delegation.ActStatus).line))
	says(cook, "t-1", "failed", failing("X", true), `"artifacts":[{"name":"a","type":"t","content":""}]`)
	require.NoError(t, like(response, hear(boss, 1, "t-1", delegation.Failed).line))
	asks(boss, "t-2", "fly")
	require.NoError(t, like(response, hear(boss, 1, "t-2", delegation.Failed).line))
	require.NoError(t, like(request, asked))

	bad := []string{`{"id":"t","type":"cook","payload":[]}`, `{"id":"t","status":"in_progress","result":{}}`, `{"id":"t","type":"task.update","payload":{}}`}
	for n, s := range []*jsonschema.Schema{request, response, act} {
		require.Error(t, like(s, bad[n]))
	}
	h.Write("lines", asked+"\n"+strings.Join(bad, "\n")+"\na log line\n")
	stdout, stderr, code := h.Call("schema", "--check", "lines")
	require.Equal(t, cli.ExitNo, code, stderr)
	for _, wrong := range []string{"line 2  task:request  /payload", "line 3  task:response  /result", "line 4  task:update  /payload/input"} {
		require.Contains(t, stdout, wrong)
	}
	require.NotContains(t, stdout, "line 1 ")
	h.Write("lines", asked+"\n")
	h.Ask("schema", "--check", "lines")
	h.Stop()
}
