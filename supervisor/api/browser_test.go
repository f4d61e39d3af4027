package api

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/identity"
	"orchestrator/wire/object"
)

// webHouse returns a house with a web view.
func webHouse(t *testing.T) *house {
	t.Helper()
	return build(t, func(d *API) {
		d.SignIns = &SignIns{Team: "shop"}
		d.Version = "1.2.3"
		d.Pages = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("page " + r.URL.Path)) })
		d.Operations = map[string]Operation{"status": whoAsks, "start-agent": whoAsks, "open-ui": Do(d.SignIns.Invite)}
	}, TCP{})
}

// code asks for a code at the operators' socket.
func (h *house) code(t *testing.T, role string) string {
	t.Helper()
	status, text := asks{client: over(h.socket)}.post(t, "operations/open-ui", `{"role":"`+role+`"}`)
	require.Equal(t, http.StatusOK, status, text)
	_, code, found := strings.Cut(strings.Trim(text, `"`), "/ui/#code=")
	require.True(t, found, text)
	require.GreaterOrEqual(t, len(code), 26, "128 bits")
	return code
}

// browser returns requests over TCP with a cookie.
func (h *house) browser(cookie string) asks {
	a := asks{client: over(""), url: h.tcp.URL(), header: http.Header{}}
	if cookie != "" {
		a.header.Set("Cookie", cookie)
	}
	return a
}

// signIn signs in with a code and returns the cookie as a browser sends it.
func (h *house) signIn(t *testing.T, code, cookie string) string {
	t.Helper()
	response, text := h.browser(cookie).do(t, http.MethodPost, signInPath, `{"code":"`+code+`"}`)
	require.Equal(t, http.StatusOK, response.StatusCode, text)
	require.Contains(t, text, `"team":"shop","version":"1.2.3"`)
	require.Len(t, response.Cookies(), 1)
	c := response.Cookies()[0]
	require.Equal(t, "orchestrator_session", c.Name)
	require.True(t, c.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, c.SameSite)
	require.Equal(t, "/", c.Path)
	require.False(t, c.Secure, "this listener has no TLS")
	return c.Name + "=" + c.Value
}

func TestCodeSignsInOnce(t *testing.T) {
	h := webHouse(t)
	code := h.code(t, "operator")
	cookie := h.signIn(t, code, "")
	response, text := h.browser("").do(t, http.MethodPost, signInPath, `{"code":"`+code+`"}`)
	require.Equal(t, http.StatusUnauthorized, response.StatusCode, text)
	require.Empty(t, response.Cookies())
	_, refused := h.taken()
	require.Len(t, refused, 1, "it is in the audit")
	require.Equal(t, "sign-in", refused[0].operation)

	response, text = h.browser(cookie).do(t, http.MethodGet, mePath, "")
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Contains(t, text, `"role":"operator"`)
	status, text := h.browser(cookie).post(t, "operations/status", "{}")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "/operator/false", "a person at the network, and not at the operators' socket")

	response, text = h.browser(cookie).do(t, http.MethodPost, signOutPath, "")
	require.Equal(t, http.StatusOK, response.StatusCode, text)
	require.Negative(t, response.Cookies()[0].MaxAge)
	for _, old := range []string{cookie, "", "orchestrator_session=", "orchestrator_session=" + strings.Repeat("A", 26)} {
		response, text = h.browser(old).do(t, http.MethodGet, mePath, "")
		require.Equal(t, http.StatusUnauthorized, response.StatusCode, "%q: %s", old, text)
	}
}

func TestViewerInTheBrowserOnlyReads(t *testing.T) {
	h := webHouse(t)
	cookie := h.signIn(t, h.code(t, "viewer"), "")
	for path, want := range map[string]int{
		"operations/status": http.StatusOK, "operations/start-agent": http.StatusForbidden, "operations/open-ui": http.StatusForbidden,
		"operations/cancel-task": http.StatusForbidden, "operations/query-tasks": http.StatusOK,
	} {
		status, text := h.browser(cookie).post(t, path, "{}")
		require.Equal(t, want, status, "%s: %s", path, text)
	}
	response, text := h.browser(cookie).do(t, http.MethodGet, "/api/v1/events", "")
	require.Equal(t, http.StatusOK, response.StatusCode, text)
}

