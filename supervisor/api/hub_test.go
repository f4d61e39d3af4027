package api

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/identity"
	"orchestrator/wire/object"
)

const (
	inBrief    = `"id":"t-1","title":"Fix it","status":"pending","type":"feature","priority":"high","created_at":"` + morning + `"`
	linkText   = `{"id":"d3","depends_on_task_id":"t-0","dependency_type":"input","contract_key":"api","resolved":true,"resolved_at":"` + morning + `"}`
	detailText = `{"id":"t-1","title":"Fix it","spec":"All of it","structured_spec":` + theSpec + `,"status":"pending","type":"feature","priority":"high",` +
		`"target_repo":"shop","acceptance_criteria":["green"],"project_id":null,"session_id":null,"parent_task_id":null,"requirements":` + theNeeds +
		`,"dependencies":[` + linkText + `],"resolved_inputs":{"api":{"port":8080.0}},"resolved_input_status":{"api":"partial"},"result":null,"error":null,` +
		`"plan":null,"plan_feedback":null,"help":{"questionId":"q7","question":"Which?"},"created_by":"operator",` +
		`"assigned_server_id":"%[1]s","assigned_server_name":"coder","created_at":"` + morning + `","assigned_at":null,"started_at":null,"completed_at":null}`
	lineText = `{` + inBrief + `,"target_repo":"shop","project_id":null,"session_id":null,"parent_task_id":null,"dependencies":[` + linkText +
		`],"error":null,"created_by":"operator","assigned_server_id":"%[1]s","assigned_server_name":"coder","assigned_at":null,"started_at":null,"completed_at":null}`
	noteText   = `{"id":"n9","task_id":"t-1","author":"agent:coder","content":"Look","urgent":true,"created_at":"` + morning + `"}`
	addedText  = `{"id":"d4","depends_on_task_id":"t-2","dependency_type":"blocks","contract_key":null,"resolved":false,"resolved_at":null}`
	serverText = `{"server_id":"s-1","name":"coder","status":"online","role":"worker","remote":false,"repos":{},"capabilities":{"languages":["go"]},"running_tasks":0}`
)

