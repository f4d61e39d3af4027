package delegation

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"orchestrator/wire/object"
)

// artifactRef begins the ref of detached content. An agent must not use such a ref, since its
// reader would get that content.
const artifactRef = "sha256:"

// RefsOfOthers refuses refs to detached content. The reader of such an artifact would get the
// content of another agent.
func (r *Response) RefsOfOthers() *object.Error {
	for i := range r.Artifacts {
		if IsArtifactRef(r.Artifacts[i].Ref) {
			return object.Invalid(fmt.Sprintf("/artifacts/%d/ref", i), "ref must not be sha256: and 64 hexadecimal digits: content has such a ref that is kept here")
		}
	}
	return nil
}

// ArtifactRef returns the ref of detached content. hash is its SHA-256, in 64 hexadecimal
// digits.
func ArtifactRef(hash string) string { return artifactRef + hash }

// ArtifactHash returns the hash in the ref of detached content. It reports false for any other
// ref.
func ArtifactHash(ref string) (hash string, ok bool) {
	if hash, ok = strings.CutPrefix(ref, artifactRef); !ok || !object.IsHex(hash, 64) {
		return "", false
	}
	return hash, true
}

// IsArtifactRef reports whether a ref names detached content.
func IsArtifactRef(ref string) bool {
	_, ok := ArtifactHash(ref)
	return ok
}

// Detach stores the content of every artifact with more than limit bytes and replaces it with a
// ref, both in Artifacts and in Document. An artifact that already has a ref is not changed. If
// store fails, the response is not changed.
//
// If the document encodes the content differently than Quote, the JSON text is stored instead.
// Attach can then restore it digit for digit.
func (r *Response) Detach(limit int, store func(content string) (ref string, err error)) error {
	artifacts, refs := slices.Clone(r.Artifacts), make([]string, len(r.Artifacts))
	spelled := artifactsIn(r.Document)
	for i, a := range artifacts {
		if len(a.Content) <= limit || a.Ref != "" {
			continue
		}
		literal := object.Quote(a.Content)
		if i < len(spelled) {
			literal = object.MemberOf(spelled[i], "content")
		}
		ref, err := store(kept(a.Content, literal))
		if err != nil {
			return fmt.Errorf("storing the content of artifact %d: %w", i, err)
		}
		artifacts[i].Content, artifacts[i].Ref, refs[i] = "", ref, ref
	}
	r.Document = replaced(r.Document, spelled, func(i int, item object.Raw) object.Raw {
		if i >= len(refs) || refs[i] == "" {
			return item
		}
		return setMember(setMember(item, "content", []byte(`""`)), "ref", object.Quote(refs[i]))
	})
	r.Artifacts = artifacts
	return nil
}

// Attach restores detached content. Content that cannot be loaded keeps its ref. The document is
// valid in any case, and the error lists the missing content.
func Attach(document object.Raw, load func(ref string) (string, error)) (object.Raw, error) {
	var missing []error
	whole := replaced(document, artifactsIn(document), func(i int, item object.Raw) object.Raw {
		ref := refOf(item)
		if ref == "" {
			return item
		}
		content, err := load(ref)
		if err == nil && !utf8.ValidString(content) {
			err = errors.New("it is not text")
		}
		if err != nil {
			missing = append(missing, fmt.Errorf("loading the content of artifact %d: %w", i, err))
			return item
		}
		return withoutMember(setMember(item, "content", literalOf(content)), "ref")
	})
	return whole, errors.Join(missing...)
}

// HasArtifactRefs reports whether content of a document was detached.
func HasArtifactRefs(document object.Raw) bool {
	return bytes.Contains(document, []byte(artifactRef)) &&
		slices.ContainsFunc(artifactsIn(document), func(item object.Raw) bool { return refOf(item) != "" })
}

// refOf returns the ref of an artifact with detached content, or "".
func refOf(artifact object.Raw) string {
	if ref, ok := object.Text(object.MemberOf(artifact, "ref")); ok && IsArtifactRef(ref) {
		return ref
	}
	return ""
}

// kept returns the stored form of the content of an artifact: the content, if Quote restores its
// JSON text, or that text. Content that looks like JSON text is stored as JSON text.
func kept(content string, literal []byte) string {
	if string(object.Quote(content)) == string(literal) && !isLiteral(content) {
		return content
	}
	return string(literal)
}

// literalOf returns the JSON text of stored content.
func literalOf(kept string) []byte {
	if isLiteral(kept) {
		return []byte(kept)
	}
	return object.Quote(kept)
}

func isLiteral(content string) bool {
	s := object.Scanner{Text: []byte(content)}
	return strings.HasPrefix(content, `"`) && s.Quoted() && s.At == len(content)
}

// artifactsIn returns the artifacts of a task response as slices of its document. A document of
// another kind has none.
func artifactsIn(document object.Raw) []object.Raw {
	members, _, ok := object.Scan(document, object.AnyDepth, nil)
	if !ok || object.Once(members, "status") == nil || object.Once(members, "type") != nil {
		return nil
	}
	o := object.Reader{Members: members}
	items, _ := o.Items("artifacts")
	artifacts := make([]object.Raw, 0, len(items))
	for _, item := range items {
		artifacts = append(artifacts, item)
	}
	return artifacts
}

// replaced returns a document with each item replaced. The items are slices of the document, in
// order. The rest is unchanged.
func replaced(document object.Raw, items []object.Raw, other func(i int, item object.Raw) object.Raw) object.Raw {
	var b []byte
	done := 0
	for i, item := range items {
		from := cap(document) - cap(item) // it ends where its room does: see within
		b = append(append(b, document[done:from]...), other(i, item)...)
		done = from + len(item)
	}
	if b == nil {
		return document
	}
	return append(b, document[done:]...)
}

// withoutMember returns a document without one of its members. The document must have at least two.
func withoutMember(document object.Raw, key string) object.Raw {
	members, _, _ := object.Scan(document, object.AnyDepth, nil)
	i := slices.IndexFunc(members, func(m object.Member) bool { return string(m.Key) == key })
	if i < 0 {
		return document
	}
	end := func(m object.Member) int { return cap(document) - cap(m.Value) + len(m.Value) }
	s := object.Scanner{Text: document}
	if i == 0 {
		s.At = end(members[0])
		s.Next(',')
		return slices.Concat(object.Raw("{"), document[s.At:])
	}
	s.At = end(members[i-1])
	s.Space() // up to the comma
	return slices.Concat(document[:s.At], document[end(members[i]):])
}
