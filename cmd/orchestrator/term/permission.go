package term

import (
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/object"
)

// An edit is a change of a file, with the members that the clients of vendors name it by.
type edit struct {
	File    string `json:"file_path"`
	Path    string `json:"path"`
	Old     string `json:"old_string"`
	OldText string `json:"oldText"`
	New     string `json:"new_string"`
	NewText string `json:"newText"`
	Content string `json:"content"`
	Diff    string `json:"diff"`
}

// PermissionLines returns the requested action of a permission, for people: the command, or the
// changes of files, else the input as JSON.
func PermissionLines(p *activity.Permission) []string {
	if command, ok := object.TextOf(p.Input, "command"); ok && command != "" {
		return marked("$ ", command)
	}
	var in struct {
		edit
		Edits   []edit `json:"edits"`
		Changes []edit `json:"changes"`
	}
	if object.Decode(p.Input, &in) != nil {
		return []string{OneLine(string(p.Input))}
	}
	var lines []string
	edits := append([]edit{in.edit}, append(in.Edits, in.Changes...)...)
	for i := range edits {
		lines = append(lines, edits[i].lines()...)
	}
	switch input := OneLine(string(p.Input)); {
	case len(lines) > 0:
		return lines
	case input == "{}":
		return nil
	default:
		return []string{input}
	}
}

// lines returns the change as a diff, or nil if it has none.
func (e *edit) lines() []string {
	lines := marked("", e.Diff)
	lines = append(lines, marked("- ", e.Old+e.OldText)...)
	lines = append(lines, marked("+ ", e.New+e.NewText+e.Content)...)
	if path := e.File + e.Path; path != "" && lines != nil {
		lines = append([]string{wire.Visible(path)}, lines...)
	}
	return lines
}

// marked returns the lines of a text, each with a mark in front.
func marked(mark, text string) (lines []string) {
	if text == "" {
		return nil
	}
	for line := range strings.Lines(text) {
		lines = append(lines, mark+wire.Visible(strings.ReplaceAll(strings.TrimRight(line, "\r\n"), "\t", "    ")))
	}
	return lines
}
