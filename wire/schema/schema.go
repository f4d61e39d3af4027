// Package schema has the JSON Schemas of the messages and documents of the protocols.
//
//	json/         the schemas, one in each file: generated from Go types, and committed
//	Names, Text   read them
//	Document      declares one: its Go type, its title, and rules between its members
//	Node          spells such a rule
//	Formats       forms of texts that many documents share
//	generator     writes the files; only tests run it
//
// The Go type of a document is its declaration. The generator reads keys and presence from the
// json tags of its fields, descriptions from their comments, and limits from their schema tags.
package schema

import (
	"embed"
	"slices"
	"strings"
)

//go:embed json/*.json
var files embed.FS

// Names returns the sorted names of all schemas. A message schema has the name of its type,
// such as request:submit-task. A document schema has a plain name, such as task.
func Names() []string {
	entries, _ := files.ReadDir("json") // it is part of the program
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), ".json")
		names = append(names, strings.Replace(name, ".", ":", 1))
	}
	slices.Sort(names)
	return names
}

// Text returns the text of a schema. It reports false for an unknown name.
func Text(name string) ([]byte, bool) {
	text, err := files.ReadFile("json/" + FileName(name))
	return text, err == nil && !strings.Contains(name, ".")
}

// FileName returns the name of the file of a schema.
func FileName(name string) string { return strings.Replace(name, ":", ".", 1) + ".json" }

// A Document declares one schema.
type Document struct {
	Name  string // for a message with a prefix, such as notify:shutdown
	Title string
	About string // the description
	Of    any    // a value of the Go type, or nil; in a message, of the payload
	Head  any    // in a message: a value of the type of its other members
	// Payload is the schema of a payload without a Go type.
	Payload Node
	// Lenient documents come from other programs. Their optional members may be null.
	Lenient bool
	// Body is the payload of an operation as the body of a route: the keys are in snake_case, and the ids
	// in the path are left out.
	Body    bool
	Parts   []Part   // types that the document defines once
	Formats []string // formats that the document defines once: keys of Formats
	Rules   Node     // rules between members
	// As has values of the Go types of members that a field keeps as JSON. The keys are paths.
	As map[string]any
	// Nodes has the schemas of members that no Go type has. The keys are paths.
	Nodes map[string]Node
	// Members replaces the descriptions of members. The keys are paths such as routing.source.
	Members map[string]string
}

// A Part is a Go type that a document defines under $defs. Members of this type refer to it. A Part
// without a name only adds rules to the members of this type.
type Part struct {
	Name  string
	About string
	Of    any
	Rules Node
}
