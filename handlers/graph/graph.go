package graph

import (
	"fmt"
	"iter"
)

// Node is the number of a node, from 0. A node depends on other nodes.
type Node int32

// Edge identifies a dependency until it is removed. The value may be reused after that.
type Edge int32

// none is the Edge value for no edge.
const none Edge = -1

// Kind is the kind of a dependency.
type Kind uint8

const (
	Blocks  Kind = iota // blocks until it is resolved
	Input               // blocks, and delivers an input
	Soft                // does not block
	Related             // does not block
)

// blocks reports whether dependencies of this kind hold back.
func (k Kind) blocks() bool { return k <= Input }

// View is the current state of a dependency.
type View struct {
	Down     Node   `json:"down"`
	Up       Node   `json:"up"`
	Kind     Kind   `json:"kind,omitzero"`
	Key      string `json:"key,omitzero"`
	Resolved bool   `json:"resolved,omitzero"`
	At       int64  `json:"at,omitzero"`      // the stamp it was resolved with
	Number   int64  `json:"number"`           // in the order of creation, from 1, never given twice
	Private  bool   `json:"private,omitzero"` // the result of Up is not shown in Down
}

// A Graph holds nodes and their dependencies. Only one goroutine may use it at a time, even for
// queries, because they use its buffers.
type Graph struct {
	nodes  []node
	unused []Node // removed
	edges  []edge
	stamps []stamp // of each edge
	free   Edge    // removed, the first of a list along next[needs]

	keys   keys
	ledger ledger
	order  order

	unordered int  // number of dependencies from Put that may violate the order
	late      Edge // the latest of them

	marked uint32 // latest mark that was used
	sides  [2]side
	trail  []Edge
}

// end selects one end of a dependency, and the list at its node.
type end uint8

const (
	needs   end = iota // at its down node, all that this node depends on
	waiting            // at its up node, all that depends on this node
)

type node struct {
	first, last [2]Edge
	open        int32
	mark        uint32 // of the latest search that visited it
}

// edge holds the members that searches use. The rest is in stamp, so that searches touch less
// memory.
type edge struct {
	ends       [2]Node
	next, prev [2]Edge
	key        int32
	kind       Kind
	resolved   bool
	private    bool
}

// stamp is the number of a dependency, and the stamp of its resolution.
type stamp struct{ number, at int64 }

// gone is the kind of a dependency that is removed.
const gone Kind = 255

// gates reports whether a dependency holds its down node back.
func (e *edge) gates() bool { return e.kind.blocks() && !e.resolved }

// New returns an empty Graph.
func New() *Graph {
	return &Graph{free: none, keys: newKeys(), order: newOrder()}
}

// Add adds a node, after all others. It may have the number of a removed one.
func (g *Graph) Add() Node {
	if last := len(g.unused) - 1; last >= 0 {
		n := g.unused[last]
		g.unused = g.unused[:last]
		g.order.moveToEnd(n)
		return n
	}
	n := Node(len(g.nodes))
	g.nodes = append(g.nodes, node{first: [2]Edge{none, none}, last: [2]Edge{none, none}})
	g.order.add()
	return n
}

// RemoveNode removes a node and its dependencies in both directions. It must not block another
// node.
func (g *Graph) RemoveNode(n Node) {
	for _, at := range [...]end{needs, waiting} {
		for e := range g.walk(n, at) {
			g.Remove(e)
		}
	}
	g.unused = append(g.unused, n)
}

// Len returns the number of nodes.
func (g *Graph) Len() int { return len(g.nodes) - len(g.unused) }

// Open returns the number of dependencies that block a node.
func (g *Graph) Open(n Node) int { return int(g.nodes[n].open) }

// Edge returns the current state of a dependency.
func (g *Graph) Edge(e Edge) View {
	d, s := &g.edges[e], &g.stamps[e]
	return View{
		Down: d.ends[needs], Up: d.ends[waiting], Kind: d.kind, Key: g.keys.at(d.key),
		Resolved: d.resolved, At: s.at, Number: s.number, Private: d.private,
	}
}

// Depend makes down depend on up. A blocking dependency that would close a circle is refused with
// that circle: nodes from down over up back to down, each waiting for the next. The key is the key
// of an Input, otherwise "".
//
// The Graph does not know which nodes have ended; call Resolve for an up node that has.
func (g *Graph) Depend(down, up Node, kind Kind, key string) (Edge, []Node) {
	if kind.blocks() {
		if circle := g.Circle(down, up); circle != nil {
			return none, circle
		}
		if !g.order.before(up, down) {
			g.reorder(down, up)
		}
	}
	return g.attach(View{Down: down, Up: up, Kind: kind, Key: key, Number: g.ledger.last + 1}), nil
}

