package graph

// spread gives new labels to the neighbors of a place. It doubles the range of labels until the
// range is sparse enough; a wider range has to be sparser. So large ranges are rare, and an
// insertion relabels on average a logarithmic number of nodes: Bender, Cole, Demaine,
// Farach-Colton and Zito, Two simplified algorithms for maintaining order in a list, 2002.
func (o *order) spread(around int32) {
	first, last, count := around, around, uint64(1)
	limit := 1.0
	for size := uint64(2); ; size *= 2 {
		low := o.places[around].label &^ (size - 1)
		for p := o.places[first].prev; p != 0 && o.places[p].label >= low; p = o.places[p].prev {
			first, count = p, count+1
		}
		for p := o.places[last].next; p != 0 && o.places[p].label-low < size; p = o.places[p].next {
			last, count = p, count+1
		}
		// By the time that all labels are in the range, this is more than there
		// can be nodes.
		limit *= 1.5
		if step := size / (count + 1); float64(count) <= limit && step > 1 {
			o.relabel(first, last, low, step)
			return
		}
	}
}

// relabel gives labels that are a step apart.
func (o *order) relabel(first, last int32, label, step uint64) {
	for p := first; ; p = o.places[p].next {
		label += step
		o.places[p].label = label
		if p == last {
			return
		}
	}
}
