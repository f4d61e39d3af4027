package wire

import (
	"embed"
	"slices"
	"strings"
)

// schemas holds the JSON Schemas of the messages from and to agents, one in each file. Tests
// check them against the readers and the encoders.
//
//go:embed schemas/*.json
var schemas embed.FS

// Schemas returns the sorted names of all schemas. A message schema has the name of its type,
// such as request:submit-task. A document schema has a plain name, such as task.
func Schemas() []string {
	files, _ := schemas.ReadDir("schemas") // it is part of the program
	names := make([]string, 0, len(files))
	for _, file := range files {
		name := strings.TrimSuffix(file.Name(), ".json")
		names = append(names, strings.Replace(name, ".", ":", 1))
	}
	slices.Sort(names)
	return names
}

// Schema returns the text of a schema. It reports false if there is none with this name.
func Schema(name string) ([]byte, bool) {
	text, err := schemas.ReadFile("schemas/" + strings.Replace(name, ":", ".", 1) + ".json")
	return text, err == nil && !strings.Contains(name, ".")
}
