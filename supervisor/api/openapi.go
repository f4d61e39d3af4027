package api

import (
	"cmp"
	_ "embed" // for ownSchemas
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/schema"
)

// openAPIPath is the path of the OpenAPI document. It is generated from the routes, so neither
// can exist without the other.
const openAPIPath = "/openapi.json"

type openAPI struct {
	OpenAPI    string                          `json:"openapi"`
	Info       openInfo                        `json:"info"`
	Servers    []openServer                    `json:"servers"`
	Tags       []openTag                       `json:"tags"`
	Paths      map[string]map[string]*endpoint `json:"paths"`
	Components openComponents                  `json:"components"`
}

type openInfo struct {
	Title       string `json:"title"`
	Version     string `json:"version"`
	Description string `json:"description"`
}

type openServer struct {
	URL         string `json:"url"`
	Description string `json:"description"`
}

type openTag struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type openComponents struct {
	Schemas         map[string]wire.Raw `json:"schemas"`
	SecuritySchemes map[string]wire.Raw `json:"securitySchemes"`
}

// endpoint describes a method of a path.
type endpoint struct {
	ID          string                  `json:"operationId"`
	Summary     string                  `json:"summary"`
	Description string                  `json:"description,omitzero"`
	Tags        []string                `json:"tags"`
	Security    []map[string][]string   `json:"security"`
	Parameters  []openParameter         `json:"parameters,omitzero"`
	Body        *openBody               `json:"requestBody,omitzero"`
	Responses   map[string]openResponse `json:"responses"`
}

type openParameter struct {
	Name        string   `json:"name"`
	In          string   `json:"in"`
	Description string   `json:"description"`
	Required    bool     `json:"required,omitzero"`
	Schema      wire.Raw `json:"schema"`
}

type openBody struct {
	Required bool                   `json:"required"`
	Content  map[string]openContent `json:"content"`
}

type openResponse struct {
	Description string                 `json:"description"`
	Headers     map[string]openHeader  `json:"headers,omitzero"`
	Content     map[string]openContent `json:"content,omitzero"`
}

type openHeader struct {
	Description string   `json:"description"`
	Schema      wire.Raw `json:"schema"`
}

type openContent struct {
	Schema wire.Raw `json:"schema"`
}

// describe returns the OpenAPI document of the API.
func (api *API) describe() (wire.Raw, error) {
	schemas, err := allSchemas()
	if err != nil {
		return nil, err
	}
	doc := &openAPI{
		OpenAPI: "3.1.0",
		Info: openInfo{
			Title: "Orchestrator", Version: cmp.Or(api.Version, "0"),
			Description: "The API of an orchestrator of agents. Its unix socket needs no credential: " +
				"the kernel identifies the caller. Too many requests get 429, with a Retry-After.",
		},
		Servers: []openServer{{URL: "/", Description: "The server that sent this document."}},
		Tags: []openTag{
			{Name: tagHub, Description: "Tasks, and the servers that work on them."},
			{Name: tagBus, Description: "Messages between actors."},
			{Name: tagOperations, Description: "All operations, one path each."},
			{Name: tagDoor, Description: "Streams, sign-ins and this document."},
		},
		Paths: make(map[string]map[string]*endpoint),
		Components: openComponents{Schemas: schemas, SecuritySchemes: map[string]wire.Raw{
			byToken:  wire.Raw(`{"type":"http","scheme":"bearer","bearerFormat":"JWT","description":"The token of an operator."}`),
			byKey:    wire.Raw(`{"type":"apiKey","in":"header","name":"X-API-Key","description":"The key of an agent, or the token of one of its runs. A bearer token works as well."}`),
			byCookie: wire.Raw(`{"type":"apiKey","in":"cookie","name":"` + cookieName + `","description":"A person who has signed in to the web view. It counts like the token of an operator below /api/v1/ and at /metrics."}`),
			byActor:  wire.Raw(`{"type":"http","scheme":"bearer","description":"The token of an actor that is no agent."}`),
		}},
	}
	for pattern, e := range api.endpoints(schemas) {
		method, path, _ := strings.Cut(pattern, " ")
		if doc.Paths[path] == nil {
			doc.Paths[path] = make(map[string]*endpoint)
		}
		doc.Paths[path][strings.ToLower(method)] = e
	}
	return object.Encode(doc)
}

// openAPI serves the document, which is built once.
func (api *API) openAPI() http.HandlerFunc {
	text, err := api.describe()
	return api.authenticated("openapi.json", nil, func(w http.ResponseWriter, r *http.Request) {
		switch hurried := unhurried(w); {
		case err != nil:
			api.refuse(w, r, err)
		case hurried != nil:
			api.refuse(w, r, hurried)
		default:
			api.write(w, http.StatusOK, text)
		}
	})
}

// ownSchemas has the schemas used only by this package: schemas of the hub, the bus and the API itself.
//
//go:embed schemas/api.json
var ownSchemas []byte

// allSchemas returns all schemas by their component names. References point into the document.
func allSchemas() (map[string]wire.Raw, error) {
	var all map[string]wire.Raw
	if err := object.Decode(ownSchemas, &all); err != nil {
		return nil, fmt.Errorf("reading the schemas of the API: %w", err)
	}
	for name, text := range all {
		all[name] = referring(name, text)
	}
	for _, name := range schema.Names() {
		text, _ := schema.Text(name) // it is among them
		own, err := embedded(name, text)
		if err != nil {
			return nil, err
		}
		all[component(name)] = own
	}
	return all, nil
}

// component returns the component name of a schema; a colon is not allowed there.
func component(name string) string { return strings.ReplaceAll(name, ":", ".") }

// embedded returns a schema as a component. Its $id is removed, because references would be
// resolved against it.
func embedded(name string, text []byte) (wire.Raw, error) {
	var members map[string]wire.Raw
	if err := object.Decode(text, &members); err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", name, err)
	}
	maps.DeleteFunc(members, func(key string, _ wire.Raw) bool { return slices.Contains([]string{"$schema", "$id"}, key) })
	encoded, err := object.Encode(members)
	return referring(name, encoded), err
}

var reference = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"\$ref":\s*"(urn:orchestrator:|#/)([^"]+)"`)
})

// referring rewrites the references of a schema to components.
func referring(name string, schema []byte) wire.Raw {
	pattern := reference()
	return pattern.ReplaceAllFunc(schema, func(found []byte) []byte {
		parts := pattern.FindSubmatch(found)
		if string(parts[1]) == "#/" {
			return []byte(`"$ref":"#/components/schemas/` + component(name) + "/" + string(parts[2]) + `"`)
		}
		return []byte(`"$ref":"#/components/schemas/` + component(string(parts[2])) + `"`)
	})
}

// refer returns a schema that refers to a component.
func refer(name string) wire.Raw {
	return wire.Raw(`{"$ref":"#/components/schemas/` + component(name) + `"}`)
}
