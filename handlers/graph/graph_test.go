package graph

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// with returns a Graph with that many nodes and these dependencies, down first.
func with(t *testing.T, nodes int, blocking ...[2]Node) *Graph {
	t.Helper()
	g := New()
	for n := range nodes {
		require.EqualValues(t, n, g.Add())
	}
	for _, d := range blocking {
		_, circle := g.Depend(d[0], d[1], Blocks, "")
		require.Nil(t, circle)
	}
	return g
}

// only returns the one edge of a walk.
func only(t *testing.T, edges func(func(Edge) bool)) Edge {
	t.Helper()
	all := slices.Collect(edges)
	require.Len(t, all, 1)
	return all[0]
}

func TestCircles(t *testing.T) {
	diamond := [][2]Node{{1, 0}, {2, 0}, {3, 1}, {3, 2}}
	for _, test := range []struct {
		name     string
		there    [][2]Node
		down, up Node
		want     []Node
	}{
		{name: "none", down: 0, up: 1},
		{name: "self", down: 2, up: 2, want: []Node{2, 2}},
		{name: "two", there: [][2]Node{{1, 0}}, down: 0, up: 1, want: []Node{0, 1, 0}},
		{name: "three", there: [][2]Node{{1, 0}, {2, 1}}, down: 0, up: 2, want: []Node{0, 2, 1, 0}},
		{name: "three, made of late ones", there: [][2]Node{{0, 1}, {1, 2}}, down: 2, up: 0, want: []Node{2, 0, 1, 2}},
		{name: "twice the same is none", there: [][2]Node{{1, 0}}, down: 1, up: 0},
		{name: "a diamond is none", there: diamond[:3], down: 3, up: 2},
		{name: "nor is one upside down", there: [][2]Node{{0, 1}, {0, 2}, {1, 3}}, down: 2, up: 3},
		{name: "through a diamond, what was first", there: diamond, down: 0, up: 3, want: []Node{0, 3, 1, 0}},
		{name: "through a diamond, made the other way round", there: [][2]Node{{2, 0}, {1, 0}, {3, 2}, {3, 1}}, down: 0, up: 3, want: []Node{0, 3, 2, 0}},
		{name: "past a dead end", there: [][2]Node{{3, 1}, {3, 2}, {2, 0}}, down: 0, up: 3, want: []Node{0, 3, 2, 0}},
		{name: "the first way, not the shortest", there: [][2]Node{{3, 2}, {3, 0}, {2, 1}, {1, 0}}, down: 0, up: 3, want: []Node{0, 3, 2, 1, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := with(t, 4, test.there...)
			require.Equal(t, test.want, g.Circle(test.down, test.up))
			require.Equal(t, test.want, restored(g).Circle(test.down, test.up))
			require.Len(t, slices.Collect(g.All()), len(test.there), "asking changes nothing")
			e, circle := g.Depend(test.down, test.up, Input, "k")
			require.Equal(t, test.want, circle)
			if test.want == nil {
				require.Equal(t, "k", g.Edge(e).Key)
			} else {
				require.Len(t, slices.Collect(g.All()), len(test.there), "what is refused changes nothing")
			}
			requireSound(t, g)
		})
	}
}

func TestWhatHoldsBack(t *testing.T) {
	for _, test := range []struct {
		name  string
		kind  Kind
		holds bool
	}{
		{"Blocks", Blocks, true},
		{"Input", Input, true},
		{"Soft", Soft, false},
		{"Related", Related, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := with(t, 2)
			e, circle := g.Depend(1, 0, test.kind, "")
			require.Nil(t, circle)
			require.Equal(t, test.holds, g.Open(1) == 1)
			require.Zero(t, g.Open(0))
			require.Equal(t, test.holds, g.Circle(0, 1) != nil)
			_, back := g.Depend(0, 1, test.kind, "")
			require.Equal(t, test.holds, back != nil)
			_, self := g.Depend(0, 0, test.kind, "")
			require.Equal(t, test.holds, self != nil)
			require.Equal(t, test.holds, g.Resolve(e, 1))
			require.True(t, g.Edge(e).Resolved)
			require.Zero(t, g.Open(1))
			require.Nil(t, g.Circle(0, 1))

			again := with(t, 2)
			e, _ = again.Depend(1, 0, test.kind, "")
			require.Equal(t, test.holds, again.Remove(e))
		})
	}
}

