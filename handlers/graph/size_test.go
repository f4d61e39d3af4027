package graph

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
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

// drain resolves all nodes, each when it is free, and returns how many it could.
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

// A shape is a graph: pairs of down and up, each up created before its down.
type shape struct {
	name  string
	pairs func(nodes int, each func(down, up int))
}

var shapes = []shape{
	{"chain", func(nodes int, each func(down, up int)) {
		for n := 1; n < nodes; n++ {
			each(n, n-1)
		}
	}},
	{"fan", func(nodes int, each func(down, up int)) {
		for n := 1; n < nodes-1; n++ {
			each(n, 0)
			each(nodes-1, n)
		}
	}},
	{"random", func(nodes int, each func(down, up int)) {
		chance := rand.New(rand.NewPCG(3, 4))
		for n := 1; n < nodes; n++ {
			for range 3 {
				each(n, chance.IntN(n))
			}
		}
	}},
}

// A Task is a task as written without this package.
type Task struct {
	id         string
	open       int
	done       bool
	dependents []*Task
}

func taskID(n int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(n)*2654435761, n) }

func plain(s shape, nodes int) map[string]*Task {
	tasks, list := make(map[string]*Task), make([]*Task, nodes)
	for n := range list {
		list[n] = &Task{id: taskID(n)}
		tasks[list[n].id] = list[n]
	}
	s.pairs(nodes, func(down, up int) {
		list[down].open++
		list[up].dependents = append(list[up].dependents, list[down])
	})
	return tasks
}

// complete ends all tasks, each found by its id when it is free.
func complete(tasks map[string]*Task) (ended int) {
	ready := []string{taskID(0)} // the only ready one in all shapes
	for ; len(ready) > 0; ended++ {
		task := tasks[ready[len(ready)-1]]
		ready = ready[:len(ready)-1]
		task.done = true
		for _, d := range task.dependents {
			if d.open--; d.open == 0 {
				ready = append(ready, d.id)
			}
		}
	}
	return ended
}

func built(b *testing.B, s shape, size int) *Graph {
	g := nodes(size)
	s.pairs(size, func(down, up int) { need(b, g, Node(down), Node(up)) })
	return g
}

// timed measures run on a clean heap, without the preparation before it.
func timed(b *testing.B, nodes int, run func() (ended int)) time.Duration {
	runtime.GC()
	b.StartTimer()
	before := b.Elapsed()
	ended := run()
	taken := b.Elapsed() - before
	b.StopTimer()
	if ended != nodes {
		b.Fatalf("%d of %d have ended", ended, nodes)
	}
	return taken
}

// BenchmarkComplete ends all nodes in a possible order. The ratio compares it with a map of
// pointers. The fastest run of each counts, because other load only makes runs slower.
func BenchmarkComplete(b *testing.B) {
	for _, s := range shapes {
		for _, size := range []int{10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", s.name, size), func(b *testing.B) {
				ours, theirs := time.Hour, time.Hour
				b.StopTimer()
				for range b.N {
					g := built(b, s, size)
					ours = min(ours, timed(b, size, func() int { return drain(g) }))
					tasks := plain(s, size)
					theirs = min(theirs, timed(b, size, func() int { return complete(tasks) }))
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(ours)/float64(size), "ns/task")
				b.ReportMetric(float64(theirs)/float64(size), "plain-ns/task")
				b.ReportMetric(float64(ours)/float64(theirs), "ratio")
			})
		}
	}
}

// BenchmarkBuild adds nodes and their dependencies, in the usual order of submission.
func BenchmarkBuild(b *testing.B) {
	for _, s := range shapes {
		b.Run(s.name, func(b *testing.B) {
			edges := 0
			for b.Loop() {
				edges += len(built(b, s, 1_000_000).edges)
			}
			b.ReportMetric(float64(b.Elapsed())/float64(edges), "ns/edge")
		})
	}
}

// BenchmarkLate adds dependencies between a million existing nodes, half or all of them against
// the order of creation.
func BenchmarkLate(b *testing.B) {
	const size = 1_000_000
	chance := rand.New(rand.NewPCG(5, 6))
	hidden := chance.Perm(size)
	random := func(each func(down, up int)) {
		for range size {
			down, up := chance.IntN(size), chance.IntN(size)
			if hidden[down] > hidden[up] {
				down, up = up, down
			}
			if down != up {
				each(down, up)
			}
		}
	}
	backwards := func(each func(down, up int)) {
		for n := range size - 1 {
			each(n, n+1)
		}
	}
	shuffled := func(each func(down, up int)) {
		for _, n := range chance.Perm(size - 1) {
			each(n, n+1)
		}
	}
	for name, pairs := range map[string]func(func(int, int)){"random": random, "backwards": backwards, "backwards-shuffled": shuffled} {
		b.Run(name, func(b *testing.B) {
			made := 0
			b.StopTimer()
			for range b.N {
				g := nodes(size)
				runtime.GC()
				b.StartTimer()
				pairs(func(down, up int) { need(b, g, Node(down), Node(up)) })
				b.StopTimer()
				made += len(g.edges)
			}
			b.ReportMetric(float64(b.Elapsed())/float64(made), "ns/edge")
		})
	}
}

// BenchmarkRestore puts a million nodes and three million dependencies together again. Half of them
// are against the order of creation.
func BenchmarkRestore(b *testing.B) {
	const size = 1_000_000
	chance := rand.New(rand.NewPCG(7, 8))
	hidden := chance.Perm(size)
	var all []View
	for number := range int64(3 * size) {
		down, up := chance.IntN(size), chance.IntN(size)
		if hidden[down] > hidden[up] {
			all = append(all, View{Down: Node(down), Up: Node(up), Number: number + 1})
		}
	}
	b.ResetTimer()
	for range b.N {
		g := nodes(size)
		for _, v := range all {
			g.Put(v)
		}
		g.Circle(0, 1)
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N*len(all)), "ns/edge")
}

// BenchmarkHeap measures the memory of a node and a dependency.
func BenchmarkHeap(b *testing.B) {
	const size = 1_000_000
	held := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for range b.N {
		before := held()
		g := nodes(size)
		bare := held()
		for n := range Node(size - 1) {
			for range 3 {
				need(b, g, n+1, n)
			}
		}
		full := held()
		b.ReportMetric((bare-before)/size, "B/node")
		b.ReportMetric((full-bare)/(3*size), "B/edge")
		runtime.KeepAlive(g)
	}
}
