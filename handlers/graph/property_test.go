package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A pair is a Graph and its model.
type pair struct {
	t     *testing.T
	graph *Graph
	model *model
	most  int // nodes
	// How often rare cases were seen.
	circles, unblocked int
}

func newPair(t *testing.T, most int) *pair {
	return &pair{t: t, graph: New(), model: newModel(), most: most}
}

// A pick makes the choices: it returns one of n.
type pick func(n int) int

func (p *pair) node(choose pick) Node { return Node(choose(p.model.nodes)) }

var keysToTry = []string{"", "schema", "api"}

// act does one thing to both and requires equal answers.
func (p *pair) act(choose pick) {
	what := choose(32)
	switch {
	case p.model.nodes == 0, what == 0 && p.model.nodes < p.most:
		require.EqualValues(p.t, p.model.nodes, p.graph.Add())
		p.model.nodes++
	case what == 1:
		p.graph = restored(p.graph)
	case what < 14:
		p.depend(p.node(choose), p.node(choose), Kind(choose(4)), keysToTry[choose(3)])
	case what < 17:
		down, up := p.node(choose), p.node(choose)
		require.Equal(p.t, p.model.circle(down, up), p.graph.Circle(down, up))
	case what < 18:
		p.find(p.node(choose), p.node(choose), Kind(choose(4)), keysToTry[choose(3)])
	case len(p.model.edges) == 0:
	case what < 19:
		p.put(choose)
	case what < 23:
		p.resolve(p.any(choose), int64(choose(100)))
	case what < 30:
		p.remove(p.any(choose))
	default:
		p.finish(p.node(choose), choose)
	}
}

// any returns one of all dependencies.
func (p *pair) any(choose pick) View {
	all := p.model.those(func(*View) bool { return true })
	return all[choose(len(all))]
}

func (p *pair) edge(v View) Edge {
	e, there := p.graph.Numbered(v.Down, v.Number)
	require.True(p.t, there)
	require.Equal(p.t, v, p.graph.Edge(e))
	return e
}

func (p *pair) depend(down, up Node, kind Kind, key string) {
	want := p.model.depend(down, up, kind, key)
	e, circle := p.graph.Depend(down, up, kind, key)
	require.Equal(p.t, want, circle)
	if circle != nil {
		p.circles++
		return
	}
	require.Equal(p.t, View{Down: down, Up: up, Kind: kind, Key: key, Number: p.model.last}, p.graph.Edge(e))
}

func (p *pair) find(down, up Node, kind Kind, key string) {
	want := p.model.find(down, up, kind, key)
	e, there := p.graph.Find(down, up, kind, key)
	require.Equal(p.t, want != 0, there)
	if there {
		require.Equal(p.t, want, p.graph.Edge(e).Number)
	}
}

// put puts a dependency that closes no circle, as a caller does that has checked first.
func (p *pair) put(choose pick) {
	v := View{Down: p.node(choose), Up: p.node(choose), Kind: Kind(choose(4)), Resolved: choose(4) == 0}
	if v.Resolved {
		v.At = 7
	}
	if gating(&v) && p.model.circle(v.Down, v.Up) != nil {
		return
	}
	p.model.last += 1 + int64(choose(3))
	v.Number = p.model.last
	p.model.edges[v.Number] = &v
	require.Equal(p.t, v, p.graph.Edge(p.graph.Put(v)))
}

func (p *pair) resolve(v View, at int64) {
	e := p.edge(v)
	want := p.model.resolve(v.Number, at)
	require.Equal(p.t, want, p.graph.Resolve(e, at))
	require.False(p.t, p.graph.Resolve(e, at+1))
	if want {
		p.unblocked++
	}
}

func (p *pair) remove(v View) {
	e := p.edge(v)
	require.Equal(p.t, p.model.remove(v.Number), p.graph.Remove(e))
	_, there := p.graph.Numbered(v.Down, v.Number)
	require.False(p.t, there)
}

// finish resolves or removes all dependencies on a node, or all that it has, during a walk over
// them.
func (p *pair) finish(n Node, choose pick) {
	edges, fit := p.graph.Waiting(n), func(v *View) bool { return v.Up == n }
	if choose(2) == 0 {
		edges, fit = p.graph.Needs(n), func(v *View) bool { return v.Down == n }
	}
	var seen []View
	want := p.model.those(fit)
	for e := range edges {
		v := p.graph.Edge(e)
		seen = append(seen, v)
		if choose(2) == 0 {
			require.Equal(p.t, p.model.remove(v.Number), p.graph.Remove(e))
		} else {
			require.Equal(p.t, p.model.resolve(v.Number, 3), p.graph.Resolve(e, 3))
		}
	}
	require.Equal(p.t, want, seen)
}

// TestEqualsTheModel does 50,000 random things to graphs of many sizes, restores them in
// between, and compares every answer.
func TestEqualsTheModel(t *testing.T) {
	circles, unblocked := 0, 0
	for seed, most := range []int{2, 3, 5, 8, 12, 20, 30, 50, 80, 120} {
		t.Run(fmt.Sprintf("%d nodes", most), func(t *testing.T) {
			p := newPair(t, most)
			chance := rand.New(rand.NewPCG(uint64(seed), 0))
			for i := range 5000 {
				p.act(chance.IntN)
				if i%50 == 0 {
					requireSame(t, p.model, p.graph)
				}
			}
			requireSame(t, p.model, p.graph)
			circles, unblocked = circles+p.circles, unblocked+p.unblocked
		})
	}
	require.Greater(t, circles, 1000)
	require.Greater(t, unblocked, 300)
}

// TestRestoredIsEqual continues with a Graph and with one restored from it. It requires the same
// answers from both, circles included.
func TestRestoredIsEqual(t *testing.T) {
	for seed := range uint64(20) {
		chance := rand.New(rand.NewPCG(seed, 1))
		p := newPair(t, 40)
		for range 500 {
			p.act(chance.IntN)
		}
		again := &pair{t: t, graph: restored(p.graph), model: p.model, most: p.most}
		for range 200 {
			down, up, kind := p.node(chance.IntN), p.node(chance.IntN), Kind(chance.IntN(4))
			_, circle := p.graph.Depend(down, up, kind, "")
			again.depend(down, up, kind, "")
			require.Equal(t, again.graph.Circle(up, down), p.graph.Circle(up, down), "after %v", circle)
		}
		require.Equal(t, views(p.graph, p.graph.All()), views(again.graph, again.graph.All()))
	}
}

// FuzzGraph reads bytes as choices.
func FuzzGraph(f *testing.F) {
	f.Add([]byte{0, 0, 0, 2, 0, 1, 0, 0, 2, 1, 0, 0, 0, 16, 1, 0})
	f.Add(slices.Repeat([]byte{0, 3, 1, 7, 20, 30, 2}, 40))
	f.Fuzz(func(t *testing.T, choices []byte) {
		if len(choices) > 2000 {
			choices = choices[:2000]
		}
		p := newPair(t, 16)
		for len(choices) > 0 {
			p.act(func(n int) int {
				if len(choices) == 0 {
					return 0
				}
				c := int(choices[0])
				choices = choices[1:]
				return c % n
			})
		}
		requireSame(t, p.model, p.graph)
	})
}
