package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// TestBusBodiesThatCannotBeRead checks that an unreadable body is refused in the same way on
// every route, without a call of the operation.
//
// Rows: E-06, E-21, K-06.
func TestBusBodiesThatCannotBeRead(t *testing.T) {
	h := buildHub(t, nil)
	for name, test := range map[string]struct {
		body   string
		header http.Header
		status int
		code   wire.Code
	}{
		"cut off":         {body: `{"topic":"x`, status: 400, code: wire.CodeMalformed},
		"no JSON":         {body: `topic=x`, status: 400, code: wire.CodeMalformed},
		"two objects":     {body: `{}{}`, status: 400, code: wire.CodeMalformed},
		"no UTF-8":        {body: "{\"topic\":\"\xff\"}", status: 400, code: wire.CodeMalformed},
		"null":            {body: `null`, status: 400, code: wire.CodeInvalid},
		"a list":          {body: `[{}]`, status: 400, code: wire.CodeInvalid},
		"deep":            {body: `{"x":` + strings.Repeat("[", 9) + strings.Repeat("]", 9) + `}`, status: 400, code: wire.CodeInvalid},
		"huge":            {body: `{"x":"` + strings.Repeat("x", 1<<16) + `"}`, status: 413, code: wire.CodeTooLarge},
		"plain text":      {body: `{}`, header: http.Header{"Content-Type": {"text/plain"}}, status: 415, code: wire.CodeMediaType},
		"another charset": {body: `{}`, header: http.Header{"Content-Type": {"application/json; charset=latin1"}}, status: 415, code: wire.CodeMediaType},
	} {
		for i := range busRoutes() {
			route := &busRoutes()[i]
			if !route.takesBody() {
				continue
			}
			by := h.at()
			by.header = test.header
			response, text := h.ask(t, by, route.method(), route.path(), test.body)
			requireRefused(t, response, text, test.status, test.code)
			asked, refused := h.taken()
			require.Empty(t, asked, "%s: %s", name, route.pattern)
			if test.code != wire.CodeMediaType { // checked before the operation is known
				require.Len(t, refused, 1, "%s: %s", name, route.pattern)
				require.Equal(t, route.operation, refused[0].operation)
			}
		}
	}
}

