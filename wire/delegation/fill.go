package delegation

import (
	"orchestrator/wire/object"
)

// FillIn returns a task response whose metadata is completed from m. Existing members are kept.
func (m Metadata) FillIn(response object.Raw) object.Raw {
	spelled, err := object.Encode(m)
	if err != nil { // strings and numbers can always be encoded
		return response
	}
	block := object.Raw("{}")
	if from, to, ok := object.Place(response, "metadata"); ok && object.IsObject(response[from:to]) {
		block = response[from:to]
	}
	var known object.Reader
	if known.Read(spelled, object.AnyDepth, "") != nil {
		return response
	}
	for _, member := range known.Members {
		if from, to, ok := object.Place(block, string(member.Key)); !ok || object.IsNull(block[from:to]) {
			block = setMember(block, string(member.Key), member.Value)
		}
	}
	return setMember(response, "metadata", block)
}
