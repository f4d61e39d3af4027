package graph

import "slices"

// side is one of two alternating searches: from up along its needs, and from down along the
// waiting nodes. Both stay between the two nodes in the order, because no path leads outside.
type side struct {
	found []Node
	at    int  // index of the current node
	edge  Edge // of the one at, to go along next
	mark  uint32
}

// ended reports whether a side has nothing left to search.
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

// reorder moves up before down after a search in which they did not meet. The side that has
// ended moves past the start of the other one and keeps its relative order. All nodes that must
// stay before or after it are already there.
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
