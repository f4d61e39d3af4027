package graph

import "cmp"

// order keeps all nodes in a list, each after the nodes that it waits for. Labels increase
// along the list, so comparing two nodes compares their labels. A node is moved by giving it a
// label between two others. If there is none, the neighbors get new labels, further apart.
type order struct {
	places []place // of node n at n+1; the first is before and after all others
}

type place struct {
	label      uint64
	next, prev int32
}

const (
	ceiling = uint64(1) << 63 // all labels are below, and above 0
	stride  = uint64(1) << 31 // between labels at either end of the row
)

func newOrder() order { return order{places: make([]place, 1)} }

// add appends the next node.
func (o *order) add() {
	o.places = append(o.places, place{})
	o.insert(int32(len(o.places)-1), o.places[0].prev)
}

func (o *order) before(a, b Node) bool { return o.places[a+1].label < o.places[b+1].label }

func (o *order) compare(a, b Node) int {
	return cmp.Compare(o.places[a+1].label, o.places[b+1].label)
}

// moveBefore moves nodes directly before another one.
func (o *order) moveBefore(n Node, moved []Node) {
	o.takeOut(moved)
	o.putIn(o.places[n+1].prev, moved)
}

// moveAfter moves nodes directly after another one.
func (o *order) moveAfter(n Node, moved []Node) {
	o.takeOut(moved)
	o.putIn(int32(n)+1, moved)
}

func (o *order) takeOut(nodes []Node) {
	for _, n := range nodes {
		p := o.places[n+1]
		o.places[p.prev].next, o.places[p.next].prev = p.next, p.prev
	}
}

func (o *order) putIn(after int32, nodes []Node) {
	for _, n := range nodes {
		o.insert(int32(n)+1, after)
		after = int32(n) + 1
	}
}

// arrange reorders the list. Nodes that are not given stay before all others.
func (o *order) arrange(nodes []Node) {
	o.takeOut(nodes)
	o.putIn(o.places[0].prev, nodes)
}

// insert puts a place after another one.
func (o *order) insert(p, after int32) {
	next := o.places[after].next
	label, ok := o.between(after, next)
	if !ok {
		o.spread(max(after, next)) // one of them may be the end, not both: then there is room
		label, _ = o.between(after, next)
	}
	o.places[p] = place{label: label, next: next, prev: after}
	o.places[after].next, o.places[next].prev = p, p
}

// between returns a label between two neighbors, if there is one. At the ends of the list it
// leaves a wide gap, because most nodes are added there.
func (o *order) between(a, b int32) (label uint64, ok bool) {
	low, high := o.places[a].label, o.places[b].label
	if b == 0 {
		high = ceiling
	}
	half := (high - low) / 2
	switch {
	case a == 0 && b == 0:
		return half, true
	case b == 0:
		return low + min(half, stride), half > 0
	case a == 0:
		return high - min(half, stride), half > 0
	}
	return low + half, half > 0
}

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