// busWrong maps each schema to bodies that the bus refuses, with the wrong place. The schema in the
// document accepts the ones that begin with !.
var busWrong = map[string]map[string]string{
	"bus.new-message": {
		``: "/from_actor",
		`{"to_actor":"GO","topic":"a","payload":{}}`:                                                           "/from_actor",
		`{"from_actor":null,"to_actor":"GO","topic":"a","payload":{}}`:                                         "/from_actor",
		`{"from_actor":"","to_actor":"GO","topic":"a","payload":{}}`:                                           "/from_actor",
		`{"from_actor":7,"to_actor":"GO","topic":"a","payload":{}}`:                                            "/from_actor",
		`!{"from_actor":"GO","from_actor":"HO:a","to_actor":"GO","topic":"a","payload":{}}`:                    "/from_actor",
		`{"from_actor":"HO:a","topic":"a","payload":{}}`:                                                       "/to_actor",
		`{"from_actor":"HO:a","to_actor":"??","topic":"a","payload":{}}`:                                       "/to_actor",
		`{"from_actor":"HO:a","to_actor":"Broad:cast","topic":"a","payload":{}}`:                               "/to_actor",
		`{"from_actor":"HO:a","to_actor":["GO"],"topic":"a","payload":{}}`:                                     "/to_actor",
		`{"from_actor":"HO:a","to_actor":"GO","payload":{}}`:                                                   "/topic",
		`{"from_actor":"HO:a","to_actor":"GO","topic":"","payload":{}}`:                                        "/topic",
		`{"from_actor":"HO:a","to_actor":"GO","topic":"a..b","payload":{}}`:                                    "/topic",
		`{"from_actor":"HO:a","to_actor":"GO","topic":"a\nid: 9","payload":{}}`:                                "/topic",
		`{"from_actor":"HO:a","to_actor":"GO","topic":"a\rb","payload":{}}`:                                    "/topic",
		`{"from_actor":"HO:a","to_actor":"GO","topic":"a.*","payload":{}}`:                                     "/topic",
		`{"from_actor":"HO:a","to_actor":"GO","topic":"` + strings.Repeat("a", 201) + `","payload":{}}`:        "/topic",
		`{"from_actor":"HO:a","to_actor":"GO","topic":"a"}`:                                                    "/payload",
		`{"from_actor":"HO:a","to_actor":"GO","topic":"a","payload":null}`:                                     "/payload",
		`{"from_actor":"HO:a","to_actor":"GO","topic":"a","payload":"x"}`:                                      "/payload",
		`{"from_actor":"HO:a","to_actor":"GO","topic":"a","payload":[]}`:                                       "/payload",
		`{"from_actor":"HO:a","to_actor":"GO","topic":"a","payload":{},"reply_to":0}`:                          "/reply_to",
		`{"from_actor":"HO:a","to_actor":"GO","topic":"a","payload":{},"reply_to":1.5}`:                        "/reply_to",
		`{"from_actor":"HO:a","to_actor":"GO","topic":"a","payload":{},"reply_to":"abc"}`:                      "/reply_to",
		`{"from_actor":"HO:a","to_actor":"GO","topic":"a","payload":{},"reply_to":""}`:                         "/reply_to",
		`{"from_actor":"HO:a","to_actor":"GO","topic":"a","payload":{},"idempotency_key":""}`:                  "/idempotency_key",
		`{"from_actor":"HO:a","to_actor":"GO","topic":"a","payload":{},"idempotency_key":7}`:                   "/idempotency_key",
		`!{"from_actor":"HO:a","to_actor":"GO","topic":"a","payload":{},"payload":{}}`:                         "/payload",
		`!{"from_actor":"HO:a","to_actor":"GO","topic":"a","payload":{},"idempotency_key":null,"reply_to":01}`: "",
	},
	"bus.ack": {
		``: "/seq", `{"actor":"GO"}`: "/seq", `{"seq":null}`: "/seq", `{"seq":-1}`: "/seq", `{"seq":1.5}`: "/seq", `{"seq":"7"}`: "/seq",
		`{"seq":9007199254740992}`: "/seq", `{"seq":7,"actor":"x"}`: "/actor", `{"seq":7,"actor":""}`: "/actor", `!{"seq":7,"seq":8}`: "/seq",
	},
	"bus.sign-of-life": {`{"actor":""}`: "/actor", `{"actor":"W"}`: "/actor", `{"actor":7}`: "/actor", `{"actor":"Governor"}`: "/actor"},
	"bus.new-token": {
		``: "/actor", `{}`: "/actor", `{"sub":"ann"}`: "/actor", `{"sub":"ann","role":"admin"}`: "/actor", `{"actor":null,"sub":"ann"}`: "/actor",
		`{"actor":""}`: "/actor", `{"actor":"Bus"}`: "/actor", `{"actor":"HO:a","sub":"ann"}`: "/sub", `{"actor":"HO:a","role":"viewer"}`: "/role",
		`{"actor":"HO:a","ttl":0}`: "/ttl", `{"actor":"HO:a","overlap":-1}`: "/overlap", `{"actor":"HO:a","ttl":"1h"}`: "/ttl",
	},
}

// TestBusBodiesThatAreWrong checks that an invalid body is refused with the wrong place, and
// that the document does not accept it either.
//
// Rows: E-11, E-12, E-13, E-14, E-15, E-21, E-64, E-75, E-76, K-06, T-36.
func TestBusBodiesThatAreWrong(t *testing.T) {
	h := buildHub(t, nil)
	met := 0
	for i := range busRoutes() {
		route := &busRoutes()[i]
		if route.read.schema == "" {
			continue
		}
		met++
		require.NotEmpty(t, busWrong[route.read.schema])
		for body, place := range busWrong[route.read.schema] {
			body, unsaid := strings.CutPrefix(body, "!")
			response, text := h.ask(t, h.at(), route.method(), route.path(), body)
			code := wire.CodeInvalid
			if place == "" {
				code = wire.CodeMalformed
			}
			require.Equal(t, place, requireRefused(t, response, text, http.StatusBadRequest, code), "%s: %s", body, text)
			if body != "" && !unsaid {
				require.False(t, h.document.mayBeSaid(t, route, body), "%s: %s", route.pattern, body)
			}
			asked, refused := h.taken()
			require.Empty(t, asked, body)
			require.Len(t, refused, 1)
		}
	}
	require.Len(t, busWrong, met)
}

