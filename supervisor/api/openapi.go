package api

import (
	"embed"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// What is here is described for programs, in an OpenAPI document that is made
// of the routes themselves: none can be there without the other.
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

// endpoint is what a method does at a path.
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

// describe makes the document of a door.
func (d *API) describe() (wire.Raw, error) {
	schemas, err := allSchemas()
	if err != nil {
		return nil, err
	}
	doc := &openAPI{
		OpenAPI: "3.1.0",
		Info: openInfo{
			Title: "Orchestrator", Version: orElse(d.Version, "0"),
			Description: "What can be asked of an orchestrator of agents. At its unix socket no credential is needed: " +
				"the kernel says who comes. A caller that asks too often is told with 429 and Retry-After when to come again.",
		},
		Servers: []openServer{{URL: "/", Description: "Where this document came from."}},
		Tags: []openTag{
			{Name: tagHub, Description: "Tasks, and the servers that work on them."},
			{Name: tagBus, Description: "Messages from actor to actor."},
			{Name: tagOperations, Description: "Everything that can be asked, one operation a path."},
			{Name: tagDoor, Description: "Streams, and this document."},
		},
		Paths: make(map[string]map[string]*endpoint),
		Components: openComponents{Schemas: schemas, SecuritySchemes: map[string]wire.Raw{
			byToken: wire.Raw(`{"type":"http","scheme":"bearer","bearerFormat":"JWT","description":"The token of an operator."}`),
			byKey:   wire.Raw(`{"type":"apiKey","in":"header","name":"X-API-Key","description":"The key of an agent, or the token of one of its runs. It may come as a bearer token too."}`),
			byActor: wire.Raw(`{"type":"http","scheme":"bearer","description":"The token of an actor that is no agent."}`),
		}},
	}
	for pattern, e := range d.endpoints(schemas) {
		method, path, _ := strings.Cut(pattern, " ")
		if doc.Paths[path] == nil {
			doc.Paths[path] = make(map[string]*endpoint)
		}
		doc.Paths[path][strings.ToLower(method)] = e
	}
	return object.Encode(doc)
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// openAPI answers with the document, which is made once.
func (d *API) openAPI() http.HandlerFunc {
	text, err := d.describe()
	return d.behind("openapi.json", nil, func(w http.ResponseWriter, r *http.Request) {
		switch hurried := unhurried(w); {
		case err != nil:
			d.refuse(w, r, err)
		case hurried != nil:
			d.refuse(w, r, hurried)
		default:
			d.write(w, http.StatusOK, text)
		}
	})
}

// ownSchemas are the schemas of what is said here and nowhere else: of the hub's
// documents, and of what the door says for itself.
//
//go:embed schemas/*.json
var ownSchemas embed.FS

// allSchemas are all schemas by their names in the document, each referring to
// others within it.
func allSchemas() (map[string]wire.Raw, error) {
	all := make(map[string]wire.Raw)
	for _, name := range wire.Schemas() {
		text, _ := wire.Schema(name) // it is among them
		schema, err := embedded(name, text)
		if err != nil {
			return nil, err
		}
		all[component(name)] = schema
	}
	files, err := ownSchemas.ReadDir("schemas")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := ownSchemas.ReadFile("schemas/" + file.Name())
		if err != nil {
			return nil, err
		}
		var found map[string]wire.Raw
		if err := object.Decode(text, &found); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file.Name(), err)
		}
		for name, schema := range found {
			all[name] = referring(name, schema)
		}
	}
	return all, nil
}

// component is the name of a schema in the document, where not all characters
// may stand.
func component(name string) string { return strings.ReplaceAll(name, ":", ".") }

// embedded is a schema as a part of the document: it has no name of its own
// there, or what it refers to would be looked for in it.
func embedded(name string, text []byte) (wire.Raw, error) {
	var members map[string]wire.Raw
	if err := object.Decode(text, &members); err != nil {
		return nil, fmt.Errorf("reading the schema of %s: %w", name, err)
	}
	maps.DeleteFunc(members, func(key string, _ wire.Raw) bool { return slices.Contains([]string{"$schema", "$id"}, key) })
	schema, err := object.Encode(members)
	return referring(name, schema), err
}

var reference = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"\$ref":\s*"(urn:orchestrator:|#/)([^"]+)"`)
})

// referring has a schema refer to others as they are called in the document.
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

// refer is a schema that is one of the components.
func refer(name string) wire.Raw {
	return wire.Raw(`{"$ref":"#/components/schemas/` + component(name) + `"}`)
}
