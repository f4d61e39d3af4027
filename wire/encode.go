package wire

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Encode spells a document as one line of JSON, without the line end. Maps
// come out in order of their keys, lists are never null.
func Encode(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}

// Decode reads a document strictly: exact keys, none twice, nothing after it.
// Keys that v has no place for are passed over, so that a newer orchestrator
// can say more to an older reader.
func Decode(text []byte, v any) error {
	return json.Unmarshal(text, v)
}
