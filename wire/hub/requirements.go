package hub

import (
	"fmt"
	"strings"

	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// RequirementsIn reads an optional requirements document.
func RequirementsIn(o *object.Reader, key string) *Requirements {
	if o.Find(key) == nil {
		return nil // before room, which escapes to the heap
	}
	var room [8]object.Member
	kept, in, ok := readDocument(o, key, room[:0])
	if !ok {
		return nil
	}
	full, odd := readSchema(&in, SchemaRequirements, false)
	r := &Requirements{
		Document:     kept,
		Repo:         in.Text("repo"),
		Languages:    in.Texts("languages"),
		Environments: in.Texts("environments"),
		Tools:        in.Texts("tools"),
		Tags:         in.Texts("tags"),
		Prefer:       in.Text("prefer_server"),
		Oddities:     odd,
	}
	if full {
		o.Fail(in.Err())
	}
	return r
}

// readDocument copies an optional member that is an object, and opens the copy. Parts of the
// copy can then be shared.
func readDocument(o *object.Reader, key string, room []object.Member) (kept object.Raw, inner object.Reader, ok bool) {
	kept = o.Document(key)
	if kept == nil {
		return nil, object.Reader{}, false
	}
	inner, ok = openValue(o, key, kept, room)
	return kept, inner, ok
}

const (
	schemaKey   = "$schema"
	schemaKnown = "v1"
)

// readSchema reads the $schema of a document. full reports whether the document must follow the one
// version that is known here. Another version is odd and not wrong: the members of the known shape
// are read, and no member is refused. A name of another family, or without a version, is refused.
func readSchema(o *object.Reader, family string, needed bool) (full bool, odd []Oddity) {
	name := o.Text(schemaKey)
	there := o.Find(schemaKey) != nil
	version, ours := strings.CutPrefix(name, family)
	switch {
	case !there && needed:
		o.Refuse(schemaKey, "is missing")
	case !there:
	case !ours || version == "":
		o.Refuse(schemaKey, fmt.Sprintf("must be %s%s, not %q", family, schemaKnown, name))
	case version != schemaKnown:
		return false, []Oddity{{
			Kind:    events.SchemaVersionUnknown,
			Pointer: o.Below(schemaKey),
			Text:    fmt.Sprintf("%.80s is unknown: it is read like %s", name, schemaKnown),
		}}
	}
	if o.Err() != nil {
		o.Err().Hint = fmt.Sprintf(`write "%s": "%s%s"`, schemaKey, family, schemaKnown)
	}
	return true, nil
}

// openDocument opens an optional member that is an object. The caller passes the errors of the
// result to Fail, or ignores them.
func openDocument(o *object.Reader, key string, room []object.Member) (inner object.Reader, ok bool) {
	value := o.Find(key)
	if value == nil {
		return object.Reader{}, false
	}
	return openValue(o, key, value, room)
}

// openValue is openDocument for a value that was already found.
func openValue(o *object.Reader, key string, value []byte, room []object.Member) (inner object.Reader, ok bool) {
	if !object.IsObject(value) {
		o.Refuse(key, "must be an object")
		return object.Reader{}, false
	}
	inner, err := object.Open(value, object.AnyDepth, o.Below(key), room)
	o.Fail(err)
	return inner, err == nil
}
