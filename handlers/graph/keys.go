package graph

// keys holds the keys of dependencies. They are separate because few dependencies have one, and
// because the garbage collector does not scan edges without pointers.
type keys struct {
	texts []string // the first is "", for dependencies without a key
	spare []int32  // places that are free again
}

func newKeys() keys { return keys{texts: []string{""}} }

func (k *keys) at(place int32) string { return k.texts[place] }

// keep stores a key and returns its place.
func (k *keys) keep(key string) int32 {
	if key == "" {
		return 0
	}
	if last := len(k.spare) - 1; last >= 0 {
		place := k.spare[last]
		k.spare = k.spare[:last]
		k.texts[place] = key
		return place
	}
	k.texts = append(k.texts, key)
	return int32(len(k.texts) - 1)
}

// drop forgets the key at a place.
func (k *keys) drop(place int32) {
	if place > 0 {
		k.texts[place] = ""
		k.spare = append(k.spare, place)
	}
}
