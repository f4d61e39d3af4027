package graph

import (
	"cmp"
	"slices"
)

// order keeps all nodes in a list, each after the nodes that it waits for. Labels increase along
// the list, so comparing two nodes compares their labels. A node is moved by giving it a label
// between two labels. If no label is free, the neighbors get new labels, further apart.
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

// moveToEnd moves a node behind all others.
func (o *order) moveToEnd(n Node) {
	o.takeOut([]Node{n})
	o.insert(int32(n)+1, o.places[0].prev)
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

// Circle returns the circle that Depend would report for these nodes, or nil.
//
// Resolved dependencies are skipped, because no node waits along them. They never become open
// again, so a circle through one never blocks anything.
func (g *Graph) Circle(down, up Node) []Node {
	if down == up {
		return []Node{down, down}
	}
	g.settle()
	if g.order.before(up, down) || !g.search(down, up) {
		return nil
	}
	return g.path(down, up)
}

// path returns the first path from down over up to down; one must exist. It searches depth
// first, follows the needs of each node in the order of creation, and visits no node twice.
//
// The path must be the same in a restored Graph with another order. It is: skipped nodes, whether
// ruled out by the order or searched in vain, do not lead to down. So skipping them does not change
// the first path.
func (g *Graph) path(down, up Node) []Node {
	mark := g.mark()
	g.nodes[up].mark = mark
	g.trail = g.trail[:0]
	e := g.nodes[up].first[needs]
	for {
		for e == none {
			last := len(g.trail) - 1
			if last < 0 {
				return nil
			}
			e = g.edges[g.trail[last]].next[needs]
			g.trail = g.trail[:last]
		}
		d := &g.edges[e]
		n := d.ends[waiting]
		switch {
		case !d.gates() || g.nodes[n].mark == mark || g.order.before(n, down):
			e = d.next[needs]
		case n == down:
			return g.along(down, up)
		default:
			g.nodes[n].mark = mark
			g.trail = append(g.trail, e)
			e = g.nodes[n].first[needs]
		}
	}
}

// along returns the nodes of the circle that contains the trail.
func (g *Graph) along(down, up Node) []Node {
	circle := append(slices.Grow([]Node(nil), len(g.trail)+3), down, up)
	for _, e := range g.trail {
		circle = append(circle, g.edges[e].ends[waiting])
	}
	return append(circle, down)
}

// side is one of two alternating searches: from up along its needs, and from down along the
// waiting nodes. Both stay between the two nodes in the order, because no path leads outside.
type side struct {
	found []Node
	at    int  // index of the current node
	edge  Edge // of the one at, to go along next
	mark  uint32
}

// ended reports whether a side has searched all its nodes.
func (s *side) ended() bool { return s.at == len(s.found) }

// search reports whether there is a path from down to up along waiting nodes. It searches from
// both ends in turn, until they meet or one side ends.
func (g *Graph) search(down, up Node) (met bool) {
	marks := [2]uint32{g.mark(), g.mark()}
	for along, from := range [2]Node{needs: up, waiting: down} {
		g.nodes[from].mark = marks[along]
		s := &g.sides[along]
		*s = side{found: append(s.found[:0], from), edge: g.nodes[from].first[along], mark: marks[along]}
	}
	for {
		for along := range g.sides {
			s := &g.sides[along]
			if !g.advance(s, end(along)) {
				return false
			}
			if g.step(s, end(along), marks[1-along], down, up) {
				return true
			}
		}
	}
}

// advance moves to the next node with an edge to follow.
func (g *Graph) advance(s *side, along end) bool {
	for s.edge == none {
		if s.at++; s.ended() {
			return false
		}
		s.edge = g.nodes[s.found[s.at]].first[along]
	}
	return true
}

// step follows one edge and reports whether the two sides have met.
func (g *Graph) step(s *side, along end, other uint32, down, up Node) (met bool) {
	d := &g.edges[s.edge]
	s.edge = d.next[along]
	if !d.gates() {
		return false
	}
	n := d.ends[1-along]
	switch mark := g.nodes[n].mark; {
	case mark == other:
		return true
	case mark == s.mark, along == needs && g.order.before(n, down), along == waiting && g.order.before(up, n):
		return false
	}
	g.nodes[n].mark = s.mark
	s.found = append(s.found, n)
	return false
}

// mark returns a mark that no node has.
func (g *Graph) mark() uint32 {
	g.marked++
	if g.marked == 0 { // all have been used
		for n := range g.nodes {
			g.nodes[n].mark = 0
		}
		g.marked = 1
	}
	return g.marked
}

// reorder moves up before down after a search without a path between them. The side that has ended
// moves past the start of the other one and keeps its relative order. All nodes that must stay
// before or after it are already there.
func (g *Graph) reorder(down, up Node) {
	back, forth := &g.sides[needs], &g.sides[waiting]
	if back.ended() {
		slices.SortFunc(back.found, g.order.compare)
		g.order.moveBefore(down, back.found)
	} else {
		slices.SortFunc(forth.found, g.order.compare)
		g.order.moveAfter(up, forth.found)
	}
}
