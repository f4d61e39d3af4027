package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/identity"
)

// ways lists the paths that callers try; a row of the test has a status for each of them. 200 also
// means 201.
var ways = []struct{ method, path string }{
	{"GET", "/api/v1/tasks/t-1"},
	{"POST", "/api/v1/tasks"},
	{"GET", "/api/v1/server/tasks"},
	{"POST", "/api/v1/server/tasks"},
	{"GET", "/api/bus/poll"},
	{"POST", "/api/bus/heartbeat"},
	{"POST", "/api/v1/servers/register"},
	{"POST", "/api/v1/operations/poll-messages"},  // for operators, agents and actors; reads
	{"POST", "/api/v1/operations/send-message"},   // for operators, agents and actors; writes
	{"POST", "/api/v1/operations/query-tasks"},    // for operators and agents; reads
	{"POST", "/api/v1/operations/add-note"},       // for operators and agents; writes
	{"POST", "/api/v1/operations/list-keys"},      // for operators; reads
	{"POST", "/api/v1/operations/create-session"}, // for operators; writes
	{"POST", "/api/v1/operations/status"},         // for operators; reads, and Ask does not perform it
	{"POST", "/api/v1/operations/reload"},         // for operators; writes, and Ask does not perform it
	{"POST", "/api/v1/operations/invented"},       // not declared, so for operators; writes
	{"GET", "/api/v1/events"},
}

// wayBodies has the bodies of the paths that require one.
var wayBodies = map[string]string{
	"/api/v1/tasks": bodies["hub.new-task"], "/api/v1/server/tasks": bodies["hub.new-task"],
	"/api/v1/servers/register": bodies["hub.registration"],
}

