package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
)

// comer is a caller of the hub, and what it may call: below /tasks reading and writing, and the
// routes of agents.
type comer struct {
	name                    string
	by                      asks
	looks, writes, asAgents bool
	denied                  bool // a forbidden call has status 403
	from                    Caller
}

func (h *hubHouse) comers(t *testing.T) []comer {
	t.Helper()
	signed := func(id, role string, until time.Time) http.Header {
		text, err := h.door.Signer.Sign(Claims{ID: id, Subject: "ann", Role: role, ExpiresAt: until})
		require.NoError(t, err)
		return http.Header{"Authorization": {"Bearer " + text}}
	}
	later := time.Now().Add(time.Hour)
	env, _ := h.run(t, "run-1")
	ann := func(role string) Caller { return Caller{Kind: Operator, Name: "ann", Role: role} }
	return []comer{
		{name: "nobody", by: h.as(nil)},
		{name: "garbage", by: h.as(http.Header{"Authorization": {"Bearer x.y.z"}})},
		{name: "an expired token", by: h.as(signed("t-1", wire.PersonAdmin, time.Unix(1, 0)))},
		{name: "a revoked token", by: h.as(signed("t-gone", wire.PersonAdmin, later))},
		{name: "an unknown key", by: h.as(http.Header{"X-Api-Key": {"orc_unknown"}})},
		{name: "a token as key", by: h.as(http.Header{"X-Api-Key": signed("t-1", wire.PersonAdmin, later)["Authorization"]})},
		{name: "a viewer", by: h.as(signed("t-1", wire.PersonViewer, later)), looks: true, from: ann(wire.PersonViewer)},
		{name: "an operator", by: h.as(signed("t-1", wire.PersonOperator, later)), looks: true, writes: true, from: ann(wire.PersonOperator)},
		{name: "an admin", by: h.as(signed("t-1", wire.PersonAdmin, later)), looks: true, writes: true, from: ann(wire.PersonAdmin)},
		{name: "an agent", by: h.as(withKey("coder")), asAgents: true, from: Caller{Kind: Agent, Name: "coder"}},
		{name: "another agent", by: h.as(withKey("other")), asAgents: true, denied: true, from: Caller{Kind: Agent, Name: "other"}},
		{name: "a run", by: asks{client: over(env[EnvSocket])}, asAgents: true, from: Caller{Kind: Agent, Name: "coder", Run: "run-1"}},
		{name: "a run by its token", by: h.as(http.Header{"X-Api-Key": {env[EnvToken]}}), asAgents: true, from: Caller{Kind: Agent, Name: "coder", Run: "run-1"}},
		{name: "an actor from elsewhere", by: h.as(withToken("far")), from: Caller{Kind: Outsider, Name: "HO:far"}},
		{name: "the operators' socket", by: h.at(), looks: true, writes: true, asAgents: true, from: Caller{Kind: Operator, Wide: true}},
	}
}

// decides answers an operation, but denies what belongs to another agent, and to people what is
// for agents.
func decides(q question) (any, error) {
	if q.from.Name == "other" || q.from.Kind == Operator && (q.operation == "poll-tasks" || q.operation == "update-capabilities") {
		return nil, &wire.Error{Code: wire.CodeDenied, Message: "not for you"}
	}
	return answers[q.operation], nil
}

// bodies maps each schema to a valid body.
var bodies = map[string]string{
	"hub.new-task": `{"title":"x","spec":"y"}`, "hub.changes": `{"title":"x"}`, "hub.completion": `{"result":"x"}`, "hub.failure": ``,
	"hub.cancellation": ``, "hub.call-for-help": `{"question":"x"}`, "hub.new-note": `{"content":"x"}`, "hub.plan": `{"plan":"x"}`,
	"hub.feedback": `{"feedback":"x"}`, "hub.assignee": `{"session_name":"x"}`, "hub.new-dependency": `{"depends_on_task_id":"x"}`,
	"hub.registration": `{"name":"x","registration_token":"y"}`, "hub.heartbeat": `{}`, "": ``,
}

// want returns the expected status of a route, and the caller that the operation gets.
func (c *comer) want(route *route) (status int, from Caller) {
	reads := route.method() == http.MethodGet
	from = c.from
	if from.Kind == Agent {
		from.Wide = strings.HasPrefix(route.path(), "/api/v1/server/")
	}
	switch route.access {
	case Public:
		return route.write.status, Caller{}
	case Agents:
		switch {
		case !c.asAgents:
			return http.StatusUnauthorized, Caller{}
		case c.denied, from.Kind == Operator && (route.operation == "poll-tasks" || route.operation == "update-capabilities"):
			return http.StatusForbidden, from
		}
		return route.write.status, from
	}
	switch {
	case !c.looks:
		return http.StatusUnauthorized, Caller{}
	case !reads && !c.writes:
		return http.StatusForbidden, Caller{}
	}
	return route.write.status, from
}

// TestHubAccess checks every route with every caller. Access to a task is decided elsewhere;
// here only the caller that is passed on is checked.
//
// Rows, T-54.
func TestHubAccess(t *testing.T) {
	h := buildHub(t, nil)
	h.answer = decides
	for _, c := range h.comers(t) {
		for i := range hubRoutes {
			route := &hubRoutes[i]
			status, from := c.want(route)
			response, text := h.ask(t, c.by, route.method(), filled(route), bodies[route.read.schema])
			require.Equal(t, status, response.StatusCode, "%s: %s: %s", c.name, route.pattern, text)
			asked, refused := h.taken()
			if from == (Caller{}) && route.access != Public {
				code := map[int]wire.Code{401: wire.CodeUnauthenticated, 403: wire.CodeDenied}[status]
				requireRefused(t, response, text, status, code)
				require.Empty(t, asked, "%s: %s", c.name, route.pattern)
				if c.from.Kind != Unknown { // a denied call of a known caller is noted
					require.Len(t, refused, 1, "%s: %s", c.name, route.pattern)
					require.Equal(t, question{from: c.from, operation: route.operation, body: refused[0].body}, refused[0])
				}
				continue
			}
			require.Empty(t, refused)
			require.Len(t, asked, 1, "%s: %s", c.name, route.pattern)
			require.Equal(t, from, asked[0].from, "%s: %s", c.name, route.pattern)
		}
	}
}

// TestHubTooOften checks that a caller over its rate limit is told in the form of the hub when
// to retry.
//
// Rows: A-164, K-06.
func TestHubTooOften(t *testing.T) {
	h := buildHub(t, func(d *API) { d.Rate = 1 })
	by := h.as(withKey("coder"))
	response, text := h.ask(t, by, http.MethodGet, "/api/v1/server/tasks", "")
	require.Equal(t, http.StatusOK, response.StatusCode, text)
	for response.StatusCode == http.StatusOK { // on a slow machine one call may take a second
		response, text = h.ask(t, by, http.MethodGet, "/api/v1/server/tasks", "")
	}
	requireRefused(t, response, text, http.StatusTooManyRequests, wire.CodeLimited)
	require.Equal(t, "1", response.Header.Get("Retry-After"))
	require.Contains(t, text, `"recoverable":true`)
}
