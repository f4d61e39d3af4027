package handlers

import "slices"

// An orderedSet is a list of texts without duplicates, in the order of insertion. It may be as
// long as a line, so a long one has a map.
type orderedSet struct {
	texts []string
	known map[string]struct{} // nil while they are few
}

const few = 16

func (d *orderedSet) add(text string) {
	if d.known == nil && len(d.texts) < few {
		if !slices.Contains(d.texts, text) {
			d.texts = append(d.texts, text)
		}
		return
	}
	if d.known == nil {
		d.known = make(map[string]struct{})
		for _, t := range d.texts {
			d.known[t] = struct{}{}
		}
	}
	if _, known := d.known[text]; !known {
		d.known[text] = struct{}{}
		d.texts = append(d.texts, text)
	}
}