// Put appends a dependency of another Graph in constant time, without looking for circles. The
// blocking dependencies must not form one. Dependencies must be put in the order of their
// numbers; Put panics otherwise.
func (g *Graph) Put(v View) Edge {
	if v.Number <= g.ledger.last {
		panic(fmt.Sprintf("graph: dependency %d is put after %d", v.Number, g.ledger.last))
	}
	e := g.attach(v)
	if g.edges[e].gates() && !g.order.before(v.Up, v.Down) {
		g.unordered++
		g.late = e
	}
	return e
}

// Resolve marks a dependency as resolved, with a stamp. It reports whether that was the last
// one that blocked its down node. Resolving it again has no effect.
func (g *Graph) Resolve(e Edge, at int64) (unblocked bool) {
	d := &g.edges[e]
	if d.kind == gone || d.resolved {
		return false
	}
	held := d.gates()
	d.resolved, g.stamps[e].at = true, at
	return held && g.release(d.ends[needs])
}

// Hide marks a dependency as private: its result is not shown.
func (g *Graph) Hide(e Edge) { g.edges[e].private = true }

// Show undoes Hide.
func (g *Graph) Show(e Edge) { g.edges[e].private = false }

// Remove removes a dependency. It reports whether that was the last one that blocked its down
// node.
func (g *Graph) Remove(e Edge) (unblocked bool) {
	d := &g.edges[e]
	if d.kind == gone {
		return false
	}
	g.unlink(e, needs)
	g.unlink(e, waiting)
	held, down := d.gates(), d.ends[needs]
	g.keys.drop(d.key)
	*d, g.stamps[e] = edge{kind: gone, next: [2]Edge{needs: g.free}}, stamp{}
	g.free = e
	g.ledger.strike(g.stamps)
	return held && g.release(down)
}

// release decrements the number of dependencies that block a node.
func (g *Graph) release(n Node) (unblocked bool) {
	g.nodes[n].open--
	return g.nodes[n].open == 0
}

// attach appends a dependency to the lists of its nodes.
func (g *Graph) attach(v View) Edge {
	e := g.free
	if e != none {
		g.free = g.edges[e].next[needs]
	} else {
		e = Edge(len(g.edges))
		g.edges = append(g.edges, edge{})
		g.stamps = append(g.stamps, stamp{})
	}
	d := &g.edges[e]
	*d = edge{
		ends: [2]Node{needs: v.Down, waiting: v.Up},
		key:  g.keys.keep(v.Key), kind: v.Kind, resolved: v.Resolved, private: v.Private,
	}
	g.stamps[e] = stamp{number: v.Number, at: v.At}
	if d.gates() {
		g.nodes[v.Down].open++
	}
	g.link(e, needs)
	g.link(e, waiting)
	g.ledger.enter(v.Number, e)
	return e
}

func (g *Graph) link(e Edge, at end) {
	d := &g.edges[e]
	n := &g.nodes[d.ends[at]]
	d.prev[at], d.next[at] = n.last[at], none
	if n.last[at] != none {
		g.edges[n.last[at]].next[at] = e
	} else {
		n.first[at] = e
	}
	n.last[at] = e
}

func (g *Graph) unlink(e Edge, at end) {
	d := &g.edges[e]
	n := &g.nodes[d.ends[at]]
	if d.prev[at] != none {
		g.edges[d.prev[at]].next[at] = d.next[at]
	} else {
		n.first[at] = d.next[at]
	}
	if d.next[at] != none {
		g.edges[d.next[at]].prev[at] = d.prev[at]
	} else {
		n.last[at] = d.prev[at]
	}
}

// settle restores the order after Put. For one dependency it works like Depend; for more it sorts
// all nodes.
func (g *Graph) settle() {
	switch {
	case g.unordered == 0:
		return
	case g.unordered > 1:
		g.order.arrange(g.sorted())
	default:
		d := &g.edges[g.late]
		down, up := d.ends[needs], d.ends[waiting]
		// The last dependency may be removed, and its edge used for another one, which agrees.
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

// Needs iterates over the dependencies of a node, in the order of creation. The loop may resolve or
// remove the current one, but must not remove any other. New ones may or may not be seen.
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
