package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/wire/events"
)

// A browser is a person's browser at the web view.
type browser struct {
	t      *testing.T
	base   string
	cookie string
}

// visit sends a request. The headers are names and values in turn.
func (b *browser) visit(method, path, body string, header ...string) (int, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, strings.NewReader(body))
	require.NoError(b.t, err)
	if b.cookie != "" {
		r.Header.Set("Cookie", b.cookie)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	answer, err := client.Do(r)
	require.NoError(b.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(b.t, err)
	for _, c := range answer.Cookies() {
		b.cookie = c.Name + "=" + c.Value
	}
	return answer.StatusCode, string(text)
}

// opens signs in with an address that the orchestrator has printed.
func (s *stage) opens(address string) (b *browser, code string) {
	s.t.Helper()
	u, err := url.Parse(strings.TrimSpace(address))
	require.NoError(s.t, err, address)
	require.Equal(s.t, "/ui/", u.Path, address)
	code, found := strings.CutPrefix(u.Fragment, "code=")
	require.True(s.t, found, address)
	b = &browser{t: s.t, base: "http://" + u.Host}
	status, text := b.visit(http.MethodPost, "/ui/sign-in", `{"code":"`+code+`"}`)
	require.Equal(s.t, http.StatusOK, status, text)
	return b, code
}

func TestWebView(t *testing.T) {
	t.Parallel()
	s := newStage(t, "agent \"a\" {\n  command = [\"cat\"]\n}\n").up("--json")
	s.waitForEvents(1, events.AgentStarted, "a")
	require.Empty(t, s.status().URLs, "no port is open until somebody asks")
	require.NotContains(t, s.cried.all(), "/ui/")

	b, code := s.opens(s.ask("ui", "--print"))
	status, text := b.visit(http.MethodGet, "/ui/", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "<html")
	status, text = b.visit(http.MethodGet, "/ui/me", "")
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, `"role":"operator"`)
	require.Contains(t, text, `"version":"`+cli.Version)
	status, text = b.visit(http.MethodPost, "/ui/sign-in", `{"code":"`+code+`"}`)
	require.Equal(t, http.StatusUnauthorized, status, text)
	for _, path := range []string{"/api/v1/events", "/api/v1/logs", "/api/v1/messages", "/metrics", "/openapi.json"} {
		status, text = b.visit(http.MethodGet, path, "")
		require.Equal(t, http.StatusOK, status, "%s: %s", path, text)
	}
	status, text = b.visit(http.MethodPost, "/api/v1/operations/submit-task", `{"type":"work","name":"by hand"}`, "Origin", b.base)
	require.Equal(t, http.StatusOK, status, text)
	status, text = b.visit(http.MethodPost, "/api/v1/operations/submit-task", `{"type":"work","name":"evil"}`, "Origin", "http://evil.example")
	require.Equal(t, http.StatusForbidden, status, text)
	require.NotContains(t, s.ask("task", "ls"), "evil")
	status, text = b.visit(http.MethodGet, "/ui/", "", "Host", "evil.example")
	require.Equal(t, http.StatusForbidden, status, text)
	require.Equal(t, []string{b.base}, s.status().URLs, "one port for all who ask")

	viewer, _ := s.opens(s.ask("ui", "--print", "--viewer"))
	require.Equal(t, b.base, viewer.base)
	status, text = viewer.visit(http.MethodPost, "/api/v1/operations/status", "{}")
	require.Equal(t, http.StatusOK, status, text)
	status, text = viewer.visit(http.MethodPost, "/api/v1/operations/submit-task", `{"type":"work","name":"more"}`)
	require.Equal(t, http.StatusForbidden, status, text)
	status, text = viewer.visit(http.MethodPost, "/ui/sign-out", "")
	require.Equal(t, http.StatusOK, status, text)

	var opened struct{ URL string }
	require.NoError(t, json.Unmarshal([]byte(s.ask("ui", "--json")), &opened))
	require.Contains(t, opened.URL, b.base+"/ui/#code=")
	s.stop()
	_, err := net.Dial("tcp", strings.TrimPrefix(b.base, "http://"))
	require.Error(t, err)
	_, stderr, exit := s.call("ui", "--print")
	require.Equal(t, cli.ExitNotRunning, exit)
	require.Contains(t, stderr, "orchestrator up")
}

// A sign-in ends with the orchestrator. up --ui prints the address by itself.
func TestWebViewOfTheNextOrchestrator(t *testing.T) {
	t.Parallel()
	s := newStage(t, "agent \"a\" {\n  command = [\"cat\"]\n}\n").up("--ui")
	before, _ := s.opens(s.shownUI())
	s.stop()
	s.up("--ui")
	now, _ := s.opens(s.shownUI())
	status, text := now.visit(http.MethodGet, "/ui/me", "")
	require.Equal(t, http.StatusOK, status, text)
	before.base = now.base
	status, text = before.visit(http.MethodGet, "/ui/me", "")
	require.Equal(t, http.StatusUnauthorized, status, text)

	s.ask("upgrade")
	after, _ := s.opens(s.ask("ui", "--print"))
	require.Equal(t, now.base, after.base, "the port goes over to the next program")
	status, text = now.visit(http.MethodGet, "/ui/me", "")
	require.Equal(t, http.StatusUnauthorized, status, text)
	s.stop()
}

// shownUI returns the address that up --ui prints.
func (s *stage) shownUI() (address string) {
	s.t.Helper()
	waitForThat(s.t, "the address of the web view", func() bool {
		_, rest, found := strings.Cut(s.cried.all(), "The web view is at ")
		address, _, _ = strings.Cut(rest, " ")
		return found && address != ""
	})
	return address
}
