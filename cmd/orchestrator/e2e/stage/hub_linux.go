package stage

import (
	"bytes"
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

	"orchestrator/wire/hub"
)

// A Hub is a team with an HTTP API for visitors.
type Hub struct {
	*Team
	Url      string
	Document *openapi3.T
	Schemas  *jsonschema.Compiler // of the document
	Routes   *http.ServeMux       // those of the document, to find the route of a request
	entered  int                  // runs of scripted agents so far
}

// HTTP configures a hub without rate limits.
const HTTP = `
http {
  listen = ["127.0.0.1:0"]
  rate   = 1000000
}
`

// NewHub makes a hub with scripted agents. The configuration includes its listener.
func NewHub(t *testing.T, hcl string, names ...string) *Hub {
	t.Helper()
	return &Hub{Team: NewTeam(t, hcl, names...)}
}

// Open starts the program and waits for its scripted agents, in order.
func (h *Hub) Open(names ...string) []*Agent {
	h.T.Helper()
	h.Up() // without --json, since only text shows the address
	h.Url = h.Address()
	var actors []*Agent
	for _, name := range names {
		actors = append(actors, h.NextReady(name))
	}
	if h.Document == nil {
		h.ReadDocument()
	}
	return actors
}

// NextReady waits for the next run of a scripted agent and until the program knows it. The request ids of
// this run differ from those of earlier runs.
func (h *Hub) NextReady(name string) *Agent {
	h.T.Helper()
	a := h.NextRun(name)
	h.entered++
	a.said = 1000 * h.entered
	a.Settle()
	return a
}

// Kill kills the program.
func (h *Hub) Kill() {
	h.T.Helper()
	require.NoError(h.T, h.Process.Process.Kill())
	h.Await()
}

// ReadDocument reads the program's OpenAPI document.
func (h *Hub) ReadDocument() {
	h.T.Helper()
	r := h.Anonymous().Ask("GET /openapi.json", "")
	require.Equal(h.T, http.StatusOK, r.Status)
	var err error
	h.Document, err = openapi3.NewLoader().LoadFromData([]byte(r.Text))
	require.NoError(h.T, err)
	require.NoError(h.T, h.Document.Validate(h.T.Context()))
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(r.Text))
	require.NoError(h.T, err)
	h.Schemas = jsonschema.NewCompiler()
	require.NoError(h.T, h.Schemas.AddResource("urn:document", value))
	h.Routes = http.NewServeMux()
	for path, item := range h.Document.Paths.Map() {
		for method := range item.Operations() {
			h.Routes.HandleFunc(method+" "+path, func(http.ResponseWriter, *http.Request) {})
		}
	}
}

// Unlike returns how an answer differs from the document, or nil.
func (h *Hub) Unlike(request string, r *Response) error {
	method, path, _ := strings.Cut(request, " ")
	asked, err := http.NewRequest(method, path, http.NoBody)
	if err != nil {
		return err
	}
	place := []string{"components", "schemas", "hub.refusal"}
	if _, pattern := h.Routes.Handler(asked); pattern != "" {
		method, path, _ = strings.Cut(pattern, " ")
		response := h.Document.Paths.Value(path).GetOperation(method).Responses.Status(r.Status)
		kind := r.Header.Get("Content-Type")
		if response == nil || response.Value.Content[kind] == nil {
			return fmt.Errorf("%s is not described as answered with %d in %s", pattern, r.Status, kind)
		}
		place = []string{"paths", path, strings.ToLower(method), "responses", fmt.Sprint(r.Status), "content", kind, "schema"}
	} else if r.Status != http.StatusNotFound && r.Status != http.StatusMethodNotAllowed {
		return fmt.Errorf("nothing is described there, and it is answered with %d", r.Status)
	}
	return h.UnlikeSchema(r.Text, place...)
}