func TestSignInCannotBeWidened(t *testing.T) {
	h := webHouse(t)
	cookie := h.signIn(t, h.code(t, "operator"), "")
	for path, want := range map[string]int{
		"operations/open-ui": http.StatusForbidden, "operations/issue-token": http.StatusForbidden, "operations/issue-key": http.StatusForbidden,
		"operations/start-agent": http.StatusOK,
	} {
		status, text := h.browser(cookie).post(t, path, "{}")
		require.Equal(t, want, status, "%s: %s", path, text)
	}
	viewer := asks{client: over(""), url: h.tcp.URL(), header: http.Header{"Authorization": {"Bearer " + h.token(t, wire.PersonViewer)}}}
	status, _ := viewer.post(t, "operations/open-ui", "{}")
	require.Equal(t, http.StatusForbidden, status)
	status, text := asks{client: over(h.socket)}.post(t, "operations/open-ui", `{"role":"admin"}`)
	require.Equal(t, http.StatusBadRequest, status, text)
}

// A page of another origin can send the cookie along, also one at another port of the same host.
func TestRequestsOfOtherPagesAreRefused(t *testing.T) {
	h := webHouse(t)
	cookie := h.signIn(t, h.code(t, "operator"), "")
	for name, test := range map[string]struct {
		header map[string]string
		want   int
	}{
		"no browser":       {nil, http.StatusOK},
		"its own page":     {map[string]string{"Origin": h.tcp.URL()}, http.StatusOK},
		"same origin":      {map[string]string{"Origin": h.tcp.URL(), "Sec-Fetch-Site": "same-origin"}, http.StatusOK},
		"another site":     {map[string]string{"Origin": "http://evil.example"}, http.StatusForbidden},
		"another port":     {map[string]string{"Origin": "http://127.0.0.1:1"}, http.StatusForbidden},
		"no origin":        {map[string]string{"Origin": "null"}, http.StatusForbidden},
		"as it is told":    {map[string]string{"Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
		"of the same host": {map[string]string{"Sec-Fetch-Site": "same-site"}, http.StatusForbidden},
	} {
		for path, without := range map[string]int{"/api/v1/operations/start-agent": http.StatusUnauthorized, signInPath: 0} {
			a := h.browser(cookie)
			want := test.want
			body := "{}"
			if path == signInPath {
				body = `{"code":"` + h.code(t, "operator") + `"}`
				a = h.browser("")
			}
			for key, value := range test.header {
				a.header.Set(key, value)
			}
			response, text := a.do(t, http.MethodPost, path, body)
			require.Equal(t, want, response.StatusCode, "%s %s: %s", name, path, text)
			if a.header.Del("Cookie"); without != 0 {
				response, _ = a.do(t, http.MethodPost, path, body)
				require.Equal(t, without, response.StatusCode, name)
			}
		}
	}
	a := h.browser(cookie)
	a.header.Set("Sec-Fetch-Site", "same-site")
	response, _ := a.do(t, http.MethodGet, "/api/v1/events", "")
	require.Equal(t, http.StatusForbidden, response.StatusCode, "it does not even read")
	a.header.Del("Cookie")
	a.header.Set("Authorization", "Bearer "+h.token(t, wire.PersonOperator))
	a.header.Set("Origin", "http://evil.example")
	status, _ := a.post(t, "operations/start-agent", "{}")
	require.Equal(t, http.StatusOK, status, "a token is no cookie: no browser sends it by itself")
}

// At a unix socket a cookie has no effect, and with another credential it does not count.
func TestCookieCountsOnlyOverTCP(t *testing.T) {
	h := webHouse(t)
	cookie := h.signIn(t, h.code(t, "operator"), "")
	env, _ := h.run(t, "r1")
	agent := asks{client: over(env["ORC_SOCKET"]), header: http.Header{"Cookie": {cookie}}}
	status, text := agent.post(t, "operations/status", "{}")
	require.Equal(t, http.StatusForbidden, status, text)
	response, text := agent.do(t, http.MethodGet, mePath, "")
	require.Equal(t, http.StatusUnauthorized, response.StatusCode, text)
	own := asks{client: over(h.socket), header: http.Header{"Cookie": {"orchestrator_session=gone"}}}
	status, text = own.post(t, "operations/status", "{}")
	require.Equal(t, http.StatusOK, status, text)
	response, text = own.do(t, http.MethodGet, mePath, "")
	require.Equal(t, http.StatusUnauthorized, response.StatusCode, text)

	a := h.browser(cookie)
	a.header.Set("X-API-Key", "orc_coder")
	status, text = a.post(t, "operations/status", "{}")
	require.Equal(t, http.StatusForbidden, status, text)
	response, text = h.browser(cookie).do(t, http.MethodGet, "/api/bus/poll", "")
	require.Equal(t, http.StatusUnauthorized, response.StatusCode, text)
}

// Browsers send a cookie to all ports of a host, so two orchestrators share it.
func TestOrchestratorsOfOneMachineShareTheCookie(t *testing.T) {
	one, other := webHouse(t), webHouse(t)
	cookie := one.signIn(t, one.code(t, "operator"), "")
	cookie = other.signIn(t, other.code(t, "operator"), cookie)
	for _, h := range []*house{one, other} {
		response, text := h.browser(cookie).do(t, http.MethodGet, mePath, "")
		require.Equal(t, http.StatusOK, response.StatusCode, text)
	}
	response, _ := one.browser(cookie).do(t, http.MethodPost, signOutPath, "")
	rest := response.Cookies()[0]
	require.NotEmpty(t, rest.Value)
	response, text := other.browser(rest.Name+"="+rest.Value).do(t, http.MethodGet, mePath, "")
	require.Equal(t, http.StatusOK, response.StatusCode, text)
	again := one.signIn(t, one.code(t, "operator"), cookie)
	for range 12 {
		again = one.signIn(t, one.code(t, "operator"), again)
	}
	require.Equal(t, 2, strings.Count(again, "."), "a secret that holds is replaced; one that does not may be another orchestrator's")
}

// A sign-in with the help of a token ends with it.
func TestSignInEndsWithItsToken(t *testing.T) {
	var revoked atomic.Bool
	h := webHouse(t)
	h.door.Signer.Tokens = issued(func(string) bool { return !revoked.Load() })
	remote := asks{client: over(""), url: h.tcp.URL(), header: http.Header{"Authorization": {"Bearer " + h.token(t, wire.PersonOperator)}}}
	status, text := remote.post(t, "operations/open-ui", "{}")
	require.Equal(t, http.StatusOK, status, text)
	_, code, _ := strings.Cut(strings.Trim(text, `"`), "#code=")
	cookie := h.signIn(t, code, "")
	_, text = h.browser(cookie).do(t, http.MethodGet, mePath, "")
	require.Contains(t, text, `"name":"ann"`)
	revoked.Store(true)
	response, text := h.browser(cookie).do(t, http.MethodGet, mePath, "")
	require.Equal(t, http.StatusUnauthorized, response.StatusCode, text)
}

func TestAgentThatOperatesGetsNoCode(t *testing.T) {
	s := new(SignIns)
	for name, who := range map[string]identity.Caller{
		"nobody": {}, "an agent": {Kind: identity.Agent, Name: "coder"}, "an actor": {Kind: identity.Outsider},
		"an agent that operates": {Kind: identity.Operator, Wide: true, Name: "agent:coder"},
	} {
		_, err := s.Invite(withCaller(context.Background(), caller{who: who}), control.OpenUIRequest{})
		require.Error(t, err, name)
	}
}

func TestWrongCodesAreSlowedDown(t *testing.T) {
	h := build(t, func(d *API) { d.SignIns, d.Rate = new(SignIns), 3 }, TCP{})
	limited := 0
	for range 12 {
		response, _ := h.browser("").do(t, http.MethodPost, signInPath, `{"code":"x"}`)
		if response.StatusCode == http.StatusTooManyRequests {
			limited++
			require.NotEmpty(t, response.Header.Get("Retry-After"))
		}
	}
	require.Positive(t, limited)
}

func TestPagesNeedNoSignInAndTheRightHost(t *testing.T) {
	h := webHouse(t)
	response, text := h.browser("").do(t, http.MethodGet, "/ui/tasks/1", "")
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "page /ui/tasks/1", text)
	a := h.browser("")
	a.header.Set("Host", "evil.example")
	response, text = a.do(t, http.MethodGet, "/ui/", "")
	require.Equal(t, http.StatusForbidden, response.StatusCode, text)
}

// A stream of a browser ends when the person signs out.
func TestStreamEndsWithTheSignIn(t *testing.T) {
	next := make(chan string)
	h := build(t, func(d *API) {
		d.SignIns = &SignIns{Team: "shop"}
		d.Version = "1.2.3"
		d.Operations = map[string]Operation{"open-ui": Do(d.SignIns.Invite)}
		d.Lists["events"] = linesOf(next)
	}, TCP{})
	cookie := h.signIn(t, h.code(t, "viewer"), "")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.tcp.URL()+"/api/v1/events", nil)
	require.NoError(t, err)
	request.Header.Set("Cookie", cookie)
	go func() { next <- "first" }()
	response, err := over("").Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	require.True(t, lines.Scan())
	require.Equal(t, `"first"`, lines.Text())
	out, text := h.browser(cookie).do(t, http.MethodPost, signOutPath, "")
	require.Equal(t, http.StatusOK, out.StatusCode, text)
	go func() {
		select {
		case next <- "second":
		case <-t.Context().Done():
		}
	}()
	require.False(t, lines.Scan(), lines.Text())
	require.Error(t, lines.Err(), "it is cut off")
}