// TestHubRoutes checks, for every route, the request to the operation and the exact response.
//
// Rows, T-54.
func TestHubRoutes(t *testing.T) {
	h := buildHub(t, nil)
	token := http.Header{"Authorization": {"Bearer " + h.token(t, wire.PersonOperator)}}
	text := func(s string) *string { return &s }
	newTask := `{"title":"Fix it","spec":"All of it","priority":"high","target_repo":"shop","session_id":"run-1","structured_spec":` + theSpec +
		`,"requirements":` + theNeeds + `,"dependencies":[{"depends_on_task_id":"t-0","dependency_type":"input","contract_key":"api"}],"dependency_ids":["t-2"]}`
	submitted := func(t *testing.T, body any) {
		s := body.(*wire.SubmitTask)
		require.Equal(t, [3]string{"Fix it", "All of it", "feature"}, [3]string{s.Name, s.Description, s.Type})
		require.Equal(t, theSpec, string(s.Spec.Document), "digit for digit")
		require.Equal(t, theNeeds, string(s.Requirements.Document))
		require.Equal(t, []hub.Dependency{{On: "t-0", Type: "input", Contract: "api"}, {On: "t-2", Type: "blocks"}}, s.Dependencies)
		require.True(t, s.Patient)
	}
	is := func(want any) func(*testing.T, any) {
		return func(t *testing.T, body any) { require.Equal(t, want, body) }
	}
	completed := func(want string) func(*testing.T, any) {
		return func(t *testing.T, body any) {
			c := body.(*wire.CompleteTask)
			require.Equal(t, "t-1", c.TaskID)
			require.Equal(t, want, string(c.Result.Document))
		}
	}
	one := is(&wire.TaskID{TaskID: "t-1"})
	failed := is(&wire.FailTask{TaskID: "t-1", Error: "no way"})
	helped := is(&wire.RequestHelp{TaskID: "t-1", Question: "Which?", Context: wire.Raw(`{"n":1.0}`)})
	updated := is(&wire.UpdateTask{TaskID: "t-1", Name: text("New"), Without: []string{"requirements"}})
	seen := make(map[string]bool)
	for _, test := range []struct {
		route, path, body string
		operation         string
		said              func(*testing.T, any)
		status            int
		want              string
	}{
		{"POST /api/v1/tasks", "/api/v1/tasks", newTask, "submit-task", submitted, 201, `{` + inBrief + `}`},
		{"GET /api/v1/tasks/{id}", "/api/v1/tasks/t-1", "", "get-task", one, 200, detailText},
		{"PUT /api/v1/tasks/{id}", "/api/v1/tasks/t-1", `{"title":"New","requirements":null}`, "update-task", updated, 200, detailText},
		{"POST /api/v1/tasks/{id}/notes", "/api/v1/tasks/t-1/notes", `{"content":"Look","urgent":true}`, "add-note",
			is(&wire.AddNote{TaskID: "t-1", Content: "Look", Urgent: true}), 201, noteText},
		{"GET /api/v1/tasks/{id}/notes", "/api/v1/tasks/t-1/notes", "", "list-notes", one, 200, `[` + noteText + `]`},
		{"POST /api/v1/tasks/{id}/approve-plan", "/api/v1/tasks/t-1/approve-plan", "", "approve-plan", one, 200, `{` + inBrief + `}`},
		{"POST /api/v1/tasks/{id}/revise-plan", "/api/v1/tasks/t-1/revise-plan", `{"feedback":"Shorter"}`, "revise-plan",
			is(&wire.RevisePlan{TaskID: "t-1", Feedback: "Shorter"}), 200, `{` + inBrief + `}`},
		{"POST /api/v1/tasks/{id}/auto-assign", "/api/v1/tasks/t-1/auto-assign", "", "auto-assign", one, 200,
			`{"status":"assigned","server_id":"s-1","server_name":"coder","match_score":475}`},
		{"GET /api/v1/tasks/{id}/matching-agents", "/api/v1/tasks/t-1/matching-agents", "", "match-agents", one, 200,
			`{"servers":[{"server_id":"s-1","server_name":"coder","score":-1,"status":"offline","reasons":["missing repo: shop (disqualified)"]}],"total":1}`},

		{"GET /api/v1/servers/tasks/poll", "/api/v1/servers/tasks/poll", "", "poll-tasks", is(&wire.Nothing{}), 200, `[` + detailText + `]`},
		{"POST /api/v1/servers/tasks/{id}/start", "/api/v1/servers/tasks/t-1/start", "", "start-task", one, 200, `{` + inBrief + `}`},
		{"POST /api/v1/servers/tasks/{id}/complete", "/api/v1/servers/tasks/t-1/complete", `{"result":{"n":1.00}}`, "complete-task", completed(`{"n":1.00}`), 200, `{"status":"ok"}`},
		{"POST /api/v1/servers/tasks/{id}/complete", "/api/v1/servers/tasks/t-1/complete", `{"result":"well"}`, "complete-task", completed(`"well"`), 200, `{"status":"ok"}`},
		{"POST /api/v1/servers/tasks/{id}/fail", "/api/v1/servers/tasks/t-1/fail", `{"error":"no way"}`, "fail-task", failed, 200, `{` + inBrief + `}`},
		{"POST /api/v1/servers/tasks/{id}/fail", "/api/v1/servers/tasks/t-1/fail", "", "fail-task",
			is(&wire.FailTask{TaskID: "t-1", Error: "no reason was given"}), 200, `{` + inBrief + `}`},
		{"POST /api/v1/servers/tasks/{id}/help", "/api/v1/servers/tasks/t-1/help", `{"question":"Which?","context":{"n":1.0}}`, "request-help", helped, 200,
			`{` + inBrief + `,"intervention_id":"q7"}`},
		{"POST /api/v1/servers/register", "/api/v1/servers/register", `{"name":"far","registration_token":"orcreg_x","repos":{"shop":{}}}`, "register-agent",
			is(&wire.Register{Name: "far", Token: "orcreg_x", Repos: wire.Raw(`{"shop":{}}`)}), 201, `{"server_id":"s-1","name":"far","api_key":"orc_secret"}`},
		{"POST /api/v1/servers/heartbeat", "/api/v1/servers/heartbeat", `{"load":0.10,"capabilities":null}`, "update-capabilities",
			is(&wire.UpdateCapabilities{System: wire.Raw(`{"load":0.10}`)}), 200, `{"status":"ok","server":` + serverText + `}`},
		{"POST /api/v1/servers/heartbeat", "/api/v1/servers/heartbeat", ``, "update-capabilities", is(&wire.UpdateCapabilities{}), 200,
			`{"status":"ok","server":` + serverText + `}`},

		{"POST /api/v1/server/tasks", "/api/v1/server/tasks", newTask, "submit-task", submitted, 201, `{` + inBrief + `}`},
		{"GET /api/v1/server/tasks", "/api/v1/server/tasks?status=needs_human&project_id=p%201&other=x", "", "query-tasks",
			is(&wire.QueryTasks{State: "needs_human", ProjectID: "p 1", Limit: 1000, Uncounted: true}), 200, `{"tasks":[` + lineText + `]}`},
		{"GET /api/v1/server/tasks", "/api/v1/server/tasks?status=", "", "query-tasks", is(&wire.QueryTasks{Limit: 1000, Uncounted: true}), 200, `{"tasks":[` + lineText + `]}`},
		{"GET /api/v1/server/tasks/check", "/api/v1/server/tasks/check?session_id=run-1", "", "check-tasks", is(&wire.CheckTasks{SessionID: "run-1"}), 200,
			`{"count":1,"tasks":[` + detailText + `]}`},
		{"GET /api/v1/server/tasks/check", "/api/v1/server/tasks/check", "", "check-tasks", is(&wire.CheckTasks{}), 200, `{"count":1,"tasks":[` + detailText + `]}`},
		{"GET /api/v1/server/tasks/{id}", "/api/v1/server/tasks/t-1", "", "get-task", one, 200, detailText},
		{"PUT /api/v1/server/tasks/{id}", "/api/v1/server/tasks/t-1", `{"title":"New","requirements":null}`, "update-task", updated, 200, detailText},
		{"DELETE /api/v1/server/tasks/{id}", "/api/v1/server/tasks/t-1", `{"reason":"enough"}`, "cancel-task",
			is(&wire.CancelTask{TaskID: "t-1", Reason: "enough"}), 200, `{` + inBrief + `}`},
		{"DELETE /api/v1/server/tasks/{id}", "/api/v1/server/tasks/t-1", ``, "cancel-task", is(&wire.CancelTask{TaskID: "t-1"}), 200, `{` + inBrief + `}`},
		{"POST /api/v1/server/tasks/{id}/start", "/api/v1/server/tasks/t-1/start", " {} ", "start-task", one, 200, `{` + inBrief + `}`},
		{"POST /api/v1/server/tasks/{id}/complete", "/api/v1/server/tasks/t-1/complete", `{"result":"well"}`, "complete-task", completed(`"well"`), 200, `{"status":"ok"}`},
		{"POST /api/v1/server/tasks/{id}/fail", "/api/v1/server/tasks/t-1/fail", `{"error":"no way"}`, "fail-task", failed, 200, `{` + inBrief + `}`},
		{"POST /api/v1/server/tasks/{id}/help", "/api/v1/server/tasks/t-1/help", `{"question":"Which?","context":{"n":1.0}}`, "request-help", helped, 200,
			`{` + inBrief + `,"intervention_id":"q7"}`},
		{"POST /api/v1/server/tasks/{id}/assign", "/api/v1/server/tasks/t-1/assign", `{"session_name":"coder","require_plan":true}`, "assign-task",
			is(&wire.AssignTask{TaskID: "t-1", Agent: "coder", RequirePlan: true}), 200, `{` + inBrief + `,"assigned_server_id":"%[1]s","assigned_server_name":"coder"}`},
		{"POST /api/v1/server/tasks/{id}/dependencies", "/api/v1/server/tasks/t-1/dependencies", `{"depends_on_task_id":"t-2"}`, "add-dependency",
			is(&wire.AddDependency{TaskID: "t-1", Dependency: hub.Dependency{On: "t-2", Type: "blocks"}}), 201, addedText},
		{"DELETE /api/v1/server/tasks/{id}/dependencies/{dep_id}", "/api/v1/server/tasks/t-1/dependencies/d4", "", "remove-dependency",
			is(&wire.RemoveDependency{TaskID: "t-1", DependencyID: "d4"}), 200, addedText},
		{"POST /api/v1/server/tasks/{id}/notes", "/api/v1/server/tasks/t-1/notes", `{"content":"Look"}`, "add-note",
			is(&wire.AddNote{TaskID: "t-1", Content: "Look"}), 201, noteText},
		{"POST /api/v1/server/tasks/{id}/plan", "/api/v1/server/tasks/t-1/plan", `{"plan":{"steps":[1.0]}}`, "submit-plan",
			is(&wire.SubmitPlan{TaskID: "t-1", Plan: wire.Raw(`{"steps":[1.0]}`)}), 200, `{` + inBrief + `}`},
		{"GET /api/v1/server/servers", "/api/v1/server/servers", "", "query-servers", is(&wire.Nothing{}), 200, `{"servers":[` + serverText + `]}`},
	} {
		route := routeOf(t, test.route)
		by := h.as(token)
		want := identity.Caller{Kind: identity.Operator, Name: "ann", Role: wire.PersonOperator}
		switch route.access {
		case Agents:
			by, want = h.as(withKey("coder")), identity.Caller{Kind: identity.Agent, Name: "coder", Wide: strings.HasPrefix(test.path, "/api/v1/server/")}
		case Public:
			by, want = h.as(nil), identity.Caller{}
		}
		response, answer := h.ask(t, by, route.method(), test.path, test.body)
		require.Equal(t, test.status, response.StatusCode, "%s: %s", test.route, answer)
		wanted := test.want
		if strings.Contains(wanted, "%[1]s") {
			wanted = fmt.Sprintf(wanted, hub.ServerID("coder"))
		}
		require.Equal(t, wanted, answer, test.route)
		asked, refused := h.taken()
		require.Len(t, asked, 1, test.route)
		require.Empty(t, refused)
		require.Equal(t, test.operation, asked[0].operation)
		require.Equal(t, want, asked[0].from, test.route)
		test.said(t, asked[0].body)
		if route.read.schema != "" && strings.TrimSpace(test.body) != "" {
			require.True(t, h.document.mayBeSaid(t, route, test.body), "%s: %s", test.route, test.body)
		}
		seen[test.route] = true
	}
	for i := range hubRoutes() {
		_, own := hubForms()[hubRoutes()[i].operation]
		require.True(t, seen[hubRoutes()[i].pattern] || !own, "%s has a form of its own: give it a row above", hubRoutes()[i].pattern)
	}
}