// UnlikeSchema returns how a text differs from the schema at a place of the document. It does
// not use kin-openapi, which reads some of these schemas as those of an older version without
// null.
func (h *Hub) UnlikeSchema(text string, place ...string) error {
	url := "urn:document#"
	for _, part := range place {
		url += "/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(part)
	}
	schema, err := h.Schemas.Compile(url)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// RequireLike checks an answer against the document, if it was read.
func (h *Hub) RequireLike(request string, r *Response) {
	h.T.Helper()
	if h.Document != nil {
		require.NoError(h.T, h.Unlike(request, r), "%s: %d %s", request, r.Status, r.Text)
	}
}

// A Caller is an HTTP client with a credential.
type Caller struct {
	Hub        *Hub
	Header     string // header of the credential; "" for none
	Credential string
	Client     *http.Client
}

func (h *Hub) Caller(header, credential string) *Caller {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	return &Caller{Hub: h, Header: header, Credential: credential, Client: client}
}

func (h *Hub) Anonymous() *Caller { return h.Caller("", "") }

// Person returns a visitor with a person's token, by default an operator.
func (h *Hub) Person(flags ...string) *Caller {
	h.T.Helper()
	token := h.Ask(append([]string{"token", "issue", "--sub", "ann"}, flags...)...)
	return h.Caller("Authorization", "Bearer "+strings.TrimSpace(token))
}

// WithKey returns a visitor with an API key.
func (h *Hub) WithKey(key string) *Caller { return h.Caller("X-API-Key", strings.TrimSpace(key)) }

// AgentCaller returns a visitor with a new key of an agent.
func (h *Hub) AgentCaller(agent string) *Caller {
	h.T.Helper()
	return h.WithKey(h.Ask("key", "issue", agent))
}

// A Response is an HTTP answer.
type Response struct {
	Status int
	Header http.Header
	Text   string
}

// Try sends a request, such as "GET /api/v1/tasks/1". It may be called from any goroutine.
func (v *Caller) Try(request, body string) (*Response, error) {
	method, path, _ := strings.Cut(request, " ")
	asked, err := http.NewRequest(method, v.Hub.Url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if v.Header != "" {
		asked.Header.Set(v.Header, v.Credential)
	}
	answer, err := v.Client.Do(asked)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	return &Response{Status: answer.StatusCode, Header: answer.Header, Text: strings.TrimSpace(string(text))}, nil
}

// Ask sends a request and checks the answer against the document.
func (v *Caller) Ask(request, body string) *Response {
	v.Hub.T.Helper()
	r, err := v.Try(request, body)
	require.NoError(v.Hub.T, err)
	v.Hub.RequireLike(request, r)
	return r
}

// Gets sends a request that must succeed and decodes the answer into found. The path is relative
// to /api/v1.
func (v *Caller) Gets(found any, request, body string) *Response {
	v.Hub.T.Helper()
	r := v.Ask(strings.Replace(request, " ", " /api/v1", 1), body)
	want := http.StatusOK
	if r.Status == http.StatusCreated {
		want = http.StatusCreated
	}
	require.Equal(v.Hub.T, want, r.Status, "%s %s: %s", request, body, r.Text)
	if found != nil {
		require.NoError(v.Hub.T, json.Unmarshal([]byte(r.Text), found), r.Text)
	}
	return r
}

// HTTPRefusal is a refusal in the format of the hub.
type HTTPRefusal struct {
	Error struct {
		Code        string         `json:"code"`
		Message     string         `json:"message"`
		Details     map[string]any `json:"details"`
		Recoverable bool           `json:"recoverable"`
	} `json:"error"`
	Detail string `json:"detail"`
}

// Fails sends a request that must be refused.
func (v *Caller) Fails(status int, code, request, body string) *HTTPRefusal {
	v.Hub.T.Helper()
	r := v.Ask(strings.Replace(request, " ", " /api/v1", 1), body)
	require.Equal(v.Hub.T, status, r.Status, "%s %s: %s", request, body, r.Text)
	var refusal HTTPRefusal
	require.NoError(v.Hub.T, json.Unmarshal([]byte(r.Text), &refusal), r.Text)
	require.Equal(v.Hub.T, code, refusal.Error.Code, r.Text)
	if ofHub := !strings.Contains(request, " /operations/"); ofHub {
		require.Equal(v.Hub.T, refusal.Error.Message, refusal.Detail)
	}
	return &refusal
}

// Notified waits until an agent gets a notice about a task.
func (a *Agent) Notified(notice, id, words string) Message {
	a.T.Helper()
	return a.Wait(notice+" of "+id, func(m *Message) bool {
		return m.Type == "notify:"+notice && strings.Contains(string(m.Payload), id) && strings.Contains(string(m.Payload), words)
	})
}

// Knock sends a request for an operation to a URL with a credential.
func Knock(t *testing.T, url, operation, credential string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/operations/"+operation, strings.NewReader("{}"))
	require.NoError(t, err)
	if credential != "" {
		r.Header.Set("Authorization", "Bearer "+credential)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	answer, err := client.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(bytes.TrimSpace(text))
}

// Address returns the address that the orchestrator prints.
func (s *Orchestrator) Address() string {
	s.T.Helper()
	var url string
	WaitFor(s.T, "the line that says where it listens", func() bool {
		for line := range strings.Lines(s.Stderr.All()) {
			if rest, ok := strings.CutPrefix(line, "Listening at "); ok {
				url = strings.TrimSpace(rest)
			}
		}
		return url != ""
	})
	return url
}

// Registration returns the body with which a server registers.
func Registration(name, token, more string) string {
	return fmt.Sprintf(`{"name":%q,"hostname":"far.example","ip":"10.0.0.7","os":"linux","registration_token":%q%s}`, name, strings.TrimSpace(token), more)
}

// Register registers a server and returns a visitor with its key.
func (h *Hub) Register(name, more string) *Caller {
	h.T.Helper()
	var registered struct {
		Server string `json:"server_id"`
		Name   string `json:"name"`
		Key    string `json:"api_key"`
	}
	token := h.Ask("key", "register", "--name", name)
	r := h.Anonymous().Gets(&registered, "POST /servers/register", Registration(name, token, more))
	require.Equal(h.T, http.StatusCreated, r.Status)
	require.Equal(h.T, name, registered.Name)
	require.Equal(h.T, hub.ServerID(name), registered.Server)
	h.Anonymous().Fails(http.StatusUnauthorized, "unauthenticated", "POST /servers/register", Registration(name, token, more))
	return h.WithKey(registered.Key)
}
