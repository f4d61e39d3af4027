package graph

// keys are the keys of dependencies. They are kept apart because few have one,
// and because edges without pointers are never looked at by the collector.
type keys struct {
	texts []string // the first is that of those without
	spare []int32  // places that are free again
}

func newKeys() keys { return keys{texts: []string{""}} }

func (k *keys) at(place int32) string { return k.texts[place] }

// keep keeps a key and says where.
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
