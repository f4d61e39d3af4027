package hub

import (
	"cmp"
	"fmt"
	"strconv"

	"orchestrator/wire/object"
)

// An Artifact is a product of a task that its agent hands in with the result. A task lists its
// artifacts without their content, which is in the task response.
type Artifact struct {
	// The name of the artifact, such as a file name.
	Name string `json:"name" schema:"nonblank"`
	// The MIME type, such as text/markdown.
	Type string `json:"type" schema:"nonblank"`
	// The size of the content, in bytes; 0 when it is missing.
	Size int64 `json:"size,omitzero" schema:"whole=0"`
	// The place of the content, if it is stored elsewhere.
	Ref string `json:"ref,omitzero"`

	Content string `json:"content,omitzero" schema:"-"`
	Path    string `json:"path,omitzero" schema:"-"` // of the file with the content, in the folder of the agent
	Pointer string `json:"-"`                        // its place in the request, for errors
}

// append appends an artifact as JSON, up to its last member.
func (a *Artifact) append(b []byte) []byte {
	b = object.AppendText(append(b, `{"name":`...), cmp.Or(a.Name, a.Path))
	b = object.AppendOptional(b, "type", a.Type)
	if a.Size > 0 {
		b = strconv.AppendInt(append(b, `,"size":`...), a.Size, 10)
	}
	return object.AppendOptional(b, "ref", a.Ref)
}

// MarshalJSON implements json.Marshaler. An artifact without a path and a ref has a content, which may
// be empty.
func (a Artifact) MarshalJSON() ([]byte, error) {
	b := object.AppendOptional(a.append(nil), "path", a.Path)
	if a.Content != "" || a.Path == "" && a.Ref == "" {
		b = object.AppendMember(b, "content", a.Content)
	}
	return append(b, '}'), nil
}

// AppendArtifacts appends artifacts as JSON, as a task lists them: without their content.
func AppendArtifacts(b []byte, all []Artifact) []byte {
	b = append(b, '[')
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(all[i].append(b), '}')
	}
	return append(b, ']')
}

// The limits of the artifacts of a task.
const (
	MaxArtifacts     = 100
	MaxArtifactBytes = 16 << 20 // in all

	maxArtifactName = 1000 // bytes
)

// The type of an artifact that has none.
const plainText = "text/plain"

// ArtifactsIn reads an optional list of artifacts. Each has a content, a path or a ref. One with a
// path needs no name.
func ArtifactsIn(o *object.Reader, key string) []Artifact {
	var all []Artifact
	names := make(map[string]bool)
	o.Objects(key, func(in *object.Reader) {
		a := readArtifact(in)
		if names[a.Name] {
			in.Refuse("name", fmt.Sprintf("is in the list twice: %.80q", a.Name))
		}
		names[a.Name] = true
		all = append(all, a)
	})
	if len(all) > MaxArtifacts {
		o.Refuse(key, fmt.Sprintf("must have at most %d items, not %d", MaxArtifacts, len(all)))
	}
	return all
}

func readArtifact(in *object.Reader) Artifact {
	a := Artifact{Content: in.Text("content"), Path: in.Text("path"), Ref: in.Text("ref"), Type: in.Text("type"), Pointer: in.Pointer}
	sources := 0
	for _, key := range [...]string{"content", "path", "ref"} {
		if in.Find(key) != nil {
			sources++
		}
	}
	switch {
	case sources != 1:
		in.Refuse("content", "is required, unless path or ref is set")
	case in.Find("content") == nil && object.IsBlank(a.Path+a.Ref):
		in.Refuse("path", "must not be empty, nor must ref")
	}
	if a.Name = a.Path; a.Path == "" || in.Find("name") != nil {
		a.Name = in.NeedText("name")
	}
	if len(a.Name) > maxArtifactName {
		in.Refuse("name", fmt.Sprintf("must be at most %d bytes long", maxArtifactName))
	}
	if object.IsBlank(a.Type) {
		a.Type = plainText
	}
	a.Size = int64(len(a.Content))
	return a
}
