package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"orchestrator/wire"
	"orchestrator/wire/schema"
)

// everything returns an API with one of every kind of route.
func everything() *API {
	operation := Do(func(context.Context, struct{}) (any, error) { return nil, nil })
	return &API{
		Log: hclog.NewNullLogger(), Version: "1.2.3",
		Operations: map[string]Operation{"status": operation, "new": operation},
		Streams:    map[string]Stream{"down": nil},
		Lists:      map[string]List{"events": nil, "logs": nil, "others": nil},
		Pipes:      map[string]Pipe{"pipe": nil},
		Metrics:    func(context.Context, io.Writer) error { return nil },
		SignIns:    new(SignIns), Pages: http.NotFoundHandler(),
		Callers: &fakeCallers{do: new(hearsay).do, mail: newPost().open},
	}
}

// patterns returns all patterns of an API.
func patterns(d *API) (found []string) {
	d.mount(func(pattern string, _ func(http.ResponseWriter, *http.Request)) { found = append(found, pattern) })
	return found
}

// TestOpenAPIIsValid checks that another library reads the document as OpenAPI 3.1, with every
// schema.
//
// Rows: A-164, K-06.
func TestOpenAPIIsValid(t *testing.T) {
	for _, d := range []*API{everything(), {Log: hclog.NewNullLogger()}} {
		text, err := d.describe()
		require.NoError(t, err)
		loader := openapi3.NewLoader()
		loader.IsExternalRefsAllowed = false
		doc, err := loader.LoadFromData(text)
		require.NoError(t, err)
		require.True(t, doc.IsOpenAPI31OrLater())
		require.NoError(t, doc.Validate(t.Context(), openapi3.IsOpenAPI31OrLater(), openapi3.EnableExamplesValidation()))
	}
}

// TestOpenAPISchemas checks that every schema compiles with its references, and accepts its
// examples.
func TestOpenAPISchemas(t *testing.T) {
	d := readDocument(t, everything())
	schemas := d.value["components"].(map[string]any)["schemas"].(map[string]any)
	for _, name := range schema.Names() {
		require.Contains(t, schemas, component(name))
	}
	for name, text := range schemas {
		schema := d.schema(t, "components", "schemas", name)
		require.NotContains(t, text, "$id")
		require.NotEmpty(t, text.(map[string]any)["title"], name)
		examples, _ := text.(map[string]any)["examples"].([]any)
		for _, example := range examples {
			require.NoError(t, schema.Validate(example), name)
		}
	}
	require.NotContains(t, string(d.text), `"urn:`)
	refers := regexp.MustCompile(`"\$ref":"([^"]*)"`).FindAllStringSubmatch(string(d.text), -1)
	require.NotEmpty(t, refers)
	for _, match := range refers {
		place, err := url.PathUnescape(strings.TrimPrefix(match[1], "#/"))
		require.NoError(t, err)
		d.schema(t, strings.Split(place, "/")...)
	}
}

// TestOpenAPIHasEveryRoute checks that exactly the existing routes are described.
func TestOpenAPIHasEveryRoute(t *testing.T) {
	d := everything()
	doc := readDocument(t, d)
	described := make(map[string]bool)
	ids := make(map[string]string)
	for path, methods := range doc.value["paths"].(map[string]any) {
		for method, e := range methods.(map[string]any) {
			pattern := strings.ToUpper(method) + " " + path
			described[pattern] = true
			requireDescribed(t, pattern, e.(map[string]any), ids)
		}
	}
	mounted := patterns(d)
	require.Len(t, described, len(mounted))
	for _, pattern := range mounted {
		require.True(t, described[pattern], pattern)
	}
	published := slices.DeleteFunc(mounted, func(pattern string) bool {
		_, path, _ := strings.Cut(pattern, " ")
		return !ofPassages(path)
	})
	require.Len(t, published, len(hubRoutes())+len(busRoutes()))
	require.Subset(t, published, []string{
		"POST /api/bus/send", "GET /api/bus/poll", "POST /api/bus/ack", "POST /api/bus/heartbeat", "POST /api/agents/tokens",
		"GET /api/sse/events", "GET /health",
	})
	d.Callers = nil
	require.NotContains(t, patterns(d), "GET /api/sse/events", "nobody has mail to tell of")
}

func requireDescribed(t *testing.T, pattern string, e map[string]any, ids map[string]string) {
	t.Helper()
	id, _ := e["operationId"].(string)
	require.NotEmpty(t, id, pattern)
	require.Empty(t, ids[id], "%s and %s have the same id", pattern, ids[id])
	ids[id] = pattern
	require.NotEmpty(t, e["summary"], pattern)
	require.NotNil(t, e["security"], pattern)
	in := make(map[string]bool)
	parameters, _ := e["parameters"].([]any)
	for _, p := range parameters {
		require.NotEmpty(t, p.(map[string]any)["description"], pattern)
		if p.(map[string]any)["in"] == "path" {
			in["{"+p.(map[string]any)["name"].(string)+"}"] = true
		}
	}
	for _, part := range regexp.MustCompile(`\{[^}]*\}`).FindAllString(pattern, -1) {
		require.True(t, in[part], "%s: %s", pattern, part)
	}
	for status, answer := range e["responses"].(map[string]any) {
		require.NotEmpty(t, answer.(map[string]any)["description"], "%s: %s", pattern, status)
	}
}

