package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
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

// dialAsBrowser connects as browsers do: names below localhost are this machine.
func dialAsBrowser(ctx context.Context, network, address string) (net.Conn, error) {
	if host, port, err := net.SplitHostPort(address); err == nil && strings.HasSuffix(host, ".localhost") {
		address = net.JoinHostPort("127.0.0.1", port)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// plain returns the base of the same listener by its address.
func (b *browser) plain() string {
	u, err := url.Parse(b.base)
	require.NoError(b.t, err)
	return "http://127.0.0.1:" + u.Port()
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
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dialAsBrowser}, Timeout: 30 * time.Second}
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
	require.Equal(t, []string{b.plain()}, s.status().URLs, "one port for all who ask")
	require.Regexp(t, `^http://orc-[a-z2-7]{12}\.localhost:\d+$`, b.base)
	for path, method := range map[string]string{"/ui/": http.MethodGet, "/ui/sign-in": http.MethodPost, "/api/v1/events": http.MethodGet} {
		shared := &browser{t: t, base: b.plain(), cookie: b.cookie}
		status, text = shared.visit(method, path, `{"code":"x"}`)
		require.Equal(t, http.StatusForbidden, status, "%s: %s", path, text)
		require.NotContains(t, text, "orc-", "a page of an agent could lead the browser there")
	}

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
	_, err := net.Dial("tcp", strings.TrimPrefix(b.plain(), "http://"))
	require.Error(t, err)
	_, stderr, exit := s.call("ui", "--print")
	require.Equal(t, cli.ExitNotRunning, exit)
	require.Contains(t, stderr, "orchestrator up")
}

// A sign-in goes on after a stop, a kill and an upgrade, at the same address. up --ui prints the address by itself.
func TestWebViewOfTheNextOrchestrator(t *testing.T) {
	t.Parallel()
	s := newStage(t, "agent \"a\" {\n  command = [\"cat\"]\n}\n").up("--ui")
	b, _ := s.opens(s.shownUI())
	holds := func(want int) {
		t.Helper()
		waitForThat(t, "the web view", func() bool {
			conn, err := net.Dial("tcp", strings.TrimPrefix(b.plain(), "http://"))
			if err == nil {
				_ = conn.Close()
			}
			return err == nil
		})
		status, text := b.visit(http.MethodGet, "/ui/me", "")
		require.Equal(t, want, status, text)
	}
	holds(http.StatusOK)
	s.stop()
	s.up()
	holds(http.StatusOK)
	s.signal(syscall.SIGKILL)
	s.await()
	s.up()
	holds(http.StatusOK)
	s.ask("upgrade")
	holds(http.StatusOK)
	status, text := b.visit(http.MethodPost, "/ui/sign-out", "")
	require.Equal(t, http.StatusOK, status, text)
	s.stop()
	s.up("--ui")
	again, _ := s.opens(s.shownUI())
	require.Equal(t, b.base, again.base, "the port stays the same")
	b.cookie = ""
	holds(http.StatusUnauthorized)
	s.stop()
}

// The browser gets a page that only the user can read, and no process sees the code on a command line. A process of
// an agent cannot sign in, whatever code it has.
func TestCodeOfTheWebViewIsNotOnACommandLine(t *testing.T) {
	t.Parallel()
	s := newStage(t, "agent \"thief\" {\n  command = [\"sh\", \"thief.sh\"]\n  protocol = \"raw\"\n}\n")
	s.write("thief.sh", `until [ -f code ]; do sleep 0.1; done
curl -s --connect-to ::127.0.0.1: -X POST -H 'Content-Type: application/json' -d "{\"code\":\"$(cat code)\"}" "$(cat base)/ui/sign-in"
cat
`)
	s.write("browser", "#!/bin/sh\nprintf %s \"$1\" > opened.new\nmv opened.new opened\n")
	require.NoError(t, os.Chmod(s.path("browser"), 0o700))
	s.up("--json")
	s.waitForEvents(1, events.AgentStarted, "thief")
	ui := exec.Command(s.program, "ui", "--state-dir", s.state())
	ui.Dir, ui.Env = s.dir, append(s.environ(), "BROWSER="+s.path("browser"))
	output, err := ui.CombinedOutput()
	require.NoError(t, err, "%s", output)
	var opened string
	waitForThat(t, "the browser", func() bool {
		text, err := os.ReadFile(s.path("opened"))
		opened = string(text)
		return err == nil
	})
	path, found := strings.CutPrefix(opened, "file://")
	require.True(t, found, opened)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(page), "/ui/#code=")

	u, err := url.Parse(strings.TrimSpace(s.ask("ui", "--print")))
	require.NoError(t, err)
	s.write("base", "http://"+u.Host)
	s.write("code.new", strings.TrimPrefix(u.Fragment, "code="))
	require.NoError(t, os.Rename(s.path("code.new"), s.path("code")))
	refused := s.waitForEvents(1, events.AgentRefused, "thief")
	require.Contains(t, refused[0].Text, "tried to be a person: curl")
	b, _ := s.opens(u.String())
	status, text := b.visit(http.MethodGet, "/ui/me", "")
	require.Equal(t, http.StatusOK, status, "the code was not used: %s", text)
	require.Contains(t, s.waitForEvents(1, events.PersonSignedIn, "")[0].Text, "has signed in to the web view as operator")
	s.stop()
	signIns := 0
	for _, line := range s.audited() {
		if line["type"] == "request:sign-in" {
			signIns++
		}
	}
	require.Equal(t, 2, signIns)
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
