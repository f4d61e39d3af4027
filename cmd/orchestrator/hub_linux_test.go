package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// Tests of the hub API over real TCP, as people with tokens, agents with keys, and servers on
// other machines use it. Every answer is checked against the program's OpenAPI document.

// A hubTeam is a theatre with an HTTP API for visitors.
type hubTeam struct {
	*theatre
	url      string
	document *openapi3.T
	schemas  *jsonschema.Compiler // of the document
	routes   *http.ServeMux       // those of the document, to find the route of a request
	entered  int                  // runs of puppets so far
}

// listeners configures a hub without rate limits.
const listeners = `
http {
  listen = ["127.0.0.1:0"]
  rate   = 1000000
}
`

// newHub makes a hub with puppets. The configuration includes its listener.
func newHub(t *testing.T, hcl string, names ...string) *hubTeam {
	t.Helper()
	return &hubTeam{theatre: troupe(t, hcl, names...)}
}

// open starts the program and waits for its puppets, in order.
func (h *hubTeam) open(names ...string) []*actor {
	h.t.Helper()
	h.up() // without --json, since only text shows the address
	h.url = h.listening()
	var actors []*actor
	for _, name := range names {
		actors = append(actors, h.enters(name))
	}
	if h.document == nil {
		h.readDocument()
	}
	return actors
}

// enters waits for the next run of a puppet and until the program knows it. The request ids of
// this run differ from those of earlier runs.
func (h *hubTeam) enters(name string) *actor {
	h.t.Helper()
	a := h.enter(name)
	h.entered++
	a.said = 1000 * h.entered
	a.quiet()
	return a
}

// kill kills the program.
func (h *hubTeam) kill() {
	h.t.Helper()
	require.NoError(h.t, h.process.Process.Kill())
	h.await()
}

// readDocument reads the program's OpenAPI document.
func (h *hubTeam) readDocument() {
	h.t.Helper()
	r := h.nobody().ask("GET /openapi.json", "")
	require.Equal(h.t, http.StatusOK, r.status)
	var err error
	h.document, err = openapi3.NewLoader().LoadFromData([]byte(r.text))
	require.NoError(h.t, err)
	require.NoError(h.t, h.document.Validate(h.t.Context()))
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(r.text))
	require.NoError(h.t, err)
	h.schemas = jsonschema.NewCompiler()
	require.NoError(h.t, h.schemas.AddResource("urn:document", value))
	h.routes = http.NewServeMux()
	for path, item := range h.document.Paths.Map() {
		for method := range item.Operations() {
			h.routes.HandleFunc(method+" "+path, func(http.ResponseWriter, *http.Request) {})
		}
	}
}

// unlike returns how an answer differs from the document, or nil.
func (h *hubTeam) unlike(request string, r *reply) error {
	method, path, _ := strings.Cut(request, " ")
	asked, err := http.NewRequest(method, path, http.NoBody)
	if err != nil {
		return err
	}
	place := []string{"components", "schemas", "hub.refusal"}
	if _, pattern := h.routes.Handler(asked); pattern != "" {
		method, path, _ = strings.Cut(pattern, " ")
		response := h.document.Paths.Value(path).GetOperation(method).Responses.Status(r.status)
		kind := r.header.Get("Content-Type")
		if response == nil || response.Value.Content[kind] == nil {
			return fmt.Errorf("%s is not described as answered with %d in %s", pattern, r.status, kind)
		}
		place = []string{"paths", path, strings.ToLower(method), "responses", fmt.Sprint(r.status), "content", kind, "schema"}
	} else if r.status != http.StatusNotFound && r.status != http.StatusMethodNotAllowed {
		return fmt.Errorf("nothing is described there, and it is answered with %d", r.status)
	}
	return h.unlikeSchema(r.text, place...)
}

