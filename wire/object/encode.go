package object

import (
	"bytes"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Encode returns a document as one line of JSON, without the line end. Maps are sorted by key,
// a nil slice is an empty list, and a Raw is written as it came.
func Encode(v any) ([]byte, error) { return json.Marshal(v, asIs) }

var asIs = json.JoinOptions(
	json.Deterministic(true),
	jsontext.AllowInvalidUTF8(true),
	jsontext.AllowDuplicateNames(true), // of Raw: ours have none
	jsontext.PreserveRawStrings(true),
)

// Spell returns a value as JSON, or null if it cannot be encoded. It is for values of types that
// can always be encoded.
func Spell(v any) Raw {
	text, err := Encode(v)
	if err != nil {
		return Raw("null")
	}
	return text
}

// Decode reads a document strictly: keys match exactly, none occurs twice, and no text follows the
// document. Keys that v does not have are ignored, so that a newer orchestrator can send more to an
// older reader.
func Decode(text []byte, v any) error {
	return json.Unmarshal(text, v)
}

// DecodeOwn is Decode for documents that the orchestrator wrote itself. Documents of other programs
// inside them may have any keys.
func DecodeOwn(text []byte, v any) error {
	return json.Unmarshal(text, v, jsontext.AllowDuplicateNames(true))
}

// Replaced returns a document with U+FFFD in the place of invalid characters: a byte that is not
// UTF-8, or half of a surrogate pair. Decode refuses these. Programs write them when they cut a
// text. Text that is not JSON is returned unchanged.
func Replaced(document []byte) []byte {
	if utf8.Valid(document) && !bytes.Contains(document, []byte(`\ud`)) && !bytes.Contains(document, []byte(`\uD`)) {
		return document
	}
	replaced := Raw(bytes.Clone(document))
	if replaced.Format(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) != nil {
		return document
	}
	return replaced
}

// AppendText appends text as a JSON string. The functions of this file write the most frequent
// values without reflection; each appends one member.
func AppendText(b []byte, text string) []byte {
	from := len(b)
	b = append(append(b, '"'), text...)
	if plain(b[from+1:]) == len(text) {
		return append(b, '"')
	}
	b, _ = jsontext.AppendQuote(b[:from], text) // invalid UTF-8 is replaced, and said; it was checked on its way in
	return b
}

// AppendKey appends a comma, a key and its colon.
func AppendKey(b []byte, key string) []byte {
	b = append(b, ',', '"')
	b = append(b, key...)
	return append(b, '"', ':')
}

// AppendMember appends a member with a string.
func AppendMember(b []byte, key, text string) []byte { return AppendText(AppendKey(b, key), text) }

// AppendOptional appends a member with a string unless that is empty.
func AppendOptional(b []byte, key, text string) []byte {
	if text == "" {
		return b
	}
	return AppendMember(b, key, text)
}

// AppendOrNull appends a member with a string, or with null if that is empty.
func AppendOrNull(b []byte, key, text string) []byte {
	b = AppendKey(b, key)
	if text == "" {
		return append(b, "null"...)
	}
	return AppendText(b, text)
}

// AppendRaw appends a member with a JSON value. An empty value is left out.
func AppendRaw(b []byte, key string, value Raw) []byte {
	if value == nil {
		return b
	}
	return append(AppendKey(b, key), value...)
}

// AppendTexts appends a member with a list of strings unless that is empty.
func AppendTexts(b []byte, key string, texts []string) []byte {
	b = append(AppendKey(b, key), '[')
	for i, text := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendText(b, text)
	}
	return append(b, ']')
}
