package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/identity"
	"orchestrator/wire/mail"
)

const (
	ackedText = `{"actor":"HO:far","cursor":7}`
	beatText  = `{"actor":"HO:far","last_seen":"` + morning + `","heartbeat_ms":60000}`
	tokenText = `{"id":"a5","actor":"HO:far","token":"orc_secret"}`
)

// busBodies maps each schema of the bus to a valid body.
var busBodies = map[string]string{
	"bus.new-message": `{"from_actor":"HO:far","to_actor":"GO","topic":"task.completed","payload":{}}`,
	"bus.ack":         `{"seq":7}`, "bus.sign-of-life": ``, "bus.new-token": `{"actor":"HO:far"}`, "": ``,
}

func routeOfBus(t *testing.T, pattern string) *route {
	t.Helper()
	for i := range busRoutes() {
		if busRoutes()[i].pattern == pattern {
			return &busRoutes()[i]
		}
	}
	require.Fail(t, "there is no such route", pattern)
	return nil
}

// TestBusRoutes checks, for every route with an operation, the request to the operation and the
// exact response.
//
// Rows: E-06, E-10, E-15, E-16, E-18, E-22, E-30, E-33, E-34, E-36, E-37, E-64, E-76, E-82, T-36, T-37.
func TestBusRoutes(t *testing.T) {
	h := buildHub(t, nil)
	number := func(n int64) *int64 { return &n }
	message := func(change func(*wire.SendMessage)) *wire.SendMessage {
		m := &wire.SendMessage{From: "HO:far", To: "GO", Topic: "task.completed", Payload: wire.Raw(`{}`)}
		change(m)
		return m
	}
	to := func(members string) string {
		return `{"from_actor":"HO:far","to_actor":"GO","topic":"task.completed",` + members + `}`
	}
	seen := make(map[string]bool)
	for _, test := range []struct {
		route, query, body string
		said               any
		status             int
		want               string
	}{
		{"POST /api/bus/send", "", to(`"payload":{"idempotency_key":"k","n":1.50}`),
			message(func(m *wire.SendMessage) { m.Payload = wire.Raw(`{"idempotency_key":"k","n":1.50}`) }), 200, mailText},
		{"POST /api/bus/send", "?actor=GO", to(`"payload":{},"reply_to":42,"idempotency_key":"k"`),
			message(func(m *wire.SendMessage) { m.ReplyTo, m.Key = 42, "k" }), 200, mailText},
		{"POST /api/bus/send", "", to(`"payload":{},"reply_to":"42"`), message(func(m *wire.SendMessage) { m.ReplyTo = 42 }), 200, mailText},
		{"POST /api/bus/send", "", to(`"payload":{},"reply_to":null,"idempotency_key":null`), message(func(*wire.SendMessage) {}), 200, mailText},
		{"POST /api/bus/send", "", to(`"payload":{},"priority":[1]`), message(func(*wire.SendMessage) {}), 200, mailText},
		{"POST /api/bus/send", "", strings.Replace(to(`"payload":{}`), `"GO"`, `"broadcast"`, 1),
			message(func(m *wire.SendMessage) { m.To = "broadcast" }), 200, mailText},

		{"GET /api/bus/poll", "", "", &wire.PollMessages{}, 200, `[` + mailText + `]`},
		{"GET /api/bus/poll", "?actor=HO%3Afar&cursor=41&limit=1&other=x", "", &wire.PollMessages{Actor: "HO:far", Cursor: number(41), Limit: 1}, 200, `[` + mailText + `]`},
		{"GET /api/bus/poll", "?cursor=0&limit=10000", "", &wire.PollMessages{Cursor: number(0), Limit: 10000}, 200, `[` + mailText + `]`},
		{"GET /api/bus/poll", "?cursor=9007199254740991", "", &wire.PollMessages{Cursor: number(1<<53 - 1)}, 200, `[` + mailText + `]`},

		{"POST /api/bus/ack", "", `{"actor":"HO:far","seq":7}`, &wire.AckMessages{Actor: "HO:far", Seq: 7}, 200, ackedText},
		{"POST /api/bus/ack", "", `{"seq":0,"actor":null}`, &wire.AckMessages{}, 200, ackedText},

		{"POST /api/bus/heartbeat", "", `{"actor":"HO:far","load":0.1}`, &wire.Heartbeat{Actor: "HO:far"}, 200, beatText},
		{"POST /api/bus/heartbeat", "", ``, &wire.Heartbeat{}, 200, beatText},
		{"POST /api/bus/heartbeat", "", ` {} `, &wire.Heartbeat{}, 200, beatText},

		{"POST /api/agents/tokens", "", `{"actor":"HO:far"}`, &wire.IssueToken{Actor: "HO:far"}, 201, tokenText},
		{"POST /api/agents/tokens", "", `{"actor":"S:db:1","ttl":1000,"overlap":5,"sub":null,"role":null}`,
			&wire.IssueToken{Actor: "S:db:1", TTL: 1000, Overlap: 5}, 201, tokenText},
	} {
		route := routeOfBus(t, test.route)
		response, answer := h.ask(t, h.as(withToken("far")), route.method(), route.path()+test.query, test.body)
		require.Equal(t, test.status, response.StatusCode, "%s: %s", test.route, answer)
		require.Equal(t, test.want, answer, test.route)
		require.Equal(t, inJSON, response.Header.Get("Content-Type"))
		require.Empty(t, response.Header.Values("Bus-More"))
		asked, refused := h.taken()
		require.Empty(t, refused)
		require.Equal(t, []question{{from: identity.Caller{Kind: identity.Outsider, Name: "HO:far"}, operation: route.operation, body: test.said}}, asked, test.route)
		if strings.TrimSpace(test.body) != "" {
			require.True(t, h.document.mayBeSaid(t, route, test.body), "%s: %s", test.route, test.body)
		}
		seen[test.route] = true
	}
	require.Len(t, seen, len(busRoutes())-2, "each is asked, but for the stream and the health")
	require.Len(t, busRoutes(), 7)
}