func routeOf(t *testing.T, pattern string) *route {
	t.Helper()
	for i := range hubRoutes() {
		if hubRoutes()[i].pattern == pattern {
			return &hubRoutes()[i]
		}
	}
	require.Fail(t, "there is no such route", pattern)
	return nil
}

// TestHubNoMatch checks that a task that fits no agent is an answer with one key, and not a
// refusal.
//
// Rows: A-138, T-47.
func TestHubNoMatch(t *testing.T) {
	h := buildHub(t, nil)
	h.answer = func(question) (any, error) { return &wire.Assignment{Status: "no_match"}, nil }
	response, text := h.ask(t, h.at(), http.MethodPost, "/api/v1/tasks/t-1/auto-assign", "")
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, `{"status":"no_match"}`, text)
}

// TestHubOfLittle checks that empty lists are lists, and that a small task has all its keys.
//
// Rows.
func TestHubOfLittle(t *testing.T) {
	h := buildHub(t, nil)
	small := wire.Task{ID: "t-1", Name: "x", State: wire.TaskInReview, CreatedAt: morning}
	for path, row := range map[string]struct {
		answer any
		want   string
	}{
		"/api/v1/server/tasks":                 {&wire.TaskList{}, `{"tasks":[]}`},
		"/api/v1/server/tasks/check":           {&wire.TaskList{}, `{"count":0,"tasks":[]}`},
		"/api/v1/server/servers":               {&hub.ServerList{}, `{"servers":[]}`},
		"/api/v1/tasks/t-1/notes":              {&wire.NoteList{}, `[]`},
		"/api/v1/tasks/t-1/matching-agents":    {&hub.Matches{}, `{"servers":[],"total":0}`},
		"/api/v1/server/tasks?status=running":  {&wire.TaskList{Tasks: []wire.Task{small}}, `"status":"running"`},
		"/api/v1/server/tasks/t-1":             {&wire.TaskReply{Task: small}, `"structured_spec":null,"status":"running","type":"","priority":"normal","target_repo":null,"acceptance_criteria":[]`},
		"/api/v1/server/tasks/t-1?session_id=": {&wire.TaskReply{Task: small}, `"dependencies":[],"resolved_inputs":{},"result":null`},
	} {
		h.answer = func(question) (any, error) { return row.answer, nil }
		response, text := h.ask(t, h.at(), http.MethodGet, path, "")
		require.Equal(t, http.StatusOK, response.StatusCode, text)
		require.Contains(t, text, row.want)
	}
	h.answer = func(question) (any, error) { return &wire.TaskList{}, nil }
	response, text := h.ask(t, h.as(withKey("coder")), http.MethodGet, "/api/v1/servers/tasks/poll", "")
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, `[]`, text)
}