// The bodies of wrong sign-ins are refused.
func TestSignInReadsItsBody(t *testing.T) {
	h := webHouse(t)
	for body, want := range map[string]int{`{`: http.StatusBadRequest, `[]`: http.StatusBadRequest, `{}`: http.StatusUnauthorized, "": http.StatusBadRequest} {
		response, text := h.browser("").do(t, http.MethodPost, signInPath, body)
		require.Equal(t, want, response.StatusCode, "%s: %s", body, text)
	}
	text, err := object.Encode(signedIn{Name: "ann"})
	require.NoError(t, err)
	require.Contains(t, string(text), `"name":"ann"`)
}

// TestQuietStream checks that a caller of a stream without lines sees that it has begun.
func TestQuietStream(t *testing.T) {
	api := &API{}
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.lines(w, r, true, func(func(any) error) error {
			<-over
			return nil
		})
	}))
	defer s.Close()
	answer, err := http.Get(s.URL)
	require.NoError(t, err, "it comes before the end")
	defer answer.Body.Close()
	require.Equal(t, inLines, answer.Header.Get("Content-Type"))
	close(over)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Empty(t, text)
}

// TestViewHasAName checks that people sign in at the host name of the web view only, and that no other page there leads
// to the name. A token counts at each name.
func TestViewHasAName(t *testing.T) {
	const name = "orc-abc.localhost"
	h := build(t, func(d *API) {
		d.SignIns = &SignIns{Team: "shop"}
		d.Version = "1.2.3"
		d.Pages = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		d.Operations = map[string]Operation{"status": whoAsks, "open-ui": Do(d.SignIns.Invite)}
	}, TCP{View: name, Hosts: []string{"localhost", "team.example"}})
	require.Regexp(t, `^http://127\.0\.0\.1:\d+$`, h.tcp.URL())
	require.Regexp(t, `^http://orc-abc\.localhost:\d+$`, h.tcp.ViewURL())
	visit := func(host, method, path, body, cookie string) (*http.Response, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, h.tcp.URL()+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Host = host
		r.Header.Set("Content-Type", "application/json")
		if cookie != "" {
			r.Header.Set("Cookie", cookie)
		}
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response, string(text)
	}
	code := h.code(t, "operator")
	shared := []string{"127.0.0.1", "127.0.0.1:80", "localhost", "LOCALHOST.", "[::ffff:127.0.0.1]:80"}
	for _, host := range shared {
		for path, method := range map[string]string{UIPath: http.MethodGet, signInPath: http.MethodPost} {
			response, text := visit(host, method, path, `{"code":"`+code+`"}`, "")
			require.Equal(t, http.StatusForbidden, response.StatusCode, "%s %s: %s", host, path, text)
			require.NotContains(t, text, "orc-abc")
			require.Empty(t, response.Header.Get("Location"))
		}
	}
	response, text := visit(name+":80", http.MethodPost, signInPath, `{"code":"`+code+`"}`, "")
	require.Equal(t, http.StatusOK, response.StatusCode, text)
	c := response.Cookies()[0]
	require.Empty(t, c.Domain, "only this name gets it")
	for _, host := range []string{name, "team.example"} {
		response, text = visit(host, http.MethodPost, "/api/v1/operations/status", "{}", c.Name+"="+c.Value)
		require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", host, text)
	}
	for _, host := range shared {
		response, text = visit(host, http.MethodPost, "/api/v1/operations/status", "{}", c.Name+"="+c.Value)
		require.Equal(t, http.StatusForbidden, response.StatusCode, "%s: %s", host, text)
	}
}