// TestBusPayloadThatIsTooLarge checks that a payload has its own limit, below that of a body.
//
// Rows: E-14, E-21.
func TestBusPayloadThatIsTooLarge(t *testing.T) {
	h := buildHub(t, func(d *API) { d.MaxBody = 4 << 20 })
	send := func(more int) (*http.Response, string) {
		payload := `{"x":"` + strings.Repeat("x", mail.MaxPayload-len(`{"x":""}`)+more) + `"}`
		return h.ask(t, h.at(), http.MethodPost, "/api/bus/send", `{"from_actor":"HO:a","to_actor":"GO","topic":"a","payload":`+payload+`}`)
	}
	response, text := send(0)
	require.Equal(t, http.StatusOK, response.StatusCode, text)
	response, text = send(1)
	require.Equal(t, "/payload", requireRefused(t, response, text, http.StatusRequestEntityTooLarge, wire.CodeTooLarge))
}

// Rows: E-30, E-33, E-34, K-06.
func TestBusParameters(t *testing.T) {
	h := buildHub(t, nil)
	type place struct {
		code      wire.Code
		parameter any
	}
	of := func(name string) place { return place{wire.CodeInvalid, name} }
	both := map[string]place{
		"?actor=":                               of("actor"),
		"?actor=x":                              of("actor"),
		"?actor=W":                              of("actor"),
		"?actor=HO:":                            of("actor"),
		"?actor=HO:a%0ab":                       of("actor"),
		"?actor=HO:" + strings.Repeat("a", 200): of("actor"),
		"?actor=GO&actor=GO":                    of("actor"),
		"?actor=&actor=GO":                      of("actor"),
		"?cursor=":                              of("cursor"),
		"?cursor=abc":                           of("cursor"),
		"?cursor=-1":                            of("cursor"),
		"?cursor=%2B1":                          of("cursor"),
		"?cursor=1.0":                           of("cursor"),
		"?cursor=1e3":                           of("cursor"),
		"?cursor=0x1":                           of("cursor"),
		"?cursor=1_0":                           of("cursor"),
		"?cursor=+1":                            of("cursor"), // a space
		"?cursor=9007199254740992":              of("cursor"),
		"?cursor=99999999999999999999":          of("cursor"),
		"?cursor=1&cursor=1":                    of("cursor"),
		"?cursor=%zz":                           {wire.CodeMalformed, nil},
		"?cursor=1;actor=GO":                    {wire.CodeMalformed, nil},
		"?cursor=" + strings.Repeat("9", 1000) + "&": of("cursor"),
	}
	poll := map[string]place{
		"?limit=": of("limit"), "?limit=0": of("limit"), "?limit=10001": of("limit"), "?limit=-1": of("limit"), "?limit=ten": of("limit"),
		"?limit=1&limit=1": of("limit"), "?actor=GO&cursor=1&limit=1.5": of("limit"),
	}
	refuse := func(path string, header http.Header, want place) {
		by := h.at()
		by.header = header
		response, text := h.ask(t, by, http.MethodGet, path, "")
		requireRefused(t, response, text, http.StatusBadRequest, want.code)
		var refusal hubRefusal
		require.NoError(t, object.Decode([]byte(text), &refusal))
		require.Equal(t, want.parameter, refusal.Error.Details["parameter"], path)
		asked, refused := h.taken()
		require.Empty(t, asked, path)
		require.Len(t, refused, 1, path)
		require.Empty(t, h.post.taken(), path)
	}
	for query, want := range both {
		refuse("/api/bus/poll"+query, nil, want)
		refuse("/api/sse/events"+query, nil, want)
	}
	for query, want := range poll {
		refuse("/api/bus/poll"+query, nil, want)
	}
	for _, last := range [][]string{{""}, {"abc"}, {"-1"}, {"1.5"}, {"+1"}, {"9007199254740992"}, {"1", "1"}} {
		refuse("/api/sse/events?cursor=1", http.Header{"Last-Event-Id": last}, of("Last-Event-ID"))
	}
	for _, actor := range []string{"GO", "HO:a", "S:db:1", "Bus", "Governor", "broadcast"} { // their access is tested elsewhere
		response, text := h.ask(t, h.at(), http.MethodGet, "/api/bus/poll?actor="+actor, "")
		require.Equal(t, http.StatusOK, response.StatusCode, text)
	}
}