// unlikeSchema returns how a text differs from the schema at a place of the document. It does
// not use kin-openapi, which reads some of these schemas as those of an older version without
// null.
func (h *hubTeam) unlikeSchema(text string, place ...string) error {
	url := "urn:document#"
	for _, part := range place {
		url += "/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(part)
	}
	schema, err := h.schemas.Compile(url)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// requireLike checks an answer against the document, if it was read.
func (h *hubTeam) requireLike(request string, r *reply) {
	h.t.Helper()
	if h.document != nil {
		require.NoError(h.t, h.unlike(request, r), "%s: %d %s", request, r.status, r.text)
	}
}

// A visitor is an HTTP client with a credential.
type visitor struct {
	hub        *hubTeam
	header     string // header of the credential; "" for none
	credential string
	client     *http.Client
}

func (h *hubTeam) visitor(header, credential string) *visitor {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	return &visitor{hub: h, header: header, credential: credential, client: client}
}

func (h *hubTeam) nobody() *visitor { return h.visitor("", "") }

// person returns a visitor with a person's token, by default an operator.
func (h *hubTeam) person(flags ...string) *visitor {
	h.t.Helper()
	token := h.ask(append([]string{"token", "issue", "--sub", "ann"}, flags...)...)
	return h.visitor("Authorization", "Bearer "+strings.TrimSpace(token))
}

// withKey returns a visitor with an API key.
func (h *hubTeam) withKey(key string) *visitor { return h.visitor("X-API-Key", strings.TrimSpace(key)) }

// program returns a visitor with a new key of an agent.
func (h *hubTeam) program(agent string) *visitor {
	h.t.Helper()
	return h.withKey(h.ask("key", "issue", agent))
}

// A reply is an HTTP answer.
type reply struct {
	status int
	header http.Header
	text   string
}

// try sends a request, such as "GET /api/v1/tasks/1". It may be called from any goroutine.
func (v *visitor) try(request, body string) (*reply, error) {
	method, path, _ := strings.Cut(request, " ")
	asked, err := http.NewRequest(method, v.hub.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if v.header != "" {
		asked.Header.Set(v.header, v.credential)
	}
	answer, err := v.client.Do(asked)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	return &reply{status: answer.StatusCode, header: answer.Header, text: strings.TrimSpace(string(text))}, nil
}

// ask sends a request and checks the answer against the document.
func (v *visitor) ask(request, body string) *reply {
	v.hub.t.Helper()
	r, err := v.try(request, body)
	require.NoError(v.hub.t, err)
	v.hub.requireLike(request, r)
	return r
}

// gets sends a request that must succeed and decodes the answer into found. The path is relative
// to /api/v1.
func (v *visitor) gets(found any, request, body string) *reply {
	v.hub.t.Helper()
	r := v.ask(strings.Replace(request, " ", " /api/v1", 1), body)
	want := http.StatusOK
	if r.status == http.StatusCreated {
		want = http.StatusCreated
	}
	require.Equal(v.hub.t, want, r.status, "%s %s: %s", request, body, r.text)
	if found != nil {
		require.NoError(v.hub.t, json.Unmarshal([]byte(r.text), found), r.text)
	}
	return r
}

// refusalOfHub is a refusal in the format of the hub.
type refusalOfHub struct {
	Error struct {
		Code        string         `json:"code"`
		Message     string         `json:"message"`
		Details     map[string]any `json:"details"`
		Recoverable bool           `json:"recoverable"`
	} `json:"error"`
	Detail string `json:"detail"`
}

// misses sends a request that must be refused.
func (v *visitor) misses(status int, code, request, body string) *refusalOfHub {
	v.hub.t.Helper()
	r := v.ask(strings.Replace(request, " ", " /api/v1", 1), body)
	require.Equal(v.hub.t, status, r.status, "%s %s: %s", request, body, r.text)
	var refusal refusalOfHub
	require.NoError(v.hub.t, json.Unmarshal([]byte(r.text), &refusal), r.text)
	require.Equal(v.hub.t, code, refusal.Error.Code, r.text)
	if ofHub := !strings.Contains(request, " /operations/"); ofHub {
		require.Equal(v.hub.t, refusal.Error.Message, refusal.Detail)
	}
	return &refusal
}

// hubTask is a task as the hub API returns it.
type hubTask struct {
	ID             string                     `json:"id"`
	Title          string                     `json:"title"`
	Spec           string                     `json:"spec"`
	Status         string                     `json:"status"`
	Type           string                     `json:"type"`
	Priority       string                     `json:"priority"`
	Structured     json.RawMessage            `json:"structured_spec"`
	Requirements   json.RawMessage            `json:"requirements"`
	Dependencies   []hubLink                  `json:"dependencies"`
	Inputs         map[string]json.RawMessage `json:"resolved_inputs"`
	Result         json.RawMessage            `json:"result"`
	Error          string                     `json:"error"`
	Reason         string                     `json:"cancel_reason"`
	Plan           json.RawMessage            `json:"plan"`
	Feedback       *string                    `json:"plan_feedback"`
	Help           *wire.Help                 `json:"help"`
	Parent         *string                    `json:"parent_task_id"`
	Session        *string                    `json:"session_id"`
	CreatedBy      string                     `json:"created_by"`
	Server         string                     `json:"assigned_server_name"`
	Criteria       []string                   `json:"acceptance_criteria"`
	InterventionID string                     `json:"intervention_id"`
}

type hubLink struct {
	ID         string  `json:"id"`
	On         string  `json:"depends_on_task_id"`
	Type       string  `json:"dependency_type"`
	Contract   *string `json:"contract_key"`
	Resolved   bool    `json:"resolved"`
	ResolvedAt *string `json:"resolved_at"`
}

// create creates a task and returns its id.
func (v *visitor) create(body string) string {
	v.hub.t.Helper()
	tree := "/tasks"
	if v.header == "X-API-Key" {
		tree = "/server/tasks"
	}
	var task hubTask
	r := v.gets(&task, "POST "+tree, body)
	require.Equal(v.hub.t, http.StatusCreated, r.status)
	require.Equal(v.hub.t, "pending", task.Status, r.text)
	return task.ID
}

// wanting returns a task that requires a language, with further members in more.
func wanting(title, language string, more ...string) string {
	members := append([]string{fmt.Sprintf(`"title":%q,"spec":"s","requirements":{"languages":[%q]}`, title, language)}, more...)
	return "{" + strings.Join(members, ",") + "}"
}

// task returns a task with all its members.
func (v *visitor) task(id string) (found hubTask) {
	v.hub.t.Helper()
	tree := "/tasks/"
	if v.header == "X-API-Key" {
		tree = "/server/tasks/"
	}
	v.gets(&found, "GET "+tree+id, "")
	return found
}

// polled returns the tasks that are assigned to an agent and not started.
func (v *visitor) polled() (found []hubTask) {
	v.hub.t.Helper()
	v.gets(&found, "GET /servers/tasks/poll", "")
	return found
}

// matched auto-assigns a task and returns its server; "" if none fits.
func (v *visitor) matched(id string) (server string, score int) {
	v.hub.t.Helper()
	var found struct {
		Status string `json:"status"`
		Server string `json:"server_name"`
		Score  int    `json:"match_score"`
	}
	r := v.gets(&found, "POST /tasks/"+id+"/auto-assign", "")
	if found.Status == "no_match" {
		require.Equal(v.hub.t, `{"status":"no_match"}`, r.text)
	}
	return found.Server, found.Score
}

// story returns the events, oldest first.
func (h *hubTeam) story(flags ...string) (found []wire.Event) {
	h.t.Helper()
	for line := range strings.Lines(h.ask(append([]string{"events", "--json"}, flags...)...)) {
		var e wire.Event
		require.NoError(h.t, json.Unmarshal([]byte(line), &e), line)
		found = append(found, e)
	}
	return found
}

// kinds returns the kinds of the events of a task, or of all events.
func kinds(story []wire.Event, task string) (found []string) {
	for _, e := range story {
		if task == "" || e.Task == task {
			found = append(found, e.Kind)
		}
	}
	return found
}

// told waits until an agent gets a notice about a task.
func (a *actor) told(notice, id, words string) message {
	a.t.Helper()
	return a.wait(notice+" of "+id, func(m *message) bool {
		return m.Type == "notify:"+notice && strings.Contains(string(m.Payload), id) && strings.Contains(string(m.Payload), words)
	})
}
