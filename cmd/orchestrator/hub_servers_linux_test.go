package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/hub"
)

// registration returns the body with which a server registers.
func registration(name, token, more string) string {
	return fmt.Sprintf(`{"name":%q,"hostname":"far.example","ip":"10.0.0.7","os":"linux","registration_token":%q%s}`, name, strings.TrimSpace(token), more)
}

// knowsRust returns the capabilities of the external server.
func knowsRust(tools string) string {
	return `"capabilities":{"languages":["rust"],"tools":` + tools + `,"max_concurrent_tasks":2,"more":12345678901234567890}`
}

// servers returns all servers by name, as agents see them.
func (v *visitor) servers() map[string]hub.Server {
	v.hub.t.Helper()
	var list struct{ Servers []hub.Server }
	v.gets(&list, "GET /server/servers", "")
	found := make(map[string]hub.Server)
	for _, s := range list.Servers {
		found[s.Name] = s
	}
	return found
}

// score returns the score of an agent for a task, and the reasons.
func (v *visitor) score(id, server string) (int, string) {
	v.hub.t.Helper()
	var fits struct{ Servers []hub.Match }
	v.gets(&fits, "GET /tasks/"+id+"/matching-agents", "")
	for _, m := range fits.Servers {
		if m.ServerName == server {
			return m.Score, strings.Join(m.Reasons, "; ")
		}
	}
	require.Fail(v.hub.t, "it is not weighed", server)
	return 0, ""
}

// comes registers a server and returns a visitor with its key.
func (h *hubTeam) comes(name, more string) *visitor {
	h.t.Helper()
	var registered struct {
		Server string `json:"server_id"`
		Name   string `json:"name"`
		Key    string `json:"api_key"`
	}
	token := h.ask("key", "register", "--name", name)
	r := h.nobody().gets(&registered, "POST /servers/register", registration(name, token, more))
	require.Equal(h.t, http.StatusCreated, r.status)
	require.Equal(h.t, name, registered.Name)
	require.Equal(h.t, hub.ServerID(name), registered.Server)
	h.nobody().misses(http.StatusUnauthorized, "unauthenticated", "POST /servers/register", registration(name, token, more))
	return h.withKey(registered.Key)
}

// An external server works beside a local agent. Tasks are matched to it, it polls them and asks
// for help, and it is still known after a restart.
//
// Rows, T-51.
func TestHubServerFromElsewhere(t *testing.T) {
	t.Parallel()
	h := newHub(t, listeners+quick+knowing("near", "rust", 1), "near")
	h.open("near")
	ann, near := h.person(), h.program("near")
	far := h.comes("far", `,`+knowsRust(`["cargo"]`))
	seen := near.servers()["far"]
	require.True(t, seen.Remote)
	require.Equal(t, "online", seen.Status)
	require.Equal(t, `{"languages":["rust"],"tools":["cargo"],"max_concurrent_tasks":2,"more":12345678901234567890}`, string(seen.Capabilities))
	require.False(t, near.servers()["near"].Remote)

	const needing = `{"title":"x","spec":"s","requirements":{"languages":["rust"],"tools":["cargo","docker"]}}`
	first := ann.create(needing)
	before, why := ann.score(first, "far")
	require.Contains(t, why, "(+10)")
	var alive struct {
		Status string
		Server hub.Server
	}
	far.gets(&alive, "POST /servers/heartbeat", `{"load":0.10,`+knowsRust(`["cargo","docker"]`)+`}`)
	require.Equal(t, "ok", alive.Status)
	require.Equal(t, `{"load":0.10}`, string(alive.Server.System))
	far.gets(nil, "POST /servers/heartbeat", `{"load":0.20}`)
	after, _ := ann.score(first, "far")
	require.Equal(t, before+10, after, "what it can do is as it was said last")
	require.Equal(t, first, far.polled()[0].ID, "who can do more gets what waits")
	far.gets(nil, "DELETE /server/tasks/"+first, "")
	task := ann.create(needing)
	server, score := ann.matched(task)
	require.Equal(t, "far", server)
	require.Equal(t, after, score)

	path := "/servers/tasks/" + task
	near.misses(http.StatusForbidden, "denied", "POST "+path+"/start", "")
	require.Empty(t, near.polled())
	require.Equal(t, task, far.polled()[0].ID)
	far.gets(nil, "POST "+path+"/start", "")
	far.misses(http.StatusConflict, "conflict", "POST "+path+"/start", "")
	var helped hubTask
	far.gets(&helped, "POST "+path+"/help", `{"question":"Which?","context":{"n":1.0}}`)
	require.Equal(t, "needs_human", helped.Status)
	near.misses(http.StatusForbidden, "denied", "POST "+path+"/complete", `{"result":"mine"}`)
	far.misses(http.StatusConflict, "conflict", "POST "+path+"/complete", `{"result":"too early"}`)
	h.ask("inbox", "answer", helped.InterventionID, "the left one")
	h.kill()

	actors := h.open("near")
	require.Equal(t, "online", near.servers()["far"].Status)
	found := far.task(task)
	require.Equal(t, "running", found.Status, "what runs elsewhere goes on")
	require.Equal(t, "the left one", found.Help.Answer)
	require.Equal(t, `{"n":1.0}`, string(found.Help.Context))
	far.gets(nil, "POST "+path+"/complete", `{"result":"left"}`)
	require.Equal(t, `{"summary":"left","completed_by":"agent:far"}`, string(ann.task(task).Result))
	actors[0].quiet()
	require.Empty(t, actors[0].notices("task-assigned"))
	h.stop()
}

