package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/identity"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// hearsay records the calls of the hub's operations and answers each of them.
type hearsay struct {
	mu      sync.Mutex
	asked   []question
	refused []question
	noted   []identity.Request
	answer  func(question) (any, error)
}

type question struct {
	from      identity.Caller
	operation string
	body      any // of a refusal: why
}

func (h *hearsay) do(_ context.Context, from identity.Caller, operation string, body any) (any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	q := question{from: lasting(from), operation: operation, body: body}
	h.asked = append(h.asked, q)
	if h.answer != nil {
		return h.answer(q)
	}
	return answers[operation], nil
}

func (h *hearsay) note(r identity.Request, err *wire.Error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noted = append(h.noted, r)
	if err != nil {
		h.refused = append(h.refused, question{from: lasting(r.From), operation: r.Operation, body: err})
	}
}

// lasting returns a caller without its connection.
func lasting(c identity.Caller) identity.Caller {
	c.Via = ""
	return c
}

// taken returns the calls and refusals since its last call.
func (h *hearsay) taken() (asked, refused []question) {
	h.mu.Lock()
	defer h.mu.Unlock()
	asked, refused = h.asked, h.refused
	h.asked, h.refused = nil, nil
	return asked, refused
}

const (
	morning  = "2026-11-21T08:00:00.000Z"
	theSpec  = `{"$schema":"orchestratia/task-spec/v1","requirements":[{"description":"It works","priority":"must"}],"n":12345678901234567890.10,"\u0078":"caf\u00e9"}`
	theNeeds = `{"languages":["go"],"weight":1.50}`
)

// theTask returns a task with all members.
func theTask() wire.Task {
	return wire.Task{
		ID: "t-1", Name: "Fix it", Type: "feature", State: wire.TaskPending, Status: "queued", Description: "All of it", Priority: wire.Raw(`"high"`),
		Links:          []wire.Link{{ID: "d3", On: "t-0", Type: "input", Contract: "api", Resolved: true, ResolvedAt: morning}},
		ResolvedInputs: wire.Inputs{{Key: "api", From: "t-0", Status: "partial", Data: wire.Raw(`{"port":8080.0}`)}},
		SubmittedBy:    "operator", AssignedTo: "coder", CreatedAt: morning,
		Details: &wire.Details{
			StructuredSpec: wire.Raw(theSpec), Requirements: wire.Raw(theNeeds), TargetRepo: "shop", AcceptanceCriteria: []string{"green"},
			Help: &wire.Help{QuestionID: "q7", Question: "Which?"},
		},
	}
}

var (
	theServer = hub.Server{ServerID: "s-1", Name: "coder", Status: "online", Role: "worker", Repos: wire.Raw("{}"), Capabilities: wire.Raw(`{"languages":["go"]}`)}
	aNote     = wire.Note{ID: "n9", TaskID: "t-1", Author: "agent:coder", Content: "Look", Urgent: true, CreatedAt: morning}
	aLink     = wire.Link{ID: "d4", On: "t-2", Type: "blocks"}
)

// answers maps each operation to an answer.
var answers = func() map[string]any {
	reply := &wire.TaskReply{Task: theTask()}
	found := map[string]any{
		"auto-assign":         &wire.Assignment{Status: "assigned", ServerID: "s-1", ServerName: "coder", MatchScore: 475},
		"match-agents":        &hub.Matches{Total: 1, Servers: []hub.Match{{ServerID: "s-1", ServerName: "coder", Score: -1, Status: "offline", Reasons: []string{"missing repo: shop (disqualified)"}}}},
		"query-tasks":         &wire.TaskList{Tasks: []wire.Task{theTask()}},
		"poll-tasks":          &wire.TaskList{Tasks: []wire.Task{theTask()}},
		"check-tasks":         &wire.TaskList{Tasks: []wire.Task{theTask()}},
		"list-notes":          &wire.NoteList{Notes: []wire.Note{aNote}},
		"add-note":            &wire.NoteReply{Note: aNote},
		"add-dependency":      &wire.LinkReply{Dependency: aLink},
		"remove-dependency":   &wire.LinkReply{Dependency: aLink},
		"query-servers":       &hub.ServerList{Servers: []hub.Server{theServer}},
		"register-agent":      &hub.Registered{ServerID: "s-1", Name: "far", Key: "orc_secret"},
		"update-capabilities": &theServer,

		"send-message":  &mail.Sent{Message: someMail(7)},
		"poll-messages": &mail.List{Messages: []mail.Message{someMail(7)}, Cursor: 3},
		"ack-messages":  &mail.Acked{Actor: "HO:far", Cursor: 7},
		"heartbeat":     &mail.Beat{Actor: "HO:far", LastSeen: morning, Every: 60000},
		"issue-token":   &wire.IssuedToken{ID: "a5", Actor: "HO:far", Token: "orc_secret", IssuedAt: morning},
	}
	for i := range hubRoutes() {
		if found[hubRoutes()[i].operation] == nil {
			found[hubRoutes()[i].operation] = reply
		}
	}
	return found
}()

