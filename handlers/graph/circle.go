package graph

import "slices"

// Circle is the circle that down would close if it had to wait for up: what
// Depend would answer. Nil is fine.
//
// A dependency that is resolved is passed over, since nothing waits along it any
// more. It never becomes open again, so a circle that leads over it never holds
// anything up.
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

// path is the first way from down over up to down, of which it is known that
// there is one: depth first, along what each node needs in the order of
// creation, and to no node twice.
//
// It must be the same in a Graph that has been put together again, whose order
// may be another. It is: nodes that the order rules out do not lead to down, and
// neither do nodes that have been left again. Passing over either kind is
// passing over what would have found nothing, so it is always the very first
// way, whichever of them are passed over.
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

// along is the nodes of the circle that the trail is part of.
func (g *Graph) along(down, up Node) []Node {
	circle := append(slices.Grow([]Node(nil), len(g.trail)+3), down, up)
	for _, e := range g.trail {
		circle = append(circle, g.edges[e].ends[waiting])
	}
	return append(circle, down)
}
