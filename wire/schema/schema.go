// Package schema has the JSON Schemas of the messages and documents of the protocols.
//
//	json/         the schemas, one in each file: generated from Go types, and committed
//	Names, Text   read them
//	Document      declares one: its Go type, its title, and rules between its members
//	Node          spells such a rule
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

// Text returns the text of a schema. It reports false if there is none with this name.
func Text(name string) ([]byte, bool) {
	text, err := files.ReadFile("json/" + FileName(name))
	return text, err == nil && !strings.Contains(name, ".")
}

// FileName returns the name of the file of a schema.
func FileName(name string) string { return strings.Replace(name, ":", ".", 1) + ".json" }
