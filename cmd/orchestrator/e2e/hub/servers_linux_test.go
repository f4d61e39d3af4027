package hub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/cmd/orchestrator/e2e/stage"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

// knowsRust returns the capabilities of the external server.
func knowsRust(tools string) string {
	return `"capabilities":{"languages":["rust"],"tools":` + tools + `,"max_concurrent_tasks":2,"more":12345678901234567890}`
}

// servers returns all servers by name, as agents see them.
func servers(v *stage.Caller) map[string]hub.Server {
	v.Hub.T.Helper()
	var list struct{ Servers []hub.Server }
	v.Gets(&list, "GET /server/servers", "")
	found := make(map[string]hub.Server)
	for _, s := range list.Servers {
		found[s.Name] = s
	}
	return found
}

// score returns the score of an agent for a task, and the reasons.
func score(v *stage.Caller, id, server string) (int, string) {
	v.Hub.T.Helper()
	var fits struct{ Servers []hub.Match }
	v.Gets(&fits, "GET /tasks/"+id+"/matching-agents", "")
	for _, m := range fits.Servers {
		if m.ServerName == server {
			return m.Score, strings.Join(m.Reasons, "; ")
		}
	}
	require.Fail(v.Hub.T, "it is not weighed", server)
	return 0, ""
}

// An external server works beside a local agent. Tasks are matched to it, it polls them and asks
// for help, and it is still known after a restart.
//
// Rows, T-51.
func TestHubServerFromElsewhere(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("near", "rust", 1), "near")
	h.Open("near")
	ann, near := h.Person(), h.AgentCaller("near")
	far := h.Register("far", `,`+knowsRust(`["cargo"]`))
	seen := servers(near)["far"]
	require.True(t, seen.Remote)
	require.Equal(t, "online", seen.Status)
	require.Equal(t, `{"languages":["rust"],"tools":["cargo"],"max_concurrent_tasks":2,"more":12345678901234567890}`, string(seen.Capabilities))
	require.False(t, servers(near)["near"].Remote)

	const needing = `{"title":"x","spec":"s","requirements":{"languages":["rust"],"tools":["cargo","docker"]}}`
	first := create(ann, needing)
	before, why := score(ann, first, "far")
	require.Contains(t, why, "(+10)")
	var alive struct {
		Status string
		Server hub.Server
	}
	far.Gets(&alive, "POST /servers/heartbeat", `{"load":0.10,`+knowsRust(`["cargo","docker"]`)+`}`)
	require.Equal(t, "ok", alive.Status)
	require.Equal(t, `{"load":0.10}`, string(alive.Server.System))
	far.Gets(nil, "POST /servers/heartbeat", `{"load":0.20}`)
	after, _ := score(ann, first, "far")
	require.Equal(t, before+10, after, "what it can do is as it was said last")
	require.Equal(t, first, polled(far)[0].ID, "who can do more gets what waits")
	far.Gets(nil, "DELETE /server/tasks/"+first, "")
	task := create(ann, needing)
	server, score := matched(ann, task)
	require.Equal(t, "far", server)
	require.Equal(t, after, score)

	path := "/servers/tasks/" + task
	near.Fails(http.StatusForbidden, "denied", "POST "+path+"/start", "")
	require.Empty(t, polled(near))
	require.Equal(t, task, polled(far)[0].ID)
	far.Gets(nil, "POST "+path+"/start", "")
	far.Fails(http.StatusConflict, "conflict", "POST "+path+"/start", "")
	var helped hubTask
	far.Gets(&helped, "POST "+path+"/help", `{"question":"Which?","context":{"n":1.0}}`)
	require.Equal(t, "needs_human", helped.Status)
	near.Fails(http.StatusForbidden, "denied", "POST "+path+"/complete", `{"result":"mine"}`)
	far.Fails(http.StatusConflict, "conflict", "POST "+path+"/complete", `{"result":"too early"}`)
	h.Ask("inbox", "answer", helped.InterventionID, "the left one")
	h.Kill()

	actors := h.Open("near")
	require.Equal(t, "online", servers(near)["far"].Status)
	found := taskOf(far, task)
	require.Equal(t, "running", found.Status, "what runs elsewhere goes on")
	require.Equal(t, "the left one", found.Help.Answer)
	require.Equal(t, `{"n":1.0}`, string(found.Help.Context))
	far.Gets(nil, "POST "+path+"/complete", `{"result":"left"}`)
	require.Equal(t, `{"summary":"left","completed_by":"agent:far"}`, string(taskOf(ann, task).Result))
	actors[0].Settle()
	require.Empty(t, actors[0].Notices("task-assigned"))
	h.Stop()
}

