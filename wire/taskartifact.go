package wire

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"orchestrator/wire/object"
)

// artifactRef begins the ref of content that is kept elsewhere. No agent may give
// such a ref: its reader gets what it refers to.
const artifactRef = "sha256:"

// refsOfOthers refuses refs that no agent can give: the reader of such an artifact
// would get content that another agent has made.
func (r *TaskResponse) refsOfOthers() *Error {
	for i := range r.Artifacts {
		if IsArtifactRef(r.Artifacts[i].Ref) {
			return object.Invalid(fmt.Sprintf("/artifacts/%d/ref", i), "ref must not be sha256: and 64 hexadecimal digits: content has such a ref that is kept here")
		}
	}
	return nil
}

// ArtifactRef is the ref of content that was detached: hash is its SHA-256, in 64
// hexadecimal digits.
func ArtifactRef(hash string) string { return artifactRef + hash }

// ArtifactHash is the hash in such a ref. It is not ok for every other.
func ArtifactHash(ref string) (hash string, ok bool) {
	if hash, ok = strings.CutPrefix(ref, artifactRef); !ok || !isHex(hash, 64) {
		return "", false
	}
	return hash, true
}

// IsArtifactRef reports whether a ref is that of content that was detached.
func IsArtifactRef(ref string) bool {
	_, ok := ArtifactHash(ref)
	return ok
}

// Detach takes the content out of every artifact that has more than limit bytes of
// it, and leaves a ref in its place: in the Artifacts and in the Document, if there is
// one. An artifact that has a ref of its own keeps both. When something cannot be
// stored, the response stays as it was.
//
// What is stored is the content, or its spelling in the document where that is not
// ours: Attach puts it back digit for digit.
func (r *TaskResponse) Detach(limit int, store func(content string) (ref string, err error)) error {
	artifacts, refs := slices.Clone(r.Artifacts), make([]string, len(r.Artifacts))
	spelled := artifactsIn(r.Document)
	for i, a := range artifacts {
		if len(a.Content) <= limit || a.Ref != "" {
			continue
		}
		literal := Quote(a.Content)
		if i < len(spelled) {
			literal = MemberOf(spelled[i], "content")
		}
		ref, err := store(kept(a.Content, literal))
		if err != nil {
			return fmt.Errorf("storing the content of artifact %d: %w", i, err)
		}
		artifacts[i].Content, artifacts[i].Ref, refs[i] = "", ref, ref
	}
	r.Document = replaced(r.Document, spelled, func(i int, item Raw) Raw {
		if i >= len(refs) || refs[i] == "" {
			return item
		}
		return setMember(setMember(item, "content", []byte(`""`)), "ref", Quote(refs[i]))
	})
	r.Artifacts = artifacts
	return nil
}

// Attach puts content back that was detached. What cannot be loaded stays as it is:
// the document is right in any case, and the error says what is missing in it.
func Attach(document Raw, load func(ref string) (string, error)) (Raw, error) {
	var missing []error
	whole := replaced(document, artifactsIn(document), func(i int, item Raw) Raw {
		ref := refOf(item)
		if ref == "" {
			return item
		}
		content, err := load(ref)
		if err == nil && !utf8.ValidString(content) {
			err = errors.New("it is no text")
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
func HasArtifactRefs(document Raw) bool {
	return bytes.Contains(document, []byte(artifactRef)) &&
		slices.ContainsFunc(artifactsIn(document), func(item Raw) bool { return refOf(item) != "" })
}

// refOf is the ref of an artifact whose content was detached, "" for every other.
func refOf(artifact Raw) string {
	if ref, ok := object.Text(MemberOf(artifact, "ref")); ok && IsArtifactRef(ref) {
		return ref
	}
	return ""
}

// kept is how the content of an artifact is stored: as it is, if it can be spelled
// again from that. Content that could be taken for a spelling is none such.
func kept(content string, literal []byte) string {
	if string(Quote(content)) == string(literal) && !isLiteral(content) {
		return content
	}
	return string(literal)
}

// literalOf is the spelling of content that was stored.
func literalOf(kept string) []byte {
	if isLiteral(kept) {
		return []byte(kept)
	}
	return Quote(kept)
}

func isLiteral(content string) bool {
	s := object.Scanner{Text: []byte(content)}
	return strings.HasPrefix(content, `"`) && s.Quoted() && s.At == len(content)
}

// artifactsIn are the artifacts of a task response, lent out of its document. A
// document of another kind has none, whatever stands in it.
func artifactsIn(document Raw) []Raw {
	members, _, ok := object.Scan(document, object.AnyDepth, nil)
	if !ok || once(members, "status") == nil || once(members, "type") != nil {
		return nil
	}
	o := object.Reader{Members: members}
	items, _ := o.Items("artifacts")
	artifacts := make([]Raw, 0, len(items))
	for _, item := range items {
		artifacts = append(artifacts, item)
	}
	return artifacts
}

// replaced is a document with something else in the place of each item, which are
// lent out of it in their order; all else is as it was.
func replaced(document Raw, items []Raw, other func(i int, item Raw) Raw) Raw {
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

// withoutMember is a document without one of its members, of which there are others.
func withoutMember(document Raw, key string) Raw {
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
		return slices.Concat(Raw("{"), document[s.At:])
	}
	s.At = end(members[i-1])
	s.Space() // up to the comma
	return slices.Concat(document[:s.At], document[end(members[i]):])
}