// A new key replaces the old one, at once or after a while, and keys can be revoked. Keys of
// other agents are not affected. All this holds after a restart. The audit names the credential.
//
// Rows.
func TestHubKeys(t *testing.T) {
	t.Parallel()
	h := newHub(t, listeners+quick+knowing("near", "rust", 1), "near")
	h.open("near")
	near := h.program("near")
	far := h.comes("far", "")
	fresh := h.withKey(h.ask("key", "rotate", "far"))
	far.misses(http.StatusUnauthorized, "unauthenticated", "GET /servers/tasks/poll", "")
	overlapping := h.withKey(h.ask("key", "rotate", "far", "--overlap", "1h"))
	for range 2 {
		for _, who := range []*visitor{near, fresh, overlapping} {
			require.Empty(t, who.polled())
		}
		far.misses(http.StatusUnauthorized, "unauthenticated", "GET /servers/tasks/poll", "")
		h.kill()
		h.open("near")
	}
	var issued wire.IssuedKey
	require.NoError(t, json.Unmarshal([]byte(h.ask("key", "issue", "near", "--json")), &issued))
	second := h.withKey(issued.Key)
	require.Empty(t, second.polled())
	h.ask("key", "revoke", issued.ID)
	second.misses(http.StatusUnauthorized, "unauthenticated", "GET /servers/tasks/poll", "")
	require.Empty(t, near.polled())
	h.stop()
	traced := 0
	for _, line := range h.audited() {
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
	h := newHub(t, listeners+quick+knowing("near", "rust", 1), "near")
	h.open("near")
	near, boss := h.program("near"), h.person()
	token := h.ask("key", "register")
	const many = 20
	errands := make([]errand, many)
	for i := range errands {
		errands[i] = errand{
			who: h.nobody(), request: "POST /api/v1/servers/register",
			body: registration(fmt.Sprint("far-", i), token, `,"repos":{"shop":{"path":"/srv/shop"}}`),
		}
	}
	var in []int
	for i, r := range h.atOnce(errands) {
		if r.status == http.StatusCreated {
			in = append(in, i)
			continue
		}
		require.Equal(t, http.StatusUnauthorized, r.status, r.text)
	}
	require.Len(t, in, 1)
	servers := near.servers()
	require.Len(t, servers, 2)
	name := fmt.Sprint("far-", in[0])
	require.JSONEq(t, `{"shop":{"path":"/srv/shop"}}`, string(servers[name].Repos))
	require.Equal(t, []string{events.ServerRegistered}, slices.DeleteFunc(kinds(h.story(), ""), func(kind string) bool { return kind != events.ServerRegistered }))

	task := boss.create(`{"title":"x","spec":"s","requirements":{"repo":"shop"}}`)
	_, why := boss.score(task, name)
	require.Equal(t, "no capabilities defined (disqualified)", why)
	server, _ := boss.matched(task)
	require.Empty(t, server)
	h.nobody().misses(http.StatusUnauthorized, "unauthenticated", "POST /servers/register", registration("other", "orcreg_wrong", ""))
	h.nobody().misses(http.StatusUnauthorized, "unauthenticated", "POST /servers/register", registration("other", h.ask("key", "register", "--name", "another"), ""))
	h.nobody().misses(http.StatusConflict, "conflict", "POST /servers/register", registration("near", h.ask("key", "register"), ""))
	h.stop()
}

// The routes that each kind of credential may use.
//
// Rows, T-54.
func TestHubDoors(t *testing.T) {
	t.Parallel()
	h := newHub(t, listeners+quick+knowing("one", "go", 1)+knowing("two", "ts", 1), "one", "two")
	h.open("one", "two")
	ann, viewer, one, two := h.person(), h.person("--role", "viewer"), h.program("one"), h.program("two")
	task := ann.create(wanting("x", "go"))
	ann.matched(task)
	const in, unknown, denied = http.StatusOK, http.StatusUnauthorized, http.StatusForbidden
	comers := []*visitor{
		ann, viewer, one, two, h.nobody(), h.withKey("orc_unknown"), h.visitor("Authorization", "Bearer x.y.z"),
		h.visitor("Authorization", "Bearer "+one.credential), h.visitor("X-API-Key", strings.TrimPrefix(ann.credential, "Bearer ")),
		h.visitor("X-API-Key", ""), h.visitor("Authorization", "Basic YW5uOmFubg=="),
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
				who.gets(nil, row.request, row.body)
				continue
			}
			who.misses(row.want[i], map[int]string{unknown: "unauthenticated", denied: "denied"}[row.want[i]], row.request, row.body)
		}
	}
	two.misses(denied, "denied", "POST /servers/tasks/"+task+"/start", "")
	two.misses(denied, "denied", "DELETE /server/tasks/"+task, "")
	h.ask("token", "revoke", "--yes", tokenOf(t, h, "operator"))
	ann.misses(unknown, "unauthenticated", "GET /tasks/"+task, "")
	require.Equal(t, "z", viewer.task(task).Title)
	h.stop()
}

// tokenOf returns the id of the token with a role.
func tokenOf(t *testing.T, h *hubTeam, role string) string {
	t.Helper()
	var list wire.CredentialList
	require.NoError(t, json.Unmarshal([]byte(h.ask("token", "ls", "--json")), &list))
	at := slices.IndexFunc(list.Credentials, func(c wire.Credential) bool { return c.Role == role })
	require.GreaterOrEqual(t, at, 0)
	return list.Credentials[at].ID
}