func TestResolve(t *testing.T) {
	g := with(t, 3, [2]Node{2, 0}, [2]Node{2, 1})
	first, last := only(t, g.Waiting(0)), only(t, g.Waiting(1))
	require.Equal(t, 2, g.Open(2))
	require.False(t, g.Resolve(first, 5), "another one is open")
	require.Equal(t, View{Down: 2, Up: 0, Resolved: true, At: 5, Number: 1}, g.Edge(first))
	require.False(t, g.Resolve(first, 6), "a second time")
	require.EqualValues(t, 5, g.Edge(first).At)
	require.Equal(t, 1, g.Open(2))
	require.True(t, g.Resolve(last, 7))
	require.Zero(t, g.Open(2))
	require.Len(t, slices.Collect(g.Needs(2)), 2, "they stay")
	require.False(t, g.Remove(first), "nothing was held back")
}

func TestRemove(t *testing.T) {
	g := with(t, 3, [2]Node{2, 0}, [2]Node{2, 1})
	first, last := only(t, g.Waiting(0)), only(t, g.Waiting(1))
	require.False(t, g.Remove(first), "another one is open")
	require.True(t, g.Remove(last))
	require.False(t, g.Remove(last), "it is not there any more")
	require.False(t, g.Resolve(last, 1))
	require.Zero(t, g.Open(2))
	require.Empty(t, slices.Collect(g.All()))
	require.Nil(t, g.Circle(0, 2))

	e, _ := g.Depend(0, 2, Input, "schema")
	require.Equal(t, last, e, "the edge is there again")
	require.Equal(t, View{Down: 0, Up: 2, Kind: Input, Key: "schema", Number: 3}, g.Edge(e), "its number is not")
}

func TestRemoveLastAfterResolve(t *testing.T) {
	g := with(t, 3, [2]Node{2, 0}, [2]Node{2, 1})
	g.Resolve(only(t, g.Waiting(0)), 1)
	require.True(t, g.Remove(only(t, g.Waiting(1))))
}

func TestManyBetweenTheSame(t *testing.T) {
	g := with(t, 2)
	made := []View{
		{Kind: Blocks},
		{Kind: Input, Key: "api"},
		{Kind: Input, Key: "schema"},
		{Kind: Soft},
		{Kind: Input, Key: "api"},
	}
	for _, v := range made {
		g.Depend(1, 0, v.Kind, v.Key)
	}
	require.Equal(t, 4, g.Open(1))
	for _, test := range []struct {
		kind   Kind
		key    string
		number int64
	}{{Blocks, "", 1}, {Input, "api", 2}, {Input, "schema", 3}, {Soft, "", 4}, {Related, "", 0}, {Input, "", 0}, {Blocks, "api", 0}} {
		e, there := g.Find(1, 0, test.kind, test.key)
		require.Equal(t, test.number > 0, there)
		if there {
			require.Equal(t, test.number, g.Edge(e).Number)
		}
	}
	_, there := g.Find(0, 1, Blocks, "")
	require.False(t, there)

	for i, e := range slices.Collect(g.Needs(1)) {
		require.Equal(t, i == 4, g.Resolve(e, 9))
	}
}

func TestNumbered(t *testing.T) {
	g := with(t, 3, [2]Node{1, 0}, [2]Node{2, 0}, [2]Node{2, 1})
	for number := range int64(4) {
		for down := range Node(3) {
			e, there := g.Numbered(down, number)
			require.Equal(t, number > 0 && down == Node(min(number, 2)), there)
			if there {
				require.Equal(t, number, g.Edge(e).Number)
			}
		}
	}
}

func TestNumbersAreNeverGivenTwice(t *testing.T) {
	g := with(t, 2)
	for want := range int64(1000) {
		e, _ := g.Depend(1, 0, Soft, "")
		require.Equal(t, want+1, g.Edge(e).Number)
		require.Zero(t, e, "the edge is used again")
		g.Remove(e)
	}
	require.EqualValues(t, 1000, g.Last())
	require.LessOrEqual(t, len(g.ledger.entries), 2*crumbs, "what is removed is cleared up")

	again := restored(g)
	e, _ := again.Depend(1, 0, Soft, "")
	require.EqualValues(t, 1001, again.Edge(e).Number)
}

