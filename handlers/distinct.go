package handlers

import "slices"

// orderedSet are texts in the order in which they came, each once. There may be as
// many as fit into a line, so that a few are looked through and many are not.
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