// TestCallers checks, for each listener and credential, which paths are allowed and as which
// caller.
//
// Rows, K-06, K-18.
func TestCallers(t *testing.T) {
	h := build(t, func(d *API) {
		d.Operations = map[string]Operation{"status": whoAsks, "reload": whoAsks, "invented": whoAsks}
	}, TCP{})
	env, _ := h.run(t, "run-1")
	other, _ := h.run(t, "run-2")
	stranger, shut, err := h.door.Runs.Open("reviewer", "run-3", 0)
	require.NoError(t, err)
	defer shut()
	past, err := h.door.Signer.Sign(Claims{ID: "t", Subject: "ann", Role: wire.PersonAdmin, ExpiresAt: time.Unix(1, 0)})
	require.NoError(t, err)
	elsewhere, err := signer(t).Sign(claims())
	require.NoError(t, err)
	key := func(values ...string) http.Header { return http.Header{"X-Api-Key": values} }
	bearer := func(text string) http.Header { return http.Header{"Authorization": {"Bearer " + text}} }
	both := func(k, text string) http.Header {
		return http.Header{"X-Api-Key": {k}, "Authorization": {"Bearer " + text}}
	}
	operator, viewer := h.token(t, wire.PersonOperator), h.token(t, wire.PersonViewer)

	const tcp = ""
	nobody := []int{401, 401, 401, 401, 401, 401, 200, 401, 401, 401, 401, 401, 401, 401, 401, 401, 401}
	agent := []int{401, 401, 200, 200, 200, 200, 200, 200, 200, 200, 200, 403, 403, 403, 403, 403, 403}
	person := []int{200, 200, 401, 401, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200}
	looker := []int{200, 403, 401, 401, 200, 403, 200, 200, 403, 200, 403, 200, 403, 200, 403, 403, 200}
	owner := []int{200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200}
	actor := []int{401, 401, 401, 401, 200, 200, 200, 200, 200, 403, 403, 403, 403, 403, 403, 403, 403}
	not := []int{403, 403, 403, 403, 403, 403, 200, 403, 403, 403, 403, 403, 403, 403, 403, 403, 403}
	for _, test := range []struct {
		name, socket string
		header       http.Header
		want         []int
		as           string
	}{
		{"tcp: nothing", tcp, nil, nobody, ""},
		{"tcp: key", tcp, key("orc_coder"), agent, "2/coder///false"},
		{"tcp: key as bearer", tcp, bearer("orc_coder"), agent, "2/coder///false"},
		{"tcp: bearer in small letters", tcp, http.Header{"Authorization": {"bearer  orc_coder "}}, agent, "2/coder///false"},
		{"tcp: the same key twice", tcp, both("orc_coder", "orc_coder"), agent, "2/coder///false"},
		{"tcp: a run's token", tcp, key(env[EnvToken]), agent, "2/coder/run-1//false"},
		{"tcp: a run's token as bearer", tcp, bearer(other[EnvToken]), agent, "2/coder/run-2//false"},
		{"tcp: operator", tcp, bearer(operator), person, "1/ann//operator/false"},
		{"tcp: admin", tcp, bearer(h.token(t, wire.PersonAdmin)), person, "1/ann//admin/false"},
		{"tcp: viewer", tcp, bearer(viewer), looker, "1/ann//viewer/false"},
		{"tcp: an actor's token", tcp, bearer("orc_far"), actor, "3/HO:far///false"},
		{"tcp: an actor's token as key", tcp, key("orc_far"), actor, "3/HO:far///false"},
		{"tcp: an actor's token and a key", tcp, both("orc_coder", "orc_far"), nobody, ""},
		{"tcp: empty key", tcp, key(""), nobody, ""},
		{"tcp: blank key", tcp, key(" "), nobody, ""},
		{"tcp: prefix alone", tcp, key("orc_"), nobody, ""},
		{"tcp: no key of ours", tcp, key("sk_coder"), nobody, ""},
		{"tcp: odd letters", tcp, key("orc_co\x80der"), nobody, ""},
		{"tcp: huge key", tcp, key(fmt.Sprintf("orc_%0300d", 1)), nobody, ""},
		{"tcp: unknown key", tcp, key("orc_nobody"), nobody, ""},
		{"tcp: unknown key as bearer", tcp, bearer("orc_nobody"), nobody, ""},
		{"tcp: token as key", tcp, key(operator), nobody, ""},
		{"tcp: empty bearer", tcp, bearer(""), nobody, ""},
		{"tcp: empty authorization", tcp, http.Header{"Authorization": {""}}, nobody, ""},
		{"tcp: password", tcp, http.Header{"Authorization": {"Basic YTpi"}}, nobody, ""},
		{"tcp: a bare token", tcp, http.Header{"Authorization": {operator}}, nobody, ""},
		{"tcp: expired", tcp, bearer(past), nobody, ""},
		{"tcp: another orchestrator's", tcp, bearer(elsewhere), nobody, ""},
		{"tcp: garbage", tcp, bearer("x.y.z"), nobody, ""},
		{"tcp: key and token", tcp, both("orc_coder", operator), nobody, ""},
		{"tcp: key and empty bearer", tcp, both("orc_coder", ""), nobody, ""},
		{"tcp: two keys", tcp, key("orc_coder", env[EnvToken]), nobody, ""},
		{"tcp: two tokens", tcp, http.Header{"Authorization": {"Bearer " + operator, "Bearer " + viewer}}, nobody, ""},

		{"operators: nothing", h.socket, nil, owner, "1////true"},
		{"operators: key", h.socket, key("orc_coder"), agent, "2/coder///false"},
		{"operators: a run's token", h.socket, key(env[EnvToken]), agent, "2/coder/run-1//false"},
		{"operators: an actor's token", h.socket, bearer("orc_far"), actor, "3/HO:far///false"},
		{"operators: token", h.socket, bearer(operator), person, "1/ann//operator/false"},
		{"operators: viewer", h.socket, bearer(viewer), looker, "1/ann//viewer/false"},
		{"operators: empty key", h.socket, key(""), nobody, ""},
		{"operators: unknown key", h.socket, key("orc_nobody"), nobody, ""},
		{"operators: expired", h.socket, bearer(past), nobody, ""},

		{"own: nothing", env[EnvSocket], nil, agent, "2/coder/run-1//false"},
		{"own: its token", env[EnvSocket], key(env[EnvToken]), agent, "2/coder/run-1//false"},
		{"own: its agent's key", env[EnvSocket], key("orc_coder"), agent, "2/coder/run-1//false"},
		{"own: another run's token", env[EnvSocket], key(other[EnvToken]), not, ""},
		{"own: another agent's token", env[EnvSocket], key(stranger[0][len(EnvToken)+1:]), not, ""},
		{"own: an actor's token", env[EnvSocket], bearer("orc_far"), not, ""},
		{"own: operator", env[EnvSocket], bearer(operator), not, ""},
		{"own: unknown key", env[EnvSocket], key("orc_nobody"), nobody, ""},
		{"own: empty key", env[EnvSocket], key(""), nobody, ""},
	} {
		a := asks{client: over(test.socket), header: test.header}
		if test.socket == tcp {
			a.url = h.tcp.URL()
		}
		for i, way := range ways {
			response, text := a.do(t, way.method, way.path, wayBodies[way.path])
			status := response.StatusCode
			if status == http.StatusCreated {
				status = http.StatusOK
			}
			require.Equal(t, test.want[i], status, "%s: %s %s: %s", test.name, way.method, way.path, text)
			asked, _ := h.taken()
			if status != http.StatusOK {
				require.Empty(t, asked, "%s: %s %s", test.name, way.method, way.path)
				continue
			}
			if ofPassages(way.path) {
				require.Len(t, asked, 1, "%s: %s %s", test.name, way.method, way.path)
				text = fmt.Sprintf("%q", spell(asked[0].from))
			}
			as := test.as
			switch way.path {
			case "/api/v1/servers/register":
				as = "0////false" // no caller: no question was asked
			case "/api/v1/server/tasks":
				as = strings.Replace(as, "false", "true", 1) // agents manage the tasks of other agents there
			}
			require.Equal(t, fmt.Sprintf("%q", as), text, "%s: %s %s", test.name, way.method, way.path)
		}
	}
}

