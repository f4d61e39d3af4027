package api

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// TestBusAccess checks who may call each route of the bus. Which mail a caller may read is
// decided elsewhere; here only the caller that is passed on is checked.
//
// Rows: E-05, E-76, E-79, K-06, K-18.
func TestBusAccess(t *testing.T) {
	h := buildHub(t, nil)
	for _, c := range h.comers(t) {
		for i := range busRoutes {
			route := &busRoutes[i]
			want, grants := route.write.status, false
			switch {
			case route.access == Public:
			case c.from.Kind == Unknown:
				want = http.StatusUnauthorized
			case c.from.Role == wire.PersonViewer && route.takesBody():
				want = http.StatusForbidden
			case c.from.Role == wire.PersonOperator && route.operation == "issue-token": // for administrators
				want, grants = http.StatusForbidden, true
			}
			if route.read == readFollower && want == http.StatusOK {
				stream := c.by.listen(t, "")
				stream.begins(t)
				require.Equal(t, inEvents, stream.response.Header.Get("Content-Type"))
				require.Equal(t, []opening{{from: c.from}}, h.post.taken(), c.name)
				stream.leave()
				continue
			}
			response, text := h.ask(t, c.by, route.method(), route.path(), busBodies[route.read.schema])
			require.Equal(t, want, response.StatusCode, "%s: %s: %s", c.name, route.pattern, text)
			asked, refused := h.taken()
			switch {
			case route.access == Public:
				require.Empty(t, asked)
			case want < 300:
				require.Len(t, asked, 1, "%s: %s", c.name, route.pattern)
				require.Equal(t, c.from, asked[0].from)
				require.Empty(t, refused)
			default:
				code := map[int]wire.Code{401: wire.CodeUnauthenticated, 403: wire.CodeDenied}[want]
				requireRefused(t, response, text, want, code)
				require.Empty(t, asked)
				if grants {
					require.Empty(t, refused)
					continue
				}
				require.Len(t, refused, 1)
				require.Equal(t, route.operation, refused[0].operation)
			}
		}
	}
	require.Empty(t, h.post.taken())
}

// TestCorrespondents checks that an external actor is neither an agent nor a person. It may call
// the bus and the operations for actors, and nothing else.
//
// Rows: E-05, E-19, K-18.
func TestCorrespondents(t *testing.T) {
	h := buildHub(t, func(d *API) {
		d.Streams = map[string]Stream{
			"stream": DoLines(func(_ context.Context, _ struct{}, send func(any) error) error { return send(1) }),
			"down":   DoLines(func(_ context.Context, _ struct{}, send func(any) error) error { return send(1) }),
		}
		d.Pipes = map[string]Pipe{"pipe": nil}
		d.WithActor = func(operation string) bool { return operation == "look" || operation == "stream" }
		d.Routes = []Route{
			{Pattern: "GET /api/v1/people", Access: Operators, Do: sayWho}, {Pattern: "GET /api/v1/agents", Access: Agents, Do: sayWho},
			{Pattern: "GET /api/v1/all", Access: Known, Do: sayWho}, {Pattern: "GET /api/v1/open", Access: Public, Do: sayWho},
			{Pattern: "POST /api/v1/actors", Access: Actors, Do: sayWho},
		}
	})
	for _, socket := range []string{"", h.socket} {
		by := asks{client: over(socket), header: withToken("far")}
		if socket == "" {
			by.url = h.tcp.URL()
		}
		for pattern, want := range map[string]int{
			"GET /api/v1/people": 401, "GET /api/v1/agents": 401, "GET /api/v1/all": 401, "GET /api/v1/open": 200, "POST /api/v1/actors": 200,
			"POST /api/v1/operations/look": 200, "POST /api/v1/operations/do": 403, "POST /api/v1/operations/watch": 403,
			"POST /api/v1/operations/rule": 403, "POST /api/v1/operations/stream": 200, "POST /api/v1/operations/down": 403,
			"POST /api/v1/operations/nope": 404, "GET /api/v1/events": 403, "POST /api/v1/pipe": 403, "GET /openapi.json": 200,
			"GET /api/v1/tasks/t-1": 401, "GET /api/v1/server/tasks": 401, "GET /api/v1/servers/tasks/poll": 401,
			"POST /api/v1/servers/heartbeat": 401, "GET /health": 200, "GET /api/bus/poll": 200, "POST /api/bus/heartbeat": 200,
		} {
			method, path, _ := strings.Cut(pattern, " ")
			response, text := by.do(t, method, path, "")
			require.Equal(t, want, response.StatusCode, "%s %s: %s", method, path, text)
			if want == http.StatusUnauthorized {
				require.Contains(t, text, "actor HO:far")
			}
		}
	}
	for _, key := range []string{"orc_c_far", "orc_nobody"} { // actors and operations are not disclosed
		d := &API{Operations: map[string]Operation{"look": whoAsks}, Actor: h.door.Actor}
		visitAs(t, Caller{}, d, func(t *testing.T, c *http.Client, _ *pipes) {
			status, _ := asks{client: c, header: http.Header{"X-Api-Key": {key}}}.post(t, "operations/look", "")
			require.Equal(t, map[string]int{"orc_c_far": 403, "orc_nobody": 401}[key], status)
		})
	}
}

// TestAgentsComeBeforeActors checks that a key of an agent stays one, even if an actor has the
// same.
func TestAgentsComeBeforeActors(t *testing.T) {
	d := &API{Agent: func(key string) (name, run string, ok bool) { return "coder", "run-1", key == "orc_a" }, Actor: func(string) (id string, ok bool) { return "GO", true }}
	c, _, err := d.bearer("orc_a")
	require.NoError(t, err)
	require.Equal(t, Caller{Kind: Agent, Name: "coder", Run: "run-1"}, lasting(c))
	c, _, err = d.bearer("orc_b")
	require.NoError(t, err)
	require.Equal(t, Caller{Kind: Outsider, Name: "GO"}, lasting(c))
	require.NotContains(t, c.String(), "orc_b")
}

// TestBusTooOften checks that each actor has its own rate limit, and is told when to retry.
//
// Rows: E-57, K-06.
func TestBusTooOften(t *testing.T) {
	d := &API{Rate: 1, Do: new(hearsay).do, Actor: func(token string) (id string, ok bool) { return token, true }}
	visitAs(t, Caller{}, d, func(t *testing.T, c *http.Client, _ *pipes) {
		ask := func(token string) (*http.Response, string) {
			return asks{client: c, header: http.Header{"X-Api-Key": {token}}}.do(t, http.MethodGet, "/api/bus/poll", "")
		}
		for _, want := range []struct {
			token  string
			status int
		}{{"orc_a", 200}, {"orc_a", 429}, {"orc_b", 200}, {"orc_b", 429}} {
			response, text := ask(want.token)
			require.Equal(t, want.status, response.StatusCode)
			if want.status == http.StatusTooManyRequests {
				requireRefused(t, response, text, want.status, wire.CodeLimited)
				require.Equal(t, "1", response.Header.Get("Retry-After"))
				require.Contains(t, text, `"recoverable":true`)
			}
		}
		<-time.After(time.Second)
		response, _ := ask("orc_a")
		require.Equal(t, http.StatusOK, response.StatusCode)
	})
}