// TestOpenAPISaysWhoMay checks that the document has the access rules that are enforced.
//
// Rows.
func TestOpenAPISaysWhoMay(t *testing.T) {
	doc := readDocument(t, everything())
	for pattern, want := range map[string]string{
		"POST /api/v1/tasks":                     `[{"operatorToken":[]}]`,
		"GET /api/v1/server/tasks":               `[{"agentKey":[]}]`,
		"GET /api/v1/servers/tasks/poll":         `[{"agentKey":[]}]`,
		"POST /api/v1/servers/register":          `[]`,
		"GET /openapi.json":                      `[]`,
		"POST /api/v1/operations/get-task":       `[{"operatorToken":[]},{"agentKey":[]}]`,
		"POST /api/v1/operations/poll-tasks":     `[{"agentKey":[]}]`,
		"POST /api/v1/operations/poll-messages":  `[{"operatorToken":[]},{"agentKey":[]},{"actorToken":[]}]`,
		"POST /api/v1/operations/status":         `[{"operatorToken":[]}]`,
		"POST /api/v1/operations/register-agent": `[{"operatorToken":[]}]`,
		"POST /api/v1/operations/new":            `[{"operatorToken":[]}]`,
		"POST /api/v1/operations/down":           `[{"operatorToken":[]}]`,
		"POST /api/bus/send":                     `[{"operatorToken":[]},{"agentKey":[]},{"actorToken":[]}]`,
		"GET /api/sse/events":                    `[{"operatorToken":[]},{"agentKey":[]},{"actorToken":[]}]`,
		"POST /api/agents/tokens":                `[{"operatorToken":[]},{"agentKey":[]},{"actorToken":[]}]`,
		"GET /health":                            `[]`,
		"GET /api/v1/events":                     `[{"operatorToken":[]}]`,
		"GET /metrics":                           `[{"operatorToken":[]}]`,
	} {
		method, path, _ := strings.Cut(pattern, " ")
		e := doc.value["paths"].(map[string]any)[path].(map[string]any)[strings.ToLower(method)].(map[string]any)
		got, err := json.Marshal(e["security"])
		require.NoError(t, err)
		require.Equal(t, want, string(got), pattern)
	}
}

// TestOpenAPIIsServed checks that the document is public, and made once.
func TestOpenAPIIsServed(t *testing.T) {
	h := buildHub(t, nil)
	response, text := h.as(nil).do(t, http.MethodGet, openAPIPath, "")
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, inJSON, response.Header.Get("Content-Type"))
	require.Equal(t, string(h.document.text), text)
	again, err := h.door.describe()
	require.NoError(t, err)
	require.Equal(t, text, string(again), "it does not change from one making to the next")
	head, none := h.as(nil).do(t, http.MethodHead, openAPIPath, "")
	require.Equal(t, http.StatusOK, head.StatusCode)
	require.Empty(t, none)
	response, _ = h.as(nil).do(t, http.MethodPost, openAPIPath, "")
	require.Equal(t, http.StatusNotFound, response.StatusCode)
}

// TestOpenAPIPayloads checks that the body of an operation is the payload of its request.
func TestOpenAPIPayloads(t *testing.T) {
	doc := readDocument(t, everything())
	schema := func(name string) string {
		return fmt.Sprint(doc.value["paths"].(map[string]any)[operationsPath+name].(map[string]any)["post"].(map[string]any)["requestBody"])
	}
	require.Contains(t, schema("submit-task"), "#/components/schemas/request.submit-task/properties/payload")
	require.Contains(t, schema("submit-task-request"), "#/components/schemas/request.submit-task-request/properties/payload")
	require.NotContains(t, schema("status"), "$ref")
	payload := doc.schema(t, "paths", operationsPath+"submit-task", "post", "requestBody", "content", inJSON, "schema")
	require.NoError(t, payload.Validate(map[string]any{"type": "x", "name": "y"}))
	require.Error(t, payload.Validate(map[string]any{"name": "y"}))
	payload = doc.schema(t, "paths", operationsPath+"submit-task-request", "post", "requestBody", "content", inJSON, "schema")
	require.NoError(t, payload.Validate(map[string]any{"id": "x", "type": "y", "payload": map[string]any{}}))
	require.Error(t, payload.Validate(map[string]any{"id": "x", "type": "y", "payload": "z"}))
}

// TestEveryCodeHasAStatus checks that only internal errors have status 500.
func TestEveryCodeHasAStatus(t *testing.T) {
	for _, code := range []wire.Code{
		wire.CodeInvalid, wire.CodeMalformed, wire.CodeUnauthenticated, wire.CodeTooLarge, wire.CodeMediaType, wire.CodeLimited,
		wire.CodeDenied, wire.CodeNotFound, wire.CodeUnknownType, wire.CodeConflict, wire.CodeTimeout,
	} {
		require.NotEqual(t, http.StatusInternalServerError, status(code), "%s", code)
	}
	require.Equal(t, http.StatusInternalServerError, status(wire.CodeInternal))
}
