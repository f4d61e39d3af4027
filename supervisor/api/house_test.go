package api

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/identity"
	"orchestrator/wire/object"
)

// house is an API with all operations and routes, and all its listeners: TCP, the operators'
// socket, and a socket for each run.
type house struct {
	*hearsay // the calls of the routes
	door     *API
	tcp      *TCPListener
	socket   string
}

// build serves a house. change may change its API before.
func build(t *testing.T, change func(*API), guard TCP) *house {
	t.Helper()
	h := &house{hearsay: new(hearsay), socket: filepath.Join(t.TempDir(), "api.sock")}
	operators, err := Listen(h.socket)
	require.NoError(t, err)
	h.tcp, err = ListenTCP("127.0.0.1:0", guard)
	require.NoError(t, err)
	h.door = &API{
		MaxBody: 1 << 10, Log: hclog.NewNullLogger(), Runs: NewRuns(operators), Signer: signer(t),
		Lists: map[string]List{"events": func(ctx context.Context, _ url.Values, send func(any) error) error {
			return send(spell(CallerOf(ctx)))
		}},
		Callers: &fakeCallers{
			ask: func(_ context.Context, from identity.Caller, _ string, _ []byte) (any, error) {
				return spell(from), nil
			},
			agent: func(key string) (name string, ok bool) { return "coder", key == "orc_coder" },
			actor: func(token string) (id string, ok bool) { return "HO:far", token == "orc_far" },
			do:    h.do, note: h.note,
		},
	}
	h.door.Runs.URL = h.tcp.URL()
	if change != nil {
		change(h.door)
	}
	t.Cleanup(serve(h.door, operators, h.tcp))
	return h
}

var whoAsks = Do(func(ctx context.Context, _ struct{}) (any, error) { return spell(CallerOf(ctx)), nil })

// spell returns a caller as one word.
func spell(c identity.Caller) string {
	return fmt.Sprintf("%d/%s/%s/%s/%v", c.Kind, c.Name, c.Run, c.Role, c.Wide)
}

// run opens the API for a run of coder and returns the environment of the run.
func (h *house) run(t *testing.T, run string) (env map[string]string, shut func()) {
	t.Helper()
	list, shut, err := h.door.Runs.Open("coder", run, 0)
	require.NoError(t, err)
	t.Cleanup(shut)
	env = make(map[string]string)
	for _, entry := range list {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = value
	}
	return env, shut
}

// token returns a token of ann, valid for an hour.
func (h *house) token(t *testing.T, role string) string {
	t.Helper()
	text, err := h.door.Signer.Sign(Claims{ID: "t-" + role, Subject: "ann", Role: role, ExpiresAt: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	return text
}

// over returns a client of a socket, or of TCP if socket is empty.
func over(socket string) *http.Client {
	transport := &http.Transport{DisableKeepAlives: true}
	if socket != "" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return Dial(ctx, socket) }
	}
	return &http.Client{Transport: transport}
}

// asks makes requests with a client and headers.
type asks struct {
	client *http.Client
	url    string // "": a placeholder, for a socket
	header http.Header
}

func (a asks) post(t *testing.T, path, body string) (int, string) {
	t.Helper()
	response, text := a.do(t, http.MethodPost, "/api/v1/"+path, body)
	return response.StatusCode, text
}

func (a asks) do(t *testing.T, method, path, body string) (*http.Response, string) {
	t.Helper()
	base := a.url
	if base == "" {
		base = "http://x"
	}
	request, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
	require.NoError(t, err)
	for name, values := range a.header {
		request.Header[name] = values
	}
	if host := a.header.Get("Host"); host != "" {
		request.Host = host
	}
	response, err := a.client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	if response.StatusCode >= 400 {
		requireRefusal(t, response, text)
	}
	return response, strings.TrimSpace(string(text))
}

// requireRefusal checks the form of every refusal.
func requireRefusal(t *testing.T, response *http.Response, text []byte) {
	t.Helper()
	require.Equal(t, "application/json", response.Header.Get("Content-Type"))
	var refusal wire.Refusal
	require.NoError(t, object.Decode(text, &refusal), "%s", text)
	require.NotEmpty(t, refusal.Error.Code)
	require.NotEmpty(t, refusal.Error.Message)
	require.Equal(t, response.StatusCode == http.StatusUnauthorized, response.Header.Get("WWW-Authenticate") != "", "%s", text)
}
