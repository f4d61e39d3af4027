package wire

// FillIn is a task response in which the metadata says what m knows and it did not.
func (m TaskMetadata) FillIn(response Raw) Raw {
	spelled, err := Encode(m)
	if err != nil { // texts and numbers can be spelled
		return response
	}
	block := Raw("{}")
	if from, to, ok := within(response, "metadata"); ok && isObject(response[from:to]) {
		block = response[from:to]
	}
	var known Object
	if known.ReadObject(spelled, scannedBefore, "") != nil {
		return response
	}
	for _, member := range known.members {
		if from, to, ok := within(block, string(member.key)); !ok || isNull(block[from:to]) {
			block = setMember(block, string(member.key), member.value)
		}
	}
	return setMember(response, "metadata", block)
}
