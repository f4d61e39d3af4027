package graph

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

const million = 1_000_000

func nodes(n int) *Graph {
	g := New()
	for range n {
		g.Add()
	}
	return g
}

func need(t testing.TB, g *Graph, down, up Node) {
	if _, circle := g.Depend(down, up, Blocks, ""); circle != nil {
		require.Failf(t, "a circle where there is none", "%d %d", down, up)
	}
}

// drain resolves all nodes, each as soon as nothing blocks it, and returns how many it could.
func drain(g *Graph) (ended int) {
	var ready []Node
	for n := range Node(g.Len()) {
		if g.Open(n) == 0 {
			ready = append(ready, n)
		}
	}
	for ; len(ready) > 0; ended++ {
		n := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		for e := range g.Waiting(n) {
			if g.Resolve(e, 1) {
				ready = append(ready, g.Edge(e).Down)
			}
		}
	}
	return ended
}

// TestRoom checks the sizes that the package comment gives.
func TestRoom(t *testing.T) {
	require.EqualValues(t, 40, unsafe.Sizeof(node{})+unsafe.Sizeof(place{}))
	require.EqualValues(t, 64, unsafe.Sizeof(edge{})+unsafe.Sizeof(stamp{})+unsafe.Sizeof(entry{}))
}

func TestAMillionInARow(t *testing.T) {
	g := nodes(million)
	for n := range Node(million - 1) {
		need(t, g, n+1, n)
	}
	circle := g.Circle(0, million-1)
	require.Len(t, circle, million+1)
	require.EqualValues(t, 1, circle[million-1])
	require.Equal(t, million, drain(g))
	require.Nil(t, g.Circle(0, million-1), "what is resolved holds no task up")
}

// TestAMillionInARowBackwards makes each node wait for one that is created after it. All of them
// also wait for the first node.
func TestAMillionInARowBackwards(t *testing.T) {
	g := nodes(2)
	need(t, g, 1, 0)
	for last := Node(1); last < million; last++ {
		up := g.Add()
		need(t, g, up, 0)
		need(t, g, last, up)
	}
	require.Len(t, g.Circle(million, 1), million+1)
	require.Nil(t, g.Circle(1, million))
	requireSound(t, g)
	require.Len(t, restored(g).Circle(million, 1), million+1)
	require.Equal(t, million+1, drain(g))
}

func TestAMillionWaitForOne(t *testing.T) {
	g := nodes(million + 1)
	for n := range Node(million) {
		need(t, g, n, million) // late, each of them
	}
	e, there := g.Find(million/2, million, Blocks, "")
	require.True(t, there)
	require.EqualValues(t, million/2, g.Edge(e).Down)
	require.Equal(t, million+1, drain(g))
}

func TestOneWaitsForAMillion(t *testing.T) {
	g := nodes(million + 1)
	for n := range Node(million) {
		need(t, g, 0, n+1)
	}
	require.Equal(t, million, g.Open(0))
	for n := range Node(million) {
		e, there := g.Numbered(0, int64(n)+1)
		found, _ := g.Find(0, n+1, Blocks, "")
		if !there || e != found || g.Resolve(e, 1) != (n == million-1) {
			require.Failf(t, "not found, or not the last", "%d %d %d", n, e, found)
		}
	}
}

// TestAllAtRandom makes dependencies that all agree with one hidden order, and restores them.
func TestAllAtRandom(t *testing.T) {
	const n = 100_000
	g := nodes(n)
	chance := rand.New(rand.NewPCG(1, 2))
	hidden := chance.Perm(n)
	for range 3 * n {
		down, up := chance.IntN(n), chance.IntN(n)
		switch {
		case hidden[down] > hidden[up]:
			need(t, g, Node(down), Node(up))
		case hidden[down] < hidden[up]:
			need(t, g, Node(up), Node(down))
		}
	}
	requireSound(t, g)
	again := restored(g)
	requireSound(t, again)
	for range 1000 {
		down, up := Node(chance.IntN(n)), Node(chance.IntN(n))
		require.Equal(t, g.Circle(down, up), again.Circle(down, up))
	}
	require.Equal(t, n, drain(again))
}

// TestNodesInOnePlace moves nodes again and again to a place that has no room left.
func TestNodesInOnePlace(t *testing.T) {
	const n = 3000
	o := newOrder()
	for range n + 2 {
		o.add()
	}
	for i := range Node(n) {
		if i%2 == 0 {
			o.moveAfter(0, []Node{i + 2})
		} else {
			o.moveBefore(0, []Node{i + 2})
		}
	}
	count, label := 0, uint64(0)
	for p := o.places[0].next; p != 0; p = o.places[p].next {
		require.Greater(t, o.places[p].label, label)
		label = o.places[p].label
		count++
	}
	require.Equal(t, n+2, count)
	require.True(t, o.before(n+1, 0))
	require.True(t, o.before(0, n))
	require.True(t, o.before(n, n-2))
	require.True(t, o.before(n-1, n+1))
}
