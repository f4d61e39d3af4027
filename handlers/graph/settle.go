package graph

// settle restores the order after Put. For one dependency it does what Depend would have done;
// for more it sorts all nodes.
func (g *Graph) settle() {
	switch {
	case g.unordered == 0:
		return
	case g.unordered > 1:
		g.order.arrange(g.sorted())
	default:
		d := &g.edges[g.late]
		down, up := d.ends[needs], d.ends[waiting]
		// It may be gone, and its edge be that of another one, which agrees.
		if d.gates() && down != up && !g.order.before(up, down) && !g.search(down, up) {
			g.reorder(down, up)
		}
	}
	g.unordered = 0
}

// sorted returns all nodes in topological order.
func (g *Graph) sorted() []Node {
	sorted := make([]Node, 0, len(g.nodes))
	open := make([]int32, len(g.nodes))
	for n := range g.nodes {
		if open[n] = g.nodes[n].open; open[n] == 0 {
			sorted = append(sorted, Node(n))
		}
	}
	for i := 0; i < len(sorted); i++ {
		for e := g.nodes[sorted[i]].first[waiting]; e != none; e = g.edges[e].next[waiting] {
			if d := &g.edges[e]; d.gates() {
				down := d.ends[needs]
				if open[down]--; open[down] == 0 {
					sorted = append(sorted, down)
				}
			}
		}
	}
	return sorted
}