// HEAD is GET without the body, and the lengths agree.
func TestHubHead(t *testing.T) {
	h := buildHub(t, nil)
	for i := range hubRoutes() {
		route := &hubRoutes()[i]
		if route.method() != http.MethodGet {
			continue
		}
		by := h.at()
		if route.operation == "poll-tasks" {
			by = h.as(withKey("coder"))
		}
		path := filled(route)
		full, text := h.ask(t, by, http.MethodGet, path, "")
		head, none := h.ask(t, by, http.MethodHead, path, "")
		require.Equal(t, http.StatusOK, head.StatusCode, path)
		require.Empty(t, none)
		require.Equal(t, full.Header.Get("Content-Length"), head.Header.Get("Content-Length"))
		require.Equal(t, strconv.Itoa(len(text)+1), head.Header.Get("Content-Length"))
	}
}

// comer is a caller of the hub, with its rights: below /tasks reading and writing, and the routes
// of agents.
type comer struct {
	name                    string
	by                      asks
	looks, writes, asAgents bool
	denied                  bool // a forbidden call has status 403
	from                    identity.Caller
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
	ann := func(role string) identity.Caller {
		return identity.Caller{Kind: identity.Operator, Name: "ann", Role: role}
	}
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
		{name: "an agent", by: h.as(withKey("coder")), asAgents: true, from: identity.Caller{Kind: identity.Agent, Name: "coder"}},
		{name: "another agent", by: h.as(withKey("other")), asAgents: true, denied: true, from: identity.Caller{Kind: identity.Agent, Name: "other"}},
		{name: "a run", by: asks{client: over(env[EnvSocket])}, asAgents: true, from: identity.Caller{Kind: identity.Agent, Name: "coder", Run: "run-1"}},
		{name: "a run by its token", by: h.as(http.Header{"X-Api-Key": {env[EnvToken]}}), asAgents: true, from: identity.Caller{Kind: identity.Agent, Name: "coder", Run: "run-1"}},
		{name: "an actor from elsewhere", by: h.as(withToken("far")), from: identity.Caller{Kind: identity.Outsider, Name: "HO:far"}},
		{name: "the operators' socket", by: h.at(), looks: true, writes: true, asAgents: true, from: identity.Caller{Kind: identity.Operator, Wide: true}},
	}
}

