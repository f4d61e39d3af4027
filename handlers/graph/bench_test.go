package graph

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

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

// complete ends all tasks, each found by its id as soon as nothing blocks it.
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

// BenchmarkComplete ends all nodes in an order in which they can end. The ratio compares it with
// a map of pointers. The fastest run of each counts, because other load only makes runs slower.
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

// BenchmarkRestore puts a million nodes and three million dependencies together
// again, of which half are against the order of creation.
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

// BenchmarkHeap is what a node and a dependency take.
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