// A new key replaces the old one, at once or after a while, and keys can be revoked. Keys of
// other agents are not affected. All this holds after a restart. The audit names the credential.
//
// Rows.
func TestHubKeys(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("near", "rust", 1), "near")
	h.Open("near")
	near := h.AgentCaller("near")
	far := h.Register("far", "")
	fresh := h.WithKey(h.Ask("key", "rotate", "far"))
	far.Fails(http.StatusUnauthorized, "unauthenticated", "GET /servers/tasks/poll", "")
	overlapping := h.WithKey(h.Ask("key", "rotate", "far", "--overlap", "1h"))
	for range 2 {
		for _, who := range []*stage.Caller{near, fresh, overlapping} {
			require.Empty(t, polled(who))
		}
		far.Fails(http.StatusUnauthorized, "unauthenticated", "GET /servers/tasks/poll", "")
		h.Kill()
		h.Open("near")
	}
	var issued wire.IssuedKey
	require.NoError(t, json.Unmarshal([]byte(h.Ask("key", "issue", "near", "--json")), &issued))
	second := h.WithKey(issued.Key)
	require.Empty(t, polled(second))
	h.Ask("key", "revoke", issued.ID)
	second.Fails(http.StatusUnauthorized, "unauthenticated", "GET /servers/tasks/poll", "")
	require.Empty(t, polled(near))
	h.Stop()
	traced := 0
	for _, line := range h.Audited() {
		if line["credential"] == issued.ID {
			traced++
			require.Regexp(t, `^127\.0\.0\.1:\d+$`, line["address"])
			require.NotContains(t, line, "pid")
		}
	}
	require.Positive(t, traced, "the audit names the credential of a request")
}

// A registration token is valid once, however many servers use it at the same time. A server
// without capabilities can register too and gets tasks by hand.
//
// Rows.
func TestHubRegistersOnce(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("near", "rust", 1), "near")
	h.Open("near")
	near, boss := h.AgentCaller("near"), h.Person()
	token := h.Ask("key", "register")
	const many = 20
	errands := make([]errand, many)
	for i := range errands {
		errands[i] = errand{
			who: h.Anonymous(), request: "POST /api/v1/servers/register",
			body: stage.Registration(fmt.Sprint("far-", i), token, `,"repos":{"shop":{"path":"/srv/shop"}}`),
		}
	}
	var in []int
	for i, r := range atOnce(h, errands) {
		if r.Status == http.StatusCreated {
			in = append(in, i)
			continue
		}
		require.Equal(t, http.StatusUnauthorized, r.Status, r.Text)
	}
	require.Len(t, in, 1)
	servers := servers(near)
	require.Len(t, servers, 2)
	name := fmt.Sprint("far-", in[0])
	require.JSONEq(t, `{"shop":{"path":"/srv/shop"}}`, string(servers[name].Repos))
	require.Equal(t, []string{events.ServerRegistered}, slices.DeleteFunc(kinds(storyOf(h), ""), func(kind string) bool { return kind != events.ServerRegistered }))

	task := create(boss, `{"title":"x","spec":"s","requirements":{"repo":"shop"}}`)
	_, why := score(boss, task, name)
	require.Equal(t, "no capabilities defined (disqualified)", why)
	server, _ := matched(boss, task)
	require.Empty(t, server)
	h.Anonymous().Fails(http.StatusUnauthorized, "unauthenticated", "POST /servers/register", stage.Registration("other", "orcreg_wrong", ""))
	h.Anonymous().Fails(http.StatusUnauthorized, "unauthenticated", "POST /servers/register", stage.Registration("other", h.Ask("key", "register", "--name", "another"), ""))
	h.Anonymous().Fails(http.StatusConflict, "conflict", "POST /servers/register", stage.Registration("near", h.Ask("key", "register"), ""))
	h.Stop()
}