func TestWalksInOrderOfCreation(t *testing.T) {
	g := with(t, 5, [2]Node{4, 2}, [2]Node{4, 0}, [2]Node{3, 0}, [2]Node{4, 1}, [2]Node{1, 0})
	ends := func(edges func(func(Edge) bool)) (found []Node) {
		for _, v := range views(g, edges) {
			found = append(found, v.Down*10+v.Up)
		}
		return found
	}
	require.Equal(t, []Node{42, 40, 41}, ends(g.Needs(4)))
	require.Equal(t, []Node{40, 30, 10}, ends(g.Waiting(0)))
	require.Empty(t, ends(g.Needs(0)))
	for e := range g.Needs(4) {
		g.Resolve(e, 1)
		break
	}
	require.Equal(t, 2, g.Open(4), "a walk may be left")
	for e := range g.Waiting(0) {
		g.Remove(e)
	}
	require.Equal(t, []Node{42, 41}, ends(g.Needs(4)))
	require.Equal(t, []Node{42, 41}, ends(g.All()))
}

func TestPut(t *testing.T) {
	g := with(t, 4)
	there := []View{
		{Down: 0, Up: 3, Number: 2},
		{Down: 3, Up: 1, Kind: Input, Key: "api", Number: 5},
		{Down: 1, Up: 0, Number: 6, Resolved: true, At: 77}, // when it was open, the rest did not exist
		{Down: 1, Up: 2, Kind: Soft, Number: 9},
	}
	for _, v := range there {
		require.Equal(t, v, g.Edge(g.Put(v)))
	}
	require.Equal(t, there, views(g, g.All()))
	require.Equal(t, []int{1, 0, 0, 1}, []int{g.Open(0), g.Open(1), g.Open(2), g.Open(3)})
	require.Equal(t, []Node{1, 0, 3, 1}, g.Circle(1, 0))
	require.Panics(t, func() { g.Put(View{Down: 1, Up: 0, Number: 9}) }, "out of turn")
	g.Skip(20)
	g.Skip(10)
	e, _ := g.Depend(2, 0, Related, "")
	require.EqualValues(t, 21, g.Edge(e).Number)
}

// TestPutInTheRoomOfOneRemoved checks an edge in the place of a removed one. It must not be
// taken for one that disagrees with the order, as the removed one did.
func TestPutInTheRoomOfOneRemoved(t *testing.T) {
	g := with(t, 3)
	g.Put(View{Down: 1, Up: 0, Number: 1})
	late := g.Put(View{Down: 0, Up: 2, Number: 2})
	require.True(t, g.Remove(late))
	require.Equal(t, late, g.Put(View{Down: 2, Up: 0, Number: 3}))
	require.Equal(t, []Node{0, 1, 0}, g.Circle(0, 1))
	requireSound(t, g)
}

// TestPutOfCircles checks that a Graph with circles still answers. The answers may be wrong.
func TestPutOfCircles(t *testing.T) {
	for number := int64(1); number <= 4; number++ {
		g := with(t, 4)
		g.Put(View{Down: 1, Up: 1, Number: 1})
		g.Circle(2, 3)
		for n := int64(2); n <= number; n++ {
			g.Put(View{Down: Node(n % 3), Up: Node((n + 1) % 3), Number: n})
		}
		require.Nil(t, g.Circle(3, 0))
		_, circle := g.Depend(3, 0, Blocks, "")
		require.Nil(t, circle)
		require.Equal(t, 1, g.Open(3))
	}
}

// TestMarksStartAgain checks that old marks are not taken for new ones after four thousand
// million searches.
func TestMarksStartAgain(t *testing.T) {
	g := with(t, 4, [2]Node{0, 1}, [2]Node{1, 2}, [2]Node{2, 3})
	for before := range uint32(8) {
		g.marked = ^before
		for n := range g.nodes {
			g.nodes[n].mark = uint32(n)
		}
		require.Equal(t, []Node{3, 0, 1, 2, 3}, g.Circle(3, 0))
	}
}
