package graph

import "iter"

// Needs iterates over the dependencies of a node, in the order of creation. The loop may
// resolve or remove the current one, but must not remove others. New ones may or may not be
// seen.
func (g *Graph) Needs(n Node) iter.Seq[Edge] { return g.walk(n, needs) }

// Waiting iterates over the dependencies on a node, resolved or not, in the order of creation.
// The rules of Needs apply.
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

// Find returns the oldest dependency with these properties. It walks both lists in parallel,
// because one of them is often short. Both are in the order of creation, so both yield the same
// result.
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
