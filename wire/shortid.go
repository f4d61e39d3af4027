package wire

// How much of an id people see.
const (
	shortUUID  = 8
	longestOwn = 24 // characters, of one that a person has thought of
)

// ShortID is an id as people see it: the beginning of it, by which it can be told from
// others and found again. What a person has thought of is shown whole, if it is not long.
func ShortID(id string) string {
	if isUUID(id) {
		return id[:shortUUID]
	}
	n := 0
	for i := range id {
		if n++; n > longestOwn {
			return id[:i]
		}
	}
	return id
}