// TestBusAnswers checks the less common responses.
//
// Rows: E-16, E-22, E-30, E-35, E-55, E-76, T-34.
func TestBusAnswers(t *testing.T) {
	h := buildHub(t, nil)
	reply := int64(3)
	answered := someMail(8)
	answered.ReplyTo = &reply
	cut := strings.TrimSuffix(mailText, "}")
	for _, test := range []struct {
		route  string
		answer any
		want   string
		more   string
	}{
		{"POST /api/bus/send", &mail.Sent{Message: someMail(7), Duplicate: true}, cut + `,"duplicate":true}`, ""},
		{"POST /api/bus/send", &mail.Sent{Message: someMail(7), Warnings: []string{"nobody knows it"}}, cut + `,"warnings":["nobody knows it"]}`, ""},
		{"GET /api/bus/poll", &mail.List{}, `[]`, ""},
		{"GET /api/bus/poll", &mail.List{Messages: []mail.Message{someMail(7), answered}, More: true},
			`[` + mailText + `,` + strings.NewReplacer(`"seq":7`, `"seq":8`, `"reply_to":null`, `"reply_to":3`).Replace(mailText) + `]`, "true"},
		{"POST /api/agents/tokens", &wire.IssuedToken{ID: "a5", Actor: "HO:far", Token: "orc_secret", IssuedAt: morning, ExpiresAt: morning},
			strings.TrimSuffix(tokenText, "}") + `,"expires_at":"` + morning + `"}`, ""},
	} {
		h.answer = func(question) (any, error) { return test.answer, nil }
		route := routeOfBus(t, test.route)
		query, next := "", ""
		if test.more != "" {
			query, next = "?limit=2&actor=HO%3Afar", `</api/bus/poll?actor=HO%3Afar&cursor=8&limit=2>; rel="next"`
		}
		for range 2 { // the same request again has the same answer
			response, text := h.ask(t, h.at(), route.method(), route.path()+query, busBodies[route.read.schema])
			require.Equal(t, next, response.Header.Get("Link"))
			require.Equal(t, route.write.status, response.StatusCode, text)
			require.Equal(t, test.want, text)
			require.Equal(t, test.more, response.Header.Get("Bus-More"))
		}
	}
	for _, answer := range []any{nil, 7, &wire.Nothing{}, mail.Sent{}, (*mail.Sent)(nil)} {
		h.answer = func(question) (any, error) { return answer, nil }
		response, text := h.ask(t, h.at(), http.MethodPost, "/api/bus/send", busBodies["bus.new-message"])
		requireRefused(t, response, text, http.StatusInternalServerError, wire.CodeInternal)
	}
}

