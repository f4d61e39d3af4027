package wire

import (
	"orchestrator/wire/object"
)

// How much of an id people see.
const (
	shortUUID = 8
	maxOwn    = 24 // characters of an id that a person has chosen
)

// ShortID returns an id for people. A UUID is cut to a prefix that identifies it. An id that a
// person has chosen is cut only if it is long.
func ShortID(id string) string {
	if object.IsUUID(id) {
		return id[:shortUUID]
	}
	n := 0
	for i := range id {
		if n++; n > maxOwn {
			return id[:i]
		}
	}
	return id
}
