package object

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// DetailsWith returns one object with the details, the reason and the hint.
func DetailsWith(e *Error, reason string) map[string]any {
	all := make(map[string]any, len(e.Details)+2)
	if reason != "" {
		all["reason"] = reason
	}
	if e.Hint != "" {
		all["hint"] = e.Hint
	}
	for key, value := range e.Details { // a reason in the details replaces the general one
		all[key] = value
	}
	return all
}

// Quote returns a text as a JSON string.
func Quote(text string) []byte { return AppendText(nil, text) }

// CompactLen returns the length of a document without the spaces between its parts.
func CompactLen(document Raw) (n int) {
	inText := false
	for i := 0; i < len(document); i++ {
		c := document[i]
		switch {
		case inText && c == '\\':
			i++
			n++
		case c == '"':
			inText = !inText
		case !inText && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			continue
		}
		n++
	}
	return n
}

// MemberOf returns a member of a document as it was written, or nil.
func MemberOf(document Raw, key string) Raw {
	if document == nil {
		return nil
	}
	var o Reader
	if o.Read(document, AnyDepth, "") != nil {
		return nil
	}
	return o.Value(key)
}

// TextOf returns a member of a document that is a string.
func TextOf(document Raw, key string) (value string, ok bool) {
	if v := MemberOf(document, key); v != nil {
		return Text(v)
	}
	return "", false
}

// Merge returns the members of both documents. A member of changes replaces one of document with
// the same key.
func Merge(document, changes Raw) Raw {
	var before, after Reader
	if document == nil || before.Read(document, AnyDepth, "") != nil || after.Read(changes, AnyDepth, "") != nil {
		return changes
	}
	var merged []byte
	add := func(m *Member) {
		merged = append(append(AppendText(append(merged, ','), string(m.Key)), ':'), m.Value...)
	}
	for i := range before.Members {
		if rawMember(&after, string(before.Members[i].Key)) == nil {
			add(&before.Members[i])
		}
	}
	for i := range after.Members {
		add(&after.Members[i])
	}
	if merged == nil {
		return Raw("{}")
	}
	merged[0] = '{'
	return append(merged, '}')
}

// rawMember returns the value of a member, null included. It is nil if the member is missing.
func rawMember(o *Reader, key string) []byte {
	for i := range o.Members {
		if string(o.Members[i].Key) == key {
			return o.Members[i].Value
		}
	}
	return nil
}

func IsHex(text string, length int) bool {
	return len(text) == length && IsRun(text, func(c byte) bool { return IsDigit(c) || 'a' <= c && c <= 'f' })
}

// A Head has the members at the beginning of a JSON object. The value of the last one may be cut.
type Head map[string]Raw

// ReadHead reads the beginning of a JSON object. It returns nil for any other text.
func ReadHead(text []byte) Head {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if begin, err := d.ReadToken(); err != nil || begin.Kind() != '{' {
		return nil
	}
	h := Head{}
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			break
		}
		key := token.String()
		rest := text[d.InputOffset():]
		if h[key], err = d.ReadValue(); err != nil {
			h[key] = bytes.TrimLeft(rest, " \t\r\n:")
			break
		}
		h[key] = h[key].Clone()
	}
	return h
}

// Text returns a member that is a whole string, or "".
func (h Head) Text(key string) (text string) {
	_ = Decode(h[key], &text) // a cut member is not known
	return text
}
