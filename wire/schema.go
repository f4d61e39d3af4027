package wire

import (
	"embed"
	"slices"
	"strings"
)

// schemas are the JSON Schemas of what agents say and hear, one file each.
// Their tests hold them against the readers and the encoders: neither can
// change without the other.
//
//go:embed schemas/*.json
var schemas embed.FS

// Schemas are the names of all schemas, sorted: those of messages are their
// type, such as request:submit-task, those of documents a plain word, such as
// task.
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

// Schema is a schema as text; false if there is none of that name.
func Schema(name string) ([]byte, bool) {
	text, err := schemas.ReadFile("schemas/" + strings.Replace(name, ":", ".", 1) + ".json")
	return text, err == nil && !strings.Contains(name, ".")
}
