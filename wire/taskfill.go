package wire

import (
	"orchestrator/wire/object"
)

// FillIn is a task response in which the metadata says what m knows and it did not.
func (m TaskMetadata) FillIn(response Raw) Raw {
	spelled, err := object.Encode(m)
	if err != nil { // texts and numbers can be spelled
		return response
	}
	block := Raw("{}")
	if from, to, ok := within(response, "metadata"); ok && object.IsObject(response[from:to]) {
		block = response[from:to]
	}
	var known object.Reader
	if known.Read(spelled, object.AnyDepth, "") != nil {
		return response
	}
	for _, member := range known.Members {
		if from, to, ok := within(block, string(member.Key)); !ok || object.IsNull(block[from:to]) {
			block = setMember(block, string(member.Key), member.Value)
		}
	}
	return setMember(response, "metadata", block)
}
