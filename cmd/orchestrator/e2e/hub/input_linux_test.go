package hub

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
)

// Invalid input is refused with its place, has no effect, and does not affect later requests.
//
// Rows, K-06, T-20, T-42, T-54.
func TestHubBadInput(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, "http {\n  listen = [\"127.0.0.1:0\"]\n  max_body = \"4KiB\"\n}\n"+stage.QuickStop+Knowing("coder", "go", 2), "coder")
	h.Open("coder")
	ann, coder := h.Person(), h.AgentCaller("coder")
	task, begun := create(ann, wanting("x", "go")), begun(h, coder, 1)[0]
	const bad, unknown, conflict, invalid = http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity
	before := h.Status().Seq
	for _, row := range []struct {
		who           *stage.Caller
		request, body string
		status        int
		code, pointer string
	}{
		{ann, "POST /tasks", ``, invalid, "invalid", "/title"},
		{ann, "POST /tasks", `{"title":" ","spec":"s"}`, invalid, "invalid", "/title"},
		{ann, "POST /tasks", `{"title":"x"}`, invalid, "invalid", "/spec"},
		{ann, "POST /tasks", `{"title":7,"spec":"s"}`, invalid, "invalid", "/title"},
		{ann, "POST /tasks", `{"title":"x","title":"y","spec":"s"}`, invalid, "invalid", ""},
		{ann, "POST /tasks", `{"title":"x"`, bad, "malformed", ""},
		{ann, "POST /tasks", "{\"title\":\"\xff\",\"spec\":\"s\"}", bad, "malformed", ""},
		{ann, "POST /tasks", `[]`, invalid, "invalid", ""},
		{ann, "POST /tasks", `{"title":"x","spec":"s"} {}`, bad, "malformed", ""},
		{ann, "POST /tasks", `{"title":"x","spec":"s","d":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, invalid, "invalid", ""},
		{ann, "POST /tasks", `{"title":"x","spec":"s","filler":"` + strings.Repeat("x", 4<<10) + `"}`, http.StatusRequestEntityTooLarge, "too_large", ""},
		{ann, "POST /tasks", `{"title":"x","spec":"s","structured_spec":{"requirements":[]}}`, invalid, "invalid", "/structured_spec/$schema"},
		{ann, "POST /tasks", `{"title":"x","spec":"s","structured_spec":{"$schema":"orchestratia/task-specs/v1"}}`, invalid, "invalid", "/structured_spec/$schema"},
		{ann, "POST /tasks", `{"title":"x","spec":"s","requirements":{"languages":"go"}}`, invalid, "invalid", "/requirements/languages"},
		{ann, "POST /tasks", `{"title":"x","spec":"s","dependencies":[{}]}`, invalid, "invalid", "/dependencies/0/depends_on_task_id"},
		{ann, "POST /tasks", `{"title":"x","spec":"s","dependencies":[{"depends_on_task_id":"nope"}]}`, unknown, "not_found", "/dependencies/0"},
		{ann, "POST /tasks", fmt.Sprintf(`{"title":"x","spec":"s","dependencies":[{"depends_on_task_id":%q,"dependency_type":"soft"}]}`, task), invalid, "invalid", "/dependencies/0/dependency_type"},
		{ann, "POST /tasks", fmt.Sprintf(`{"title":"x","spec":"s","dependencies":[{"depends_on_task_id":%q,"dependency_type":"input"}]}`, task), invalid, "invalid", "/dependencies/0/contract_key"},
		{ann, "POST /tasks", fmt.Sprintf(`{"title":"x","spec":"s","dependency_ids":[%q,"nope"]}`, task), unknown, "not_found", "/dependency_ids/1"},
		{ann, "PUT /tasks/" + task, `{"status":"done"}`, invalid, "invalid", "/status"},
		{ann, "PUT /tasks/nope", `{"title":"y"}`, unknown, "not_found", ""},
		{ann, "POST /tasks/" + task + "/approve-plan", ``, conflict, "conflict", ""},
		{ann, "POST /tasks/" + task + "/revise-plan", ``, invalid, "invalid", "/feedback"},
		{ann, "POST /tasks/" + begun + "/auto-assign", ``, conflict, "conflict", ""},
		{ann, "DELETE /tasks/" + task, ``, http.StatusMethodNotAllowed, "method", ""},
		{ann, "GET /tasks/" + task + "/nothing", ``, unknown, "not_found", ""},
		{ann, "GET /tasks//notes", ``, unknown, "not_found", ""},
		{coder, "POST /servers/tasks/" + begun + "/complete", `{}`, invalid, "invalid", "/result"},
		{coder, "POST /servers/tasks/" + begun + "/complete", `{"result":{"$schema":"orchestratia/task-result/v1"}}`, invalid, "invalid", "/result/summary"},
		{coder, "POST /servers/tasks/" + begun + "/complete", `{"result":{"$schema":"orchestratia/task-result/v1","summary":"s","contracts":{"k":{"status":"skipped"}}}}`, invalid, "invalid", "/result/contracts/k/data"},
		{coder, "POST /servers/tasks/" + begun + "/help", `{"question":7}`, invalid, "invalid", "/question"},
		{coder, "POST /server/tasks/" + begun + "/assign", `{}`, invalid, "invalid", "/session_name"},
		{coder, "POST /server/tasks/" + task + "/dependencies", `{"dependency_type":"input"}`, invalid, "invalid", "/depends_on_task_id"},
		{coder, "DELETE /server/tasks/" + begun + "/dependencies/nope", ``, unknown, "not_found", ""},
		{coder, "GET /server/tasks?status=asleep", ``, invalid, "invalid", ""},
		{coder, "GET /server/tasks/check?session_id=nope", ``, http.StatusForbidden, "denied", ""},
		{coder, "POST /servers/heartbeat", `{"capabilities":{"languages":7}}`, invalid, "invalid", "/capabilities/languages"},
		{h.Anonymous(), "POST /servers/register", `{"name":"far"}`, invalid, "invalid", "/registration_token"},
	} {
		refusal := row.who.Fails(row.status, row.code, row.request, row.body)
		if row.pointer != "" {
			require.Equal(t, row.pointer, refusal.Error.Details["pointer"], "%s %s", row.request, row.body)
		}
	}
	require.Equal(t, before, h.Status().Seq, "nothing is kept")
	require.Equal(t, "running", taskOf(ann, begun).Status)
	coder.Gets(nil, "POST /servers/tasks/"+begun+"/complete", `{"result":"served"}`)
	h.Stop()
}

// Requests with a foreign host name, with invalid JSON, or cut off in the middle are refused.
func TestHubStrangeRequests(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("coder", "go", 2), "coder")
	h.Open("coder")
	ann := h.Person()
	before := h.Status().Seq
	body := `{"title":"x","spec":"s"}`
	for name, row := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"another name":    {func(r *http.Request) { r.Host = "evil.example" }, http.StatusForbidden},
		"no JSON":         {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, http.StatusUnsupportedMediaType},
		"packed":          {func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }, http.StatusUnsupportedMediaType},
		"two credentials": {func(r *http.Request) { r.Header.Set("X-API-Key", "orc_other") }, http.StatusUnauthorized},
		"by a browser":    {func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, http.StatusCreated}, // its token is a sufficient proof
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.Url+"/api/v1/tasks", strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set(ann.Header, ann.Credential)
		row.change(r)
		answer, err := ann.Client.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, row.status, answer.StatusCode, name)
		require.Empty(t, answer.Header.Get("Access-Control-Allow-Origin"))
	}
	for _, text := range []string{
		"POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + ann.Credential + "\r\nContent-Length: 1000\r\n\r\n" + body,
		"POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + ann.Credential + "\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"tit\r\n",
		"GET /api/v1/tasks", "\x16\x03\x01\x00\x05hello", "\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(h.Url, "http://"))
		require.NoError(t, err)
		_, err = conn.Write([]byte(text))
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	create(ann, body)
	require.Equal(t, before+2, h.Status().Seq)
	h.Stop()
}

// On its own socket an agent needs no credential and cannot act as another, whatever credential
// it shows. Socket and token end with its run.
//
// Rows.
func TestHubOwnSocket(t *testing.T) {
	t.Parallel()
	const inner = "\nagent \"inner\" {\n  command = [\"sh\", \"inner.sh\"]\n  capabilities {\n    languages = [\"go\"]\n  }\n}\n"
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+inner+Knowing("other", "ts", 1), "other")
	h.Write("inner.sh", "echo \"$ORC_URL $ORC_TOKEN $ORC_SOCKET\" >inner.part\nmv inner.part inner.env\nexec cat\n")
	h.Open("other")
	ann, other := h.Person(), h.AgentCaller("other")
	token, socket := innerOf(h)
	self := h.Caller("", "")
	self.Client = over(socket)

	task := create(ann, wanting("x", "go"))
	matched(ann, task)
	require.Equal(t, task, polled(self)[0].ID)
	self.Gets(nil, "POST /servers/tasks/"+task+"/start", "")
	var part hubTask
	self.Gets(&part, "POST /server/tasks", `{"title":"part","spec":"s","session_id":"s-1","acceptance_criteria":["green"]}`)
	part = taskOf(ann, part.ID)
	require.Equal(t, "agent:inner", part.CreatedBy)
	require.Equal(t, task, *part.Parent)
	require.Equal(t, "s-1", *part.Session)
	require.Equal(t, []string{"green"}, part.Criteria)

	shows := func(header, credential string) *stage.Caller {
		v := h.Caller(header, credential)
		v.Client = self.Client
		return v
	}
	const poll = "GET /servers/tasks/poll"
	require.Empty(t, polled(shows("X-API-Key", token)))
	require.Empty(t, polled(shows("Authorization", "Bearer "+token)))
	shows("X-API-Key", other.Credential).Fails(http.StatusForbidden, "denied", poll, "")
	shows("Authorization", ann.Credential).Fails(http.StatusForbidden, "denied", "GET /tasks/"+task, "")
	shows("X-API-Key", "orc_unknown").Fails(http.StatusUnauthorized, "unauthenticated", poll, "")
	self.Fails(http.StatusUnauthorized, "unauthenticated", "GET /tasks/"+task, "")
	require.Equal(t, "x", taskOf(h.WithKey(token), task).Title, "over TCP it is the same")

	h.Ask("agent", "stop", "inner")
	require.NoFileExists(t, socket)
	_, err := self.Try("GET /api/v1/servers/tasks/poll", "")
	require.Error(t, err)
	h.WithKey(token).Fails(http.StatusUnauthorized, "unauthenticated", poll, "")
	require.NoError(t, os.Remove(h.Path("inner.env")))
	h.Ask("agent", "start", "inner")
	fresh, _ := innerOf(h)
	require.NotEqual(t, token, fresh)
	require.Equal(t, task, polled(h.WithKey(fresh))[0].ID, "what it had begun it is given again")
	h.Stop()
}

// innerOf returns the findings of the agent named inner about its environment.
func innerOf(h *stage.Hub) (token, socket string) {
	h.T.Helper()
	var words []string
	stage.WaitFor(h.T, "environment of inner", func() bool {
		text, err := os.ReadFile(h.Path("inner.env"))
		words = strings.Fields(string(text))
		return err == nil
	})
	require.Len(h.T, words, 3)
	require.Equal(h.T, h.Url, words[0])
	return words[1], words[2]
}

// over returns a client that talks to a unix socket.
func over(socket string) *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}

// The check of answers against the document finds missing, extra and wrong members.
func TestHubDocumentIsHeld(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("coder", "go", 2), "coder")
	h.Open("coder")
	ann := h.Person()
	task := create(ann, `{"title":"x","spec":"s"}`)
	request := "GET /api/v1/tasks/" + task
	r := ann.Ask(request, "")
	for _, change := range [][2]string{
		{`"title":"x",`, ``}, {`"title":"x"`, `"title":7`}, {`"status":"pending"`, `"status":"asleep"`},
		{`"dependencies":[]`, `"dependencies":null`}, {`"dependencies":[]`, `"dependencies":[{"id":"d1"}]`},
	} {
		require.Contains(t, r.Text, change[0])
		require.Error(t, h.Unlike(request, &stage.Response{Status: r.Status, Header: r.Header, Text: strings.Replace(r.Text, change[0], change[1], 1)}), "%s", change[1])
	}
	require.Error(t, h.Unlike(request, &stage.Response{Status: http.StatusCreated, Header: r.Header, Text: r.Text}))
	require.Error(t, h.Unlike(request+"/notes", r))
	require.NoError(t, h.Unlike(request, r))
	h.Stop()
}