// The routes that each kind of credential may use.
//
// Rows, T-54.
func TestHubDoors(t *testing.T) {
	t.Parallel()
	h := stage.NewHub(t, stage.HTTP+stage.QuickStop+Knowing("one", "go", 1)+Knowing("two", "ts", 1), "one", "two")
	h.Open("one", "two")
	ann, viewer, one, two := h.Person(), h.Person("--role", "viewer"), h.AgentCaller("one"), h.AgentCaller("two")
	task := create(ann, wanting("x", "go"))
	matched(ann, task)
	const in, unknown, denied = http.StatusOK, http.StatusUnauthorized, http.StatusForbidden
	comers := []*stage.Caller{
		ann, viewer, one, two, h.Anonymous(), h.WithKey("orc_unknown"), h.Caller("Authorization", "Bearer x.y.z"),
		h.Caller("Authorization", "Bearer "+one.Credential), h.Caller("X-API-Key", strings.TrimPrefix(ann.Credential, "Bearer ")),
		h.Caller("X-API-Key", ""), h.Caller("Authorization", "Basic YW5uOmFubg=="),
	}
	for _, row := range []struct {
		request, body string
		want          [11]int
	}{
		{"GET /tasks/" + task, "", [11]int{in, in, unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown}},
		{"GET /tasks/" + task + "/matching-agents", "", [11]int{in, in, unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown}},
		{"PUT /tasks/" + task, `{"title":"y"}`, [11]int{in, denied, unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown}},
		{"GET /servers/tasks/poll", "", [11]int{unknown, unknown, in, in, unknown, unknown, unknown, in, unknown, unknown, unknown}},
		{"GET /server/tasks/" + task, "", [11]int{unknown, unknown, in, denied, unknown, unknown, unknown, in, unknown, unknown, unknown}},
		{"GET /server/tasks/check", "", [11]int{unknown, unknown, in, in, unknown, unknown, unknown, in, unknown, unknown, unknown}},
		{"GET /server/servers", "", [11]int{unknown, unknown, in, in, unknown, unknown, unknown, in, unknown, unknown, unknown}},
		{"POST /servers/heartbeat", "", [11]int{unknown, unknown, in, in, unknown, unknown, unknown, in, unknown, unknown, unknown}},
		{"PUT /server/tasks/" + task, `{"title":"z"}`, [11]int{unknown, unknown, in, denied, unknown, unknown, unknown, in, unknown, unknown, unknown}},
	} {
		for i, who := range comers {
			if row.want[i] == in {
				who.Gets(nil, row.request, row.body)
				continue
			}
			who.Fails(row.want[i], map[int]string{unknown: "unauthenticated", denied: "denied"}[row.want[i]], row.request, row.body)
		}
	}
	two.Fails(denied, "denied", "POST /servers/tasks/"+task+"/start", "")
	two.Fails(denied, "denied", "DELETE /server/tasks/"+task, "")
	h.Ask("token", "revoke", "--yes", tokenOf(t, h, "operator"))
	ann.Fails(unknown, "unauthenticated", "GET /tasks/"+task, "")
	require.Equal(t, "z", taskOf(viewer, task).Title)
	h.Stop()
}

// tokenOf returns the id of the token with a role.
func tokenOf(t *testing.T, h *stage.Hub, role string) string {
	t.Helper()
	var list wire.CredentialList
	require.NoError(t, json.Unmarshal([]byte(h.Ask("token", "ls", "--json")), &list))
	at := slices.IndexFunc(list.Credentials, func(c wire.Credential) bool { return c.Role == role })
	require.GreaterOrEqual(t, at, 0)
	return list.Credentials[at].ID
}
