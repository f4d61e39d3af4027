package graph

import "slices"

// side is one of two searches that go on at once: from up along what is needed,
// and from down along what waits. Both stay between the two in the order, for
// outside of that there is nothing in the way and no way to each other.
type side struct {
	found []Node
	at    int  // those before have been left
	edge  Edge // of the one at, to go along next
	mark  uint32
}

// ended reports whether a side has found all that there is to find.
func (s *side) ended() bool { return s.at == len(s.found) }

// search reports whether there is a way from down to up along what waits. It goes
// from both ends, a step each in turn, until they meet or either has nowhere
// left to go.
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

// advance goes on to the next node that has something to go along.
func (g *Graph) advance(s *side, along end) bool {
	for s.edge == none {
		if s.at++; s.ended() {
			return false
		}
		s.edge = g.nodes[s.found[s.at]].first[along]
	}
	return true
}

// step goes along one dependency, and reports whether the other side has been at
// its end.
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

// mark is a mark that no node has.
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

// reorder brings up before down, after a search in which they did not meet. The
// side that has ended moves past the start of the other one, keeping the order
// among its own: all that it would have to keep behind it, or before it, is
// there already.
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