// decides answers an operation, but denies tasks of another agent, and to people the operations for
// agents.
func decides(q question) (any, error) {
	if q.from.Name == "other" || q.from.Kind == identity.Operator && (q.operation == "poll-tasks" || q.operation == "update-capabilities") {
		return nil, &wire.Error{Code: wire.CodeDenied, Message: "not for you"}
	}
	return answers[q.operation], nil
}

// validBody returns a valid body of a route: from its form, or the first example of its operation.
func validBody(r *route) string {
	if body, own := bodies[r.read.schema]; own {
		return body
	}
	return regexp.MustCompile(`"[a-zA-Z]+":`).ReplaceAllStringFunc(declared(r.operation).Examples[0], object.SnakeCase)
}

// bodies maps the schemas of forms to valid bodies.
var bodies = map[string]string{
	"hub.new-task": `{"title":"x","spec":"y"}`, "hub.changes": `{"title":"x"}`, "hub.completion": `{"result":"x"}`, "hub.failure": ``,
	"hub.cancellation": ``, "hub.call-for-help": `{"question":"x"}`, "hub.new-note": `{"content":"x"}`, "hub.plan": `{"plan":"x"}`,
	"hub.feedback": `{"feedback":"x"}`, "hub.assignee": `{"session_name":"x"}`, "hub.new-dependency": `{"depends_on_task_id":"x"}`,
	"hub.registration": `{"name":"x","registration_token":"y"}`, "hub.heartbeat": `{}`, "": ``,
}

