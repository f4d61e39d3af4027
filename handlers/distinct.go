package handlers

import "slices"

// An orderedSet is a list of texts without duplicates, in the order of insertion. It may be as
// long as a line, so a long one has a map.
type orderedSet struct {
	texts []string
	known map[string]struct{} // nil while they are few
}

const few = 16

func (o *orderedSet) add(text string) {
	if o.known == nil && len(o.texts) < few {
		if !slices.Contains(o.texts, text) {
			o.texts = append(o.texts, text)
		}
		return
	}
	if o.known == nil {
		o.known = make(map[string]struct{})
		for _, t := range o.texts {
			o.known[t] = struct{}{}
		}
	}
	if _, known := o.known[text]; !known {
		o.known[text] = struct{}{}
		o.texts = append(o.texts, text)
	}
}
