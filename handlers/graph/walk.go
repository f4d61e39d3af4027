package graph

import "iter"

// Needs is what a node depends on, in the order of creation. The one just
// yielded may be resolved or removed, any other must not be removed, and what
// is new may or may not be seen.
func (g *Graph) Needs(n Node) iter.Seq[Edge] { return g.walk(n, needs) }

// Waiting is what depends on a node, resolved or not, in the order of creation.
// The same holds as for Needs.
func (g *Graph) Waiting(n Node) iter.Seq[Edge] { return g.walk(n, waiting) }

func (g *Graph) walk(n Node, at end) iter.Seq[Edge] {
	return func(yield func(Edge) bool) {
		for e := g.nodes[n].first[at]; e != none; {
			next := g.edges[e].next[at] // now: e may be removed
			if !yield(e) {
				return
			}
			e = next
		}
	}
}

// Find finds the oldest dependency that is all this. It looks through what down
// needs and what waits for up at once, since one of them is often short; both
// are in the order of creation, so both would find the same one.
func (g *Graph) Find(down, up Node, kind Kind, key string) (Edge, bool) {
	a, b := g.nodes[down].first[needs], g.nodes[up].first[waiting]
	for a != none && b != none {
		for _, e := range [2]Edge{a, b} {
			d := &g.edges[e]
			if d.ends == [2]Node{needs: down, waiting: up} && d.kind == kind && g.keys.at(d.key) == key {
				return e, true
			}
		}
		a, b = g.edges[a].next[needs], g.edges[b].next[waiting]
	}
	return none, false
}