// TestUnknownListener checks that a request on an unknown listener has no identity.
func TestUnknownListener(t *testing.T) {
	d := &API{Operations: map[string]Operation{"poll-messages": whoAsks}}
	visitAs(t, identity.Caller{}, d, func(t *testing.T, c *http.Client, _ *pipes) {
		status, _ := asks{client: c}.post(t, "operations/poll-messages", "")
		require.Equal(t, http.StatusUnauthorized, status)
		status, text := asks{client: c, header: http.Header{"Authorization": {"Bearer x.y.z"}}}.post(t, "operations/poll-messages", "")
		require.Equal(t, http.StatusUnauthorized, status)
		require.Contains(t, text, "not accepted here")
		status, _ = asks{client: c, header: http.Header{"X-Api-Key": {"orc_x"}}}.post(t, "operations/poll-messages", "")
		require.Equal(t, http.StatusUnauthorized, status)
	})
	require.Equal(t, identity.Caller{}, entranceOf(t.Context()).caller)
}

func TestCallersInWords(t *testing.T) {
	for want, c := range map[string]identity.Caller{
		"unknown":      {},
		"an operator":  {Kind: identity.Operator},
		"operator ann": {Kind: identity.Operator, Name: "ann"},
		"agent coder":  {Kind: identity.Agent, Name: "coder", Run: "r"},
		"actor HO:far": {Kind: identity.Outsider, Name: "HO:far"},
	} {
		require.Equal(t, want, displayName(c))
	}
}