// HEAD is GET without the body.
func TestBusHead(t *testing.T) {
	h := buildHub(t, nil)
	for path, body := range map[string]string{"/api/bus/poll": `[` + mailText + `]`, "/health": `{"protocol_version":"1.0"}`} {
		response, none := h.ask(t, h.at(), http.MethodHead, path, "")
		require.Equal(t, http.StatusOK, response.StatusCode, path)
		require.Empty(t, none)
		require.Equal(t, strconv.Itoa(len(body)+1), response.Header.Get("Content-Length"))
	}
	response, none := h.ask(t, h.at(), http.MethodHead, "/api/sse/events", "")
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, inEvents, response.Header.Get("Content-Type"))
	require.Empty(t, none)
	require.Len(t, h.post.taken(), 1, "whether it may be read is asked all the same")
}

// TestBusHealth checks that every caller gets only the version.
//
// Rows: E-79, E-80, E-83.
func TestBusHealth(t *testing.T) {
	h := buildHub(t, nil)
	for _, header := range []http.Header{nil, withToken("far"), {"Authorization": {"Bearer garbage"}}, {"Authorization": {""}}, {"X-Api-Key": {"orc_unknown"}}} {
		response, text := h.ask(t, h.as(header), http.MethodGet, "/health?x=1", "")
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.Equal(t, `{"protocol_version":"1.0"}`, text)
	}
	asked, refused := h.taken()
	require.Empty(t, asked)
	require.Empty(t, refused)
}

// TestBusRefusals checks how the bus encodes refusals of operations. A sender retries only at
// status 500 and above.
//
// Rows: E-06, E-12, E-19, E-20, E-32, E-57, K-06, T-35, T-41.
func TestBusRefusals(t *testing.T) {
	h := buildHub(t, nil)
	at := func(pointer string) map[string]any { return map[string]any{"pointer": pointer, "n": 1} }
	for _, test := range []struct {
		refusal error
		status  int
		want    string
	}{
		{&wire.Error{Code: wire.CodeInvalid, Message: "no topic", Details: at("/payload/topic")}, 400,
			`{"error":{"code":"invalid","message":"no topic","details":{"n":1,"pointer":"/topic"},"recoverable":false},"detail":"no topic"}`},
		{&wire.Error{Code: wire.CodeInvalid, Message: "no seq", Details: at("/payload/seq")}, 400,
			`{"error":{"code":"invalid","message":"no seq","details":{"n":1,"pointer":"/seq"},"recoverable":false},"detail":"no seq"}`},
		{&wire.Error{Code: wire.CodeInvalid, Message: "no payload", Details: at("/payload/payload/x")}, 400,
			`{"error":{"code":"invalid","message":"no payload","details":{"n":1,"pointer":"/payload/x"},"recoverable":false},"detail":"no payload"}`},
		{&wire.Error{Code: wire.CodeUnauthenticated, Message: "who?"}, 401,
			`{"error":{"code":"unauthenticated","message":"who?","details":{},"recoverable":false},"detail":"who?"}`},
		{&wire.Error{Code: wire.CodeDenied, Message: "not you", Details: at("/payload/from_actor"), Hint: "ask them"}, 403,
			`{"error":{"code":"denied","message":"not you","details":{"n":1,"pointer":"/from_actor"},"recoverable":false,"hint":"ask them"},"detail":"not you"}`},
		{&wire.Error{Code: wire.CodeNotFound, Message: "none"}, 404,
			`{"error":{"code":"not_found","message":"none","details":{},"recoverable":false},"detail":"none"}`},
		{&wire.Error{Code: wire.CodeUnknownType, Message: "no operation"}, 404,
			`{"error":{"code":"unknown_type","message":"no operation","details":{},"recoverable":false},"detail":"no operation"}`},
		{&wire.Error{Code: wire.CodeConflict, Message: "no more", Details: at("/n")}, 409,
			`{"error":{"code":"conflict","message":"no more","details":{"n":1,"pointer":"/n"},"recoverable":false},"detail":"no more"}`},
		{&wire.Error{Code: wire.CodeTooLarge, Message: "too much"}, 413,
			`{"error":{"code":"too_large","message":"too much","details":{},"recoverable":false},"detail":"too much"}`},
		{&wire.Error{Code: wire.CodeLimited, Message: "later"}, 429,
			`{"error":{"code":"limited","message":"later","details":{},"recoverable":true},"detail":"later"}`},
		{&wire.Error{Code: wire.CodeInternal, Message: "the record is broken"}, 500,
			`{"error":{"code":"internal","message":"the record is broken","details":{},"recoverable":true},"detail":"the record is broken"}`},
		{errors.New("the password is hunter2"), 500,
			`{"error":{"code":"internal","message":"internal error; see the orchestrator's log","details":{},"recoverable":true},"detail":"internal error; see the orchestrator's log"}`},
		{&wire.Error{Code: wire.CodeTimeout, Message: "too late"}, 504,
			`{"error":{"code":"timeout","message":"too late","details":{},"recoverable":true},"detail":"too late"}`},
	} {
		h.answer = func(question) (any, error) { return nil, test.refusal }
		h.post.refuse = test.refusal
		for i := range busRoutes() {
			route := &busRoutes()[i]
			if route.access == Public || !route.takesBody() && (test.status == 409 || test.status == 413) {
				continue
			}
			response, text := h.ask(t, h.at(), route.method(), route.path(), busBodies[route.read.schema])
			require.Equal(t, test.status, response.StatusCode, "%s: %s", route.pattern, text)
			require.Equal(t, test.want, text, route.pattern)
			require.Equal(t, map[bool]string{true: busPause}[test.status == 429], response.Header.Get("Retry-After"))
			require.Equal(t, test.status == 401, response.Header.Get("WWW-Authenticate") != "")
		}
		_, refused := h.taken()
		refused = slices.DeleteFunc(refused, func(q question) bool { return q.operation == "follow-messages" }) // a stream is no decision
		require.Empty(t, refused, "whoever decided has noted it")
	}
}

