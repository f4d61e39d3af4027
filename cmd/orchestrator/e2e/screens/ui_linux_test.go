package screens

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

	"orchestrator/cmd/orchestrator/build"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/e2e/stage"
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
func opens(s *stage.Orchestrator, address string) (b *browser, code string) {
	s.T.Helper()
	u, err := url.Parse(strings.TrimSpace(address))
	require.NoError(s.T, err, address)
	require.Equal(s.T, "/ui/", u.Path, address)
	code, found := strings.CutPrefix(u.Fragment, "code=")
	require.True(s.T, found, address)
	b = &browser{t: s.T, base: "http://" + u.Host}
	status, text := b.visit(http.MethodPost, "/ui/sign-in", `{"code":"`+code+`"}`)
	require.Equal(s.T, http.StatusOK, status, text)
	return b, code
}

func TestWebView(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "agent \"a\" {\n  command = [\"cat\"]\n}\n").Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "a")
	require.Empty(t, s.Status().URLs, "no port is open until somebody asks")
	require.NotContains(t, s.Stderr.All(), "/ui/")

	b, code := opens(s, s.Ask("ui", "--print"))
	status, text := b.visit(http.MethodGet, "/ui/", "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "<html")
	status, text = b.visit(http.MethodGet, "/ui/me", "")
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, `"role":"operator"`)
	require.Contains(t, text, `"version":"`+build.Version)
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
	require.NotContains(t, s.Ask("task", "ls"), "evil")
	status, text = b.visit(http.MethodGet, "/ui/", "", "Host", "evil.example")
	require.Equal(t, http.StatusForbidden, status, text)
	require.Equal(t, []string{b.plain()}, s.Status().URLs, "one port for all who ask")
	require.Regexp(t, `^http://orc-[a-z2-7]{12}\.localhost:\d+$`, b.base)
	for path, method := range map[string]string{"/ui/": http.MethodGet, "/ui/sign-in": http.MethodPost, "/api/v1/events": http.MethodGet} {
		shared := &browser{t: t, base: b.plain(), cookie: b.cookie}
		status, text = shared.visit(method, path, `{"code":"x"}`)
		require.Equal(t, http.StatusForbidden, status, "%s: %s", path, text)
		require.NotContains(t, text, "orc-", "a page of an agent could lead the browser there")
	}

	viewer, _ := opens(s, s.Ask("ui", "--print", "--viewer"))
	require.Equal(t, b.base, viewer.base)
	status, text = viewer.visit(http.MethodPost, "/api/v1/operations/status", "{}")
	require.Equal(t, http.StatusOK, status, text)
	status, text = viewer.visit(http.MethodPost, "/api/v1/operations/submit-task", `{"type":"work","name":"more"}`)
	require.Equal(t, http.StatusForbidden, status, text)
	status, text = viewer.visit(http.MethodPost, "/ui/sign-out", "")
	require.Equal(t, http.StatusOK, status, text)

	var opened struct{ URL string }
	require.NoError(t, json.Unmarshal([]byte(s.Ask("ui", "--json")), &opened))
	require.Contains(t, opened.URL, b.base+"/ui/#code=")
	s.Stop()
	_, err := net.Dial("tcp", strings.TrimPrefix(b.plain(), "http://"))
	require.Error(t, err)
	_, stderr, exit := s.Call("ui", "--print")
	require.Equal(t, cli.ExitNotRunning, exit)
	require.Contains(t, stderr, "orchestrator up")
}

// A sign-in outlives a stop, a kill and an upgrade, at the same address. up --ui prints the address without being
// asked.
func TestWebViewOfTheNextOrchestrator(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "agent \"a\" {\n  command = [\"cat\"]\n}\n").Up("--ui")
	b, _ := opens(s, shownUI(s))
	holds := func(want int) {
		t.Helper()
		stage.WaitFor(t, "the web view", func() bool {
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
	s.Stop()
	s.Up()
	holds(http.StatusOK)
	s.Signal(syscall.SIGKILL)
	s.Await()
	s.Up()
	holds(http.StatusOK)
	s.Ask("upgrade")
	holds(http.StatusOK)
	status, text := b.visit(http.MethodPost, "/ui/sign-out", "")
	require.Equal(t, http.StatusOK, status, text)
	s.Stop()
	s.Up("--ui")
	again, _ := opens(s, shownUI(s))
	require.Equal(t, b.base, again.base, "the port stays the same")
	b.cookie = ""
	holds(http.StatusUnauthorized)
	s.Stop()
}

// The browser gets a page that only the user can read, and no process sees the code on a command line. A process of
// an agent cannot sign in, whatever code it has.
func TestCodeOfTheWebViewIsNotOnACommandLine(t *testing.T) {
	t.Parallel()
	s := stage.New(t, "agent \"thief\" {\n  command = [\"sh\", \"thief.sh\"]\n  protocol = \"raw\"\n}\n")
	s.Write("thief.sh", `until [ -f code ]; do sleep 0.1; done
curl -s --connect-to ::127.0.0.1: -X POST -H 'Content-Type: application/json' -d "{\"code\":\"$(cat code)\"}" "$(cat base)/ui/sign-in"
cat
`)
	s.Write("browser", "#!/bin/sh\nprintf %s \"$1\" > opened.new\nmv opened.new opened\n")
	require.NoError(t, os.Chmod(s.Path("browser"), 0o700))
	s.Up("--json")
	s.WaitForEvents(1, events.AgentStarted, "thief")
	ui := exec.Command(s.Program, "ui", "--state-dir", s.State())
	ui.Dir, ui.Env = s.Dir, append(s.Environ(), "BROWSER="+s.Path("browser"))
	output, err := ui.CombinedOutput()
	require.NoError(t, err, "%s", output)
	var opened string
	stage.WaitFor(t, "the browser", func() bool {
		text, err := os.ReadFile(s.Path("opened"))
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

	u, err := url.Parse(strings.TrimSpace(s.Ask("ui", "--print")))
	require.NoError(t, err)
	s.Write("base", "http://"+u.Host)
	s.Write("code.new", strings.TrimPrefix(u.Fragment, "code="))
	require.NoError(t, os.Rename(s.Path("code.new"), s.Path("code")))
	refused := s.WaitForEvents(1, events.AgentRefused, "thief")
	require.Contains(t, refused[0].Text, "tried to be a person: curl")
	b, _ := opens(s, u.String())
	status, text := b.visit(http.MethodGet, "/ui/me", "")
	require.Equal(t, http.StatusOK, status, "the code was not used: %s", text)
	require.Contains(t, s.WaitForEvents(1, events.PersonSignedIn, "")[0].Text, "has signed in to the web view as operator")
	s.Stop()
	signIns := 0
	for _, line := range s.Audited() {
		if line["type"] == "request:sign-in" {
			signIns++
		}
	}
	require.Equal(t, 2, signIns)
}

// shownUI returns the address that up --ui prints.
func shownUI(s *stage.Orchestrator) (address string) {
	s.T.Helper()
	stage.WaitFor(s.T, "the address of the web view", func() bool {
		_, rest, found := strings.Cut(s.Stderr.All(), "The web view is at ")
		address, _, _ = strings.Cut(rest, " ")
		return found && address != ""
	})
	return address
}