// Rows: A-164, K-06.
func TestContentTypes(t *testing.T) {
	h := build(t, nil, TCP{})
	for value, good := range map[string]bool{
		"application/json":                  true,
		"application/json; charset=utf-8":   true,
		"Application/JSON;charset=UTF-8":    true,
		`application/json; charset="utf-8"`: true,
		"application/json; charset=latin1":  false,
		"application/json; charset=":        false,
		"application/jsonl":                 false,
		"application/vnd.x+json":            false,
		"application/x-www-form-urlencoded": false,
		"text/plain":                        false,
		"text/plain, application/json":      false,
		"multipart/form-data; boundary=x":   false,
		"json":                              false,
		"":                                  false,
	} {
		for _, way := range []asks{{client: over(""), url: h.tcp.URL()}, {client: over(h.socket)}} {
			for path, test := range map[string]struct {
				body          string
				status, empty int
			}{
				"operations/poll-messages": {"{}", http.StatusOK, http.StatusOK},
				"servers/tasks/t-1/fail":   {"{}", http.StatusOK, http.StatusOK},
				"servers/register":         {bodies["hub.registration"], http.StatusCreated, http.StatusUnprocessableEntity},
			} {
				way.header = http.Header{"X-Api-Key": {"orc_coder"}, "Content-Type": {value}}
				status, text := way.post(t, path, test.body)
				want := test.status
				if !good {
					want = http.StatusUnsupportedMediaType
					require.Contains(t, text, `"code":"media_type"`)
				}
				require.Equal(t, want, status, "%q at %s: %s", value, path, text)
				status, _ = way.post(t, path, "")
				require.Equal(t, test.empty, status, "without a body there is nothing to read")
			}
		}
	}
	a := asks{client: over(""), url: h.tcp.URL(), header: http.Header{"X-Api-Key": {"orc_coder"}}}
	status, _ := a.post(t, "operations/poll-messages", "{}")
	require.Equal(t, http.StatusOK, status, "who says nothing says JSON")
	a.header["Content-Type"] = []string{"application/json", "text/plain"}
	status, _ = a.post(t, "operations/poll-messages", "{}")
	require.Equal(t, http.StatusUnsupportedMediaType, status)
	delete(a.header, "Content-Type")
	a.header["Content-Encoding"] = []string{"gzip"}
	status, _ = a.post(t, "operations/poll-messages", "{}")
	require.Equal(t, http.StatusUnsupportedMediaType, status)
}

// Rows: A-164, K-06.
func TestBodyThatIsTooLarge(t *testing.T) {
	h := build(t, nil, TCP{})
	a := asks{client: over(""), url: h.tcp.URL(), header: http.Header{"X-Api-Key": {"orc_coder"}}}
	status, _ := a.post(t, "operations/poll-messages", "{}"+strings.Repeat(" ", 1<<10-2))
	require.Equal(t, http.StatusOK, status)
	status, text := a.post(t, "operations/poll-messages", "{}"+strings.Repeat(" ", 1<<10-1))
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	require.Contains(t, text, `"code":"too_large"`)
}

// TestStrangersBodyIsNotRead checks that the body of an unauthenticated caller is not read.
//
// Rows: S-15.
func TestStrangersBodyIsNotRead(t *testing.T) {
	h := build(t, nil, TCP{})
	request, err := http.NewRequest(http.MethodPost, h.tcp.URL()+"/api/v1/tasks", neverRead{t})
	require.NoError(t, err)
	request.ContentLength = 1 << 20
	request.Header.Set("Expect", "100-continue")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: 1 << 40}}
	response, err := client.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusUnauthorized, response.StatusCode)
}

type neverRead struct{ t *testing.T }

func (n neverRead) Read([]byte) (int, error) {
	n.t.Error("the door has asked for it")
	return 0, http.ErrBodyNotAllowed
}

// TestGrantsAreForAdministrators checks that a person with a token needs the role admin for the
// operations that grant access. The token of a person is signed; the token of an actor is not.
func TestGrantsAreForAdministrators(t *testing.T) {
	issued := wire.IssuedToken{ID: "t", Subject: "ann", Role: wire.PersonViewer, IssuedAt: "2026-11-21T14:00:00Z", ExpiresAt: "2126-11-21T14:00:00Z"}
	d := &API{Signer: signer(t), Callers: &fakeCallers{ask: func(context.Context, identity.Caller, string, []byte) (any, error) { return &issued, nil }}}
	require.ElementsMatch(t, []string{"issue-key", "rotate-key", "revoke-key", "issue-registration", "issue-token", "revoke-token"}, granting)
	for role, may := range map[string]bool{"": true, wire.PersonAdmin: true, wire.PersonOperator: false, wire.PersonViewer: false} {
		for _, name := range append([]string{"get-task"}, granting...) {
			err := mayAsk(identity.Caller{Kind: identity.Operator, Role: role}, name)
			require.Equal(t, may || name == "get-task", err == nil, "%s %s", role, name)
		}
	}
	answer, err := d.ask(t.Context(), "issue-token", nil)
	require.NoError(t, err)
	require.NotEmpty(t, answer.(*wire.IssuedToken).Token)
	require.Empty(t, issued.Token, "the answer of the operation is unchanged")
	issued.Actor = "HO:far"
	answer, err = d.ask(t.Context(), "issue-token", nil)
	require.NoError(t, err)
	require.Empty(t, answer.(*wire.IssuedToken).Token)
}