// hubHouse is a house with mail. Every response is compared with the OpenAPI document.
type hubHouse struct {
	*house
	post     *post
	document *document
}

func buildHub(t *testing.T, change func(*API)) *hubHouse {
	t.Helper()
	h := &hubHouse{post: newPost()}
	h.house = build(t, func(d *API) {
		d.MaxBody, d.Depth = 1<<16, 8
		callers := fakeOf(d)
		callers.mail = h.post.open
		callers.actor = func(token string) (id string, ok bool) {
			name, ok := strings.CutPrefix(token, "orc_c_")
			return "HO:" + name, ok
		}
		callers.agent = func(key string) (name string, ok bool) { return strings.CutPrefix(key, "orc_a_") }
		d.Signer.Tokens = issued(func(id string) bool { return id != "t-gone" })
		if change != nil {
			change(d)
		}
	}, TCP{})
	h.document = readDocument(t, h.door)
	return h
}

// as returns a client over TCP with these headers.
func (h *hubHouse) as(header http.Header) asks {
	return asks{client: over(""), url: h.tcp.URL(), header: header}
}

func withKey(agent string) http.Header { return http.Header{"X-Api-Key": {"orc_a_" + agent}} }

// at returns a client over the operators' socket.
func (h *hubHouse) at() asks { return asks{client: over(h.socket)} }

// ask makes a request and checks the response.
func (h *hubHouse) ask(t *testing.T, by asks, method, path, body string) (*http.Response, string) {
	t.Helper()
	response, text := by.do(t, method, path, body)
	if method != http.MethodHead {
		h.document.check(t, method, path, response, text)
	}
	return response, text
}

// requireRefused checks a refusal of the hub, and returns the pointer in it.
func requireRefused(t *testing.T, response *http.Response, text string, status int, code wire.Code) (pointer any) {
	t.Helper()
	require.Equal(t, status, response.StatusCode, text)
	var refusal hubRefusal
	require.NoError(t, object.Decode([]byte(text), &refusal))
	require.Equal(t, code, refusal.Error.Code, text)
	require.Equal(t, refusal.Error.Message, refusal.Detail)
	return refusal.Error.Details["pointer"]
}

// document is the OpenAPI document that responses are compared with.
type document struct {
	text     []byte
	value    map[string]any
	compiler *jsonschema.Compiler
	mux      *http.ServeMux
}

func readDocument(t *testing.T, d *API) *document {
	t.Helper()
	text, err := d.describe()
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	found := &document{text: text, value: value.(map[string]any), compiler: jsonschema.NewCompiler(), mux: http.NewServeMux()}
	require.NoError(t, found.compiler.AddResource("urn:document", value))
	for _, t := range d.routes() {
		found.mux.HandleFunc(t.pattern, func(http.ResponseWriter, *http.Request) {})
	}
	return found
}

// schema returns the schema at a place in the document.
func (d *document) schema(t *testing.T, place ...string) *jsonschema.Schema {
	t.Helper()
	url := "urn:document#"
	for _, part := range place {
		url += "/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(part)
	}
	schema, err := d.compiler.Compile(url)
	require.NoError(t, err, url)
	return schema
}

// check compares a response of a route with the document.
func (d *document) check(t *testing.T, method, path string, response *http.Response, text string) {
	t.Helper()
	require.Equal(t, "application/json", response.Header.Get("Content-Type"))
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(t, err, text)
	schema := d.schema(t, "components", "schemas", "hub.refusal")
	request, err := http.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	require.NoError(t, err)
	if _, pattern := d.mux.Handler(request); pattern != "" {
		known, at, _ := strings.Cut(pattern, " ")
		schema = d.schema(t, "paths", at, strings.ToLower(known), "responses", strconv.Itoa(response.StatusCode), "content", inJSON, "schema")
	} else {
		require.Contains(t, []int{404, 405}, response.StatusCode)
	}
	require.NoError(t, schema.Validate(value), "%s %s: %d %s", method, path, response.StatusCode, text)
}

// mayBeSaid reports whether the document accepts a body.
func (d *document) mayBeSaid(t *testing.T, route *route, body string) bool {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	require.NoError(t, err, body)
	return d.schema(t, "components", "schemas", route.read.schema).Validate(value) == nil
}

// filled returns the path of a route with its ids filled in.
func filled(t *route) string {
	return strings.NewReplacer("{id}", "t-1", "{dep_id}", "d4").Replace(t.path())
}

// raw sends text that no HTTP client would send, and returns the response.
func (h *hubHouse) raw(t *testing.T, text string) (*http.Response, string) {
	t.Helper()
	conn, err := Dial(t.Context(), h.socket)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	require.NoError(t, conn.(interface{ CloseWrite() error }).CloseWrite())
	return readAnswer(t, conn)
}