// want returns the expected status of a route, and the caller that the operation gets.
func (c *comer) want(route *route) (status int, from identity.Caller) {
	reads := route.method() == http.MethodGet
	from = c.from
	if from.Kind == identity.Agent {
		from.Wide = strings.HasPrefix(route.path(), "/api/v1/server/")
	}
	switch route.access {
	case Public:
		return route.write.status, identity.Caller{}
	case Agents:
		switch {
		case !c.asAgents:
			return http.StatusUnauthorized, identity.Caller{}
		case c.denied, from.Kind == identity.Operator && (route.operation == "poll-tasks" || route.operation == "update-capabilities"):
			return http.StatusForbidden, from
		}
		return route.write.status, from
	}
	switch {
	case !c.looks:
		return http.StatusUnauthorized, identity.Caller{}
	case !reads && !c.writes:
		return http.StatusForbidden, identity.Caller{}
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
		for i := range hubRoutes() {
			route := &hubRoutes()[i]
			status, from := c.want(route)
			response, text := h.ask(t, c.by, route.method(), filled(route), validBody(route))
			require.Equal(t, status, response.StatusCode, "%s: %s: %s", c.name, route.pattern, text)
			asked, refused := h.taken()
			if from == (identity.Caller{}) && route.access != Public {
				code := map[int]wire.Code{401: wire.CodeUnauthenticated, 403: wire.CodeDenied}[status]
				requireRefused(t, response, text, status, code)
				require.Empty(t, asked, "%s: %s", c.name, route.pattern)
				if c.from.Kind != identity.Unknown { // a denied call of a known caller is noted
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

// TestHubTooOften checks that a caller over its rate limit learns in the form of the hub when to
// retry.
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
