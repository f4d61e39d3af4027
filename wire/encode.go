package wire

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Encode spells a document as one line of JSON, without the line end. Maps
// come out in order of their keys, lists are never null, and what is jsontext.Value leaves
// as it came.
func Encode(v any) ([]byte, error) { return json.Marshal(v, asIs) }

var asIs = json.JoinOptions(
	json.Deterministic(true),
	jsontext.AllowInvalidUTF8(true),
	jsontext.AllowDuplicateNames(true), // of Raw: ours have none
	jsontext.PreserveRawStrings(true),
)

// Decode reads a document strictly: exact keys, none twice, nothing after it.
// Keys that v has no place for are passed over, so that a newer orchestrator
// can say more to an older reader.
func Decode(text []byte, v any) error {
	return json.Unmarshal(text, v)
}

// DecodeOwn is Decode for what the orchestrator has written itself, for those
// who trust it: there may be documents of others in it, which are as they are.
func DecodeOwn(text []byte, v any) error {
	return json.Unmarshal(text, v, jsontext.AllowDuplicateNames(true))
}
