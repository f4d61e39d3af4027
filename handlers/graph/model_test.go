package graph

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A model is a Graph in its simplest form: dependencies by their numbers, all scanned for every
// query.
type model struct {
	nodes int
	edges map[int64]*View
	last  int64
}

func newModel() *model { return &model{edges: make(map[int64]*View)} }

// those returns the dependencies that fit, in the order of creation.
func (m *model) those(fit func(*View) bool) (found []View) {
	for _, number := range slices.Sorted(maps.Keys(m.edges)) {
		if v := m.edges[number]; fit(v) {
			found = append(found, *v)
		}
	}
	return found
}

func gating(v *View) bool { return (v.Kind == Blocks || v.Kind == Input) && !v.Resolved }

func (m *model) open(n Node) int {
	return len(m.those(func(v *View) bool { return v.Down == n && gating(v) }))
}

// circle searches depth first, without an order that excludes nodes.
func (m *model) circle(down, up Node) []Node {
	if down == up {
		return []Node{down, up}
	}
	needs := make(map[Node][]Node)
	for _, v := range m.those(gating) {
		needs[v.Down] = append(needs[v.Down], v.Up)
	}
	seen := make(map[Node]bool)
	var way func(n Node) []Node
	way = func(n Node) []Node {
		if n == down {
			return []Node{n}
		}
		seen[n] = true
		for _, next := range needs[n] {
			if seen[next] {
				continue
			}
			if rest := way(next); rest != nil {
				return append([]Node{n}, rest...)
			}
		}
		return nil
	}
	if rest := way(up); rest != nil {
		return append([]Node{down}, rest...)
	}
	return nil
}

func (m *model) depend(down, up Node, kind Kind, key string) []Node {
	if kind == Blocks || kind == Input {
		if circle := m.circle(down, up); circle != nil {
			return circle
		}
	}
	m.last++
	m.edges[m.last] = &View{Down: down, Up: up, Kind: kind, Key: key, Number: m.last}
	return nil
}

func (m *model) resolve(number, at int64) bool {
	v := m.edges[number]
	if v == nil || v.Resolved {
		return false
	}
	held := gating(v)
	v.Resolved, v.At = true, at
	return held && m.open(v.Down) == 0
}

func (m *model) remove(number int64) bool {
	v := m.edges[number]
	delete(m.edges, number)
	return gating(v) && m.open(v.Down) == 0
}

// find returns the number of the oldest dependency with these members, or 0.
func (m *model) find(down, up Node, kind Kind, key string) int64 {
	found := m.those(func(v *View) bool { return v.Down == down && v.Up == up && v.Kind == kind && v.Key == key })
	if len(found) == 0 {
		return 0
	}
	return found[0].Number
}

// views returns the views of some edges.
func views(g *Graph, edges func(func(Edge) bool)) (found []View) {
	for e := range edges {
		found = append(found, g.Edge(e))
	}
	return found
}

// requireSame requires that a Graph equals the model and is sound.
func requireSame(t *testing.T, m *model, g *Graph) {
	t.Helper()
	require.Equal(t, m.nodes, g.Len())
	require.Equal(t, m.last, g.Last())
	all := m.those(func(*View) bool { return true })
	require.Equal(t, all, views(g, g.All()))
	needs, waiting, open := make(map[Node][]View), make(map[Node][]View), make(map[Node]int)
	for _, v := range all {
		needs[v.Down] = append(needs[v.Down], v)
		waiting[v.Up] = append(waiting[v.Up], v)
		if gating(&v) {
			open[v.Down]++
		}
	}
	for n := range Node(m.nodes) {
		require.Equal(t, open[n], g.Open(n))
		require.Equal(t, needs[n], views(g, g.Needs(n)))
		require.Equal(t, waiting[n], views(g, g.Waiting(n)))
	}
	requireSound(t, g)
}

// requireSound requires that the order is one list of all nodes and that it holds.
func requireSound(t *testing.T, g *Graph) {
	t.Helper()
	g.settle()
	count, label := 0, uint64(0)
	for p := g.order.places[0].next; p != 0; p = g.order.places[p].next {
		require.Greater(t, g.order.places[p].label, label)
		require.Equal(t, p, g.order.places[g.order.places[p].next].prev)
		label = g.order.places[p].label
		count++
	}
	require.Less(t, label, ceiling)
	require.Equal(t, g.Len(), count)
	for e := range g.edges {
		if d := &g.edges[e]; d.gates() && !g.order.before(d.ends[waiting], d.ends[needs]) {
			require.Failf(t, "the order does not hold", "%+v", g.Edge(Edge(e)))
		}
	}
}

// restored returns a Graph rebuilt from its dependencies.
func restored(g *Graph) *Graph {
	again := New()
	for range g.Len() {
		again.Add()
	}
	for e := range g.All() {
		again.Put(g.Edge(e))
	}
	again.Skip(g.Last())
	return again
}
