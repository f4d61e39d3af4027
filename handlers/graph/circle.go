package graph

import "slices"

// Circle returns the circle that Depend would report for these nodes, or nil.
//
// Resolved dependencies are skipped, because nothing waits along them. They never become open
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
// The path must be the same in a Graph that was restored, whose order may differ. It is:
// skipped nodes, whether ruled out by the order or searched in vain, do not lead to down. So
// skipping them does not change the first path.
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