// TestBusWhereNothingIs checks unknown paths and methods of the bus.
//
// Rows: E-23, K-06.
func TestBusWhereNothingIs(t *testing.T) {
	h := buildHub(t, nil)
	for _, path := range []string{
		"/api/bus", "/api/bus/", "/api/bus/nope", "/api/bus/send/", "/api/bus//send", "/api/bus/./send", "/api/bus/../bus/send",
		"/api/sse", "/api/sse/events/7", "/api/agents", "/api/agents/tokens/a5", "/health/", "/health/x",
	} {
		for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS"} {
			response, text := h.raw(t, method+" "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
			require.Empty(t, response.Header.Get("Allow"), "%s %s", method, path)
			requireRefused(t, response, text, http.StatusNotFound, wire.CodeNotFound)
		}
	}
	for _, path := range []string{"/healthz", "/api/buses", "/api/agentsx/tokens", "/api/v1/bus/send"} {
		response, text := h.at().do(t, http.MethodGet, path, "")
		require.Equal(t, http.StatusNotFound, response.StatusCode)
		require.NotContains(t, text, `"detail"`, "that is no path of the bus")
	}
	for i := range busRoutes() {
		route := &busRoutes()[i]
		allow := map[string]string{"GET": "GET, HEAD", "POST": "POST"}[route.method()]
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"} {
			if method == "HEAD" || strings.Contains(allow, method) {
				continue
			}
			response, text := h.ask(t, h.as(nil), method, route.path(), "")
			requireRefused(t, response, text, http.StatusMethodNotAllowed, codeMethod)
			require.Equal(t, allow, response.Header.Get("Allow"), "%s %s", method, route.path())
		}
	}
	asked, _ := h.taken()
	require.Empty(t, asked)
}

// TestBusIsEncrypted checks that the bus is served only over current TLS versions, and only
// under its own host names.
//
// Rows: E-04, E-05, K-19.
func TestBusIsEncrypted(t *testing.T) {
	guard, pool := certified(t)
	h := build(t, nil, guard)
	by := func(most uint16) asks {
		secure := &tls.Config{RootCAs: pool, MaxVersion: most}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: secure, DisableKeepAlives: true}}
		return asks{client: client, url: h.tcp.URL(), header: http.Header{"Authorization": {"Bearer orc_far"}}}
	}
	response, text := by(0).do(t, http.MethodGet, "/api/bus/poll", "")
	require.Equal(t, http.StatusOK, response.StatusCode, text)
	require.EqualValues(t, tls.VersionTLS13, response.TLS.Version)
	_, err := by(tls.VersionTLS12).client.Get(h.tcp.URL() + "/health")
	require.ErrorContains(t, err, "protocol version")

	elsewhere := by(0)
	elsewhere.header = http.Header{"Host": {"evil.example"}}
	response, text = elsewhere.do(t, http.MethodGet, "/health", "")
	requireRefused(t, response, text, http.StatusForbidden, wire.CodeDenied)
}

