package wire

import (
	"fmt"
	"strings"
)

// Requirements reads an optional requirements document.
func (o *Object) Requirements(key string) *Requirements {
	var room [8]member
	kept, in, ok := o.document(key, room[:0])
	if !ok {
		return nil
	}
	full, odd := in.schema(SchemaRequirements, false)
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
		o.take(in.Err())
	}
	return r
}

// document keeps an optional member that is an object, and opens what is kept:
// so parts of it can be handed on without a copy.
func (o *Object) document(key string, room []member) (kept Raw, inner Object, ok bool) {
	kept = o.Document(key)
	if kept == nil {
		return nil, Object{}, false
	}
	inner, ok = o.open(key, kept, room)
	return kept, inner, ok
}

const (
	schemaKey   = "$schema"
	schemaKnown = "v1"
)

// schema reads the $schema of a document. It is full when the document is held
// against the one version that is known here. A document of another version is
// odd and not wrong: what has the shape that is known is read out of it, and
// nothing in it is refused. What names another family, or has nothing behind it, is
// no such document.
func (o *Object) schema(family string, needed bool) (full bool, odd []Oddity) {
	name := o.Text(schemaKey)
	there := o.find(schemaKey) != nil
	version, ours := strings.CutPrefix(name, family)
	switch {
	case !there && needed:
		o.Refuse(schemaKey, "is missing")
	case !there:
	case !ours || version == "":
		o.Refuse(schemaKey, fmt.Sprintf("must be %s%s, not %q", family, schemaKnown, name))
	case version != schemaKnown:
		return false, []Oddity{{
			Kind:    EventSchemaUnknown,
			Pointer: o.below(schemaKey),
			Text:    fmt.Sprintf("%.80s is not known here: it is read as far as it is like %s", name, schemaKnown),
		}}
	}
	if o.Err() != nil {
		o.Err().Hint = fmt.Sprintf(`write "%s": "%s%s"`, schemaKey, family, schemaKnown)
	}
	return true, nil
}

// inside opens an optional member that is an object. A caller that has read it hands
// what is wrong with it to take, or passes over it.
func (o *Object) inside(key string, room []member) (inner Object, ok bool) {
	value := o.find(key)
	if value == nil {
		return Object{}, false
	}
	return o.open(key, value, room)
}

// open is inside for a member that was found.
func (o *Object) open(key string, value []byte, room []member) (inner Object, ok bool) {
	if !isObject(value) {
		o.Refuse(key, "must be an object")
		return Object{}, false
	}
	inner, err := openObject(value, scannedBefore, o.below(key), room)
	o.take(err)
	return inner, err == nil
}
