package graph

import "fmt"

// Depend makes down depend on up. A blocking dependency that would close a circle is refused
// with that circle: nodes from down over up back to down, each waiting for the next. The key is
// that of an Input, otherwise "".
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

// Hide marks a dependency whose result is not shown.
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