// TestBusAccess checks who may call each route of the bus. Which mail a caller may read is
// decided elsewhere; here only the caller that is passed on is checked.
//
// Rows: E-05, E-76, E-79, K-06, K-18.
func TestBusAccess(t *testing.T) {
	h := buildHub(t, nil)
	for _, c := range h.comers(t) {
		for i := range busRoutes() {
			route := &busRoutes()[i]
			want := route.write.status
			switch {
			case route.access == Public:
			case c.from.Kind == identity.Unknown:
				want = http.StatusUnauthorized
			case c.from.Role == wire.PersonViewer && route.takesBody():
				want = http.StatusForbidden
			case c.from.Role == wire.PersonOperator && route.operation == "issue-token": // for administrators
				want = http.StatusForbidden
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
				require.Len(t, refused, 1)
				require.Equal(t, route.operation, refused[0].operation)
			}
		}
	}
	require.Empty(t, h.post.taken())
}

// TestCorrespondents checks that an external actor is neither an agent nor a person. It may call
// only the bus and the operations for actors.
//
// Rows: E-05, E-19, K-18.
func TestCorrespondents(t *testing.T) {
	h := buildHub(t, func(d *API) {
		d.Operations = map[string]Operation{
			"poll-messages": whoAsks, "send-message": whoAsks, "add-note": whoAsks, "list-keys": whoAsks, "create-session": whoAsks,
		}
		d.Streams = map[string]Stream{
			"list-actors": DoLines(func(_ context.Context, _ struct{}, send func(any) error) error { return send(1) }),
			"down":        DoLines(func(_ context.Context, _ struct{}, send func(any) error) error { return send(1) }),
		}
		d.Pipes = map[string]Pipe{"pipe": nil}
	})
	for _, socket := range []string{"", h.socket} {
		by := asks{client: over(socket), header: withToken("far")}
		if socket == "" {
			by.url = h.tcp.URL()
		}
		for pattern, want := range map[string]int{
			"POST /api/v1/operations/poll-messages": 200, "POST /api/v1/operations/send-message": 200, "POST /api/v1/operations/add-note": 403,
			"POST /api/v1/operations/list-keys": 403, "POST /api/v1/operations/create-session": 403, "POST /api/v1/operations/list-actors": 200, "POST /api/v1/operations/down": 403,
			"POST /api/v1/operations/nope": 404, "GET /api/v1/events": 403, "POST /api/v1/pipe": 403, "GET /openapi.json": 200,
			"GET /api/v1/tasks/t-1": 401, "POST /api/v1/tasks": 401, "GET /api/v1/server/tasks": 401, "POST /api/v1/server/tasks": 401, "GET /api/v1/servers/tasks/poll": 401,
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
		d := &API{Operations: map[string]Operation{"list-keys": whoAsks}, Callers: &fakeCallers{actor: h.door.Callers.ActorOf}}
		visitAs(t, identity.Caller{}, d, func(t *testing.T, c *http.Client, _ *pipes) {
			status, _ := asks{client: c, header: http.Header{"X-Api-Key": {key}}}.post(t, "operations/list-keys", "")
			require.Equal(t, map[string]int{"orc_c_far": 403, "orc_nobody": 401}[key], status)
		})
	}
}

// TestAgentsComeBeforeActors checks that a key of an agent stays one, even if an actor has the
// same.
func TestAgentsComeBeforeActors(t *testing.T) {
	d := &API{Callers: &fakeCallers{
		agent: func(key string) (name string, ok bool) { return "coder", key == "orc_a" },
		actor: func(string) (id string, ok bool) { return "GO", true },
	}}
	c, _, err := d.bearer("orc_a")
	require.NoError(t, err)
	require.Equal(t, identity.Caller{Kind: identity.Agent, Name: "coder"}, c.who)
	c, _, err = d.bearer("orc_b")
	require.NoError(t, err)
	require.Equal(t, identity.Caller{Kind: identity.Outsider, Name: "GO"}, c.who)
	require.NotContains(t, fmt.Sprintf("%+v", c), "orc_b")
}

// TestBusTooOften checks that each actor has its own rate limit, and learns when to retry.
//
// Rows: E-57, K-06.
func TestBusTooOften(t *testing.T) {
	d := &API{Rate: 1, Callers: &fakeCallers{do: new(hearsay).do, actor: func(token string) (id string, ok bool) { return token, true }}}
	visitAs(t, identity.Caller{}, d, func(t *testing.T, c *http.Client, _ *pipes) {
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
