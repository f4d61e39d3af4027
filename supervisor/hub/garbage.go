package hub

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

// Percentages for debug.SetGCPercent, and the size of a live heap with the least
// garbage.
const (
	muchGarbage  = 400
	gcPercent    = 100
	leastGarbage = 50

	hugeHeap = 256 << 20

	// restoreGarbage is the percentage after the first collection of a huge heap during a restart. That heap is
	// mostly the text of a snapshot, and its State, which needs twice as much, would be marked several times
	// while it grows.
	restoreGarbage = 150
)

// usualGarbage is how many bytes of garbage there may be before a collection.
const usualGarbage = 24 << 20

// garbageFor returns the percentage for a live heap of so many bytes. At 100 percent a heap of a few
// megabytes is collected hundreds of times a second while agents talk. A large State, at
// 400 percent, would need gigabytes.
func garbageFor(live uint64) int {
	if live >= hugeHeap {
		return leastGarbage
	}
	const step = 25 // each change stops the world for a moment
	percent := usualGarbage * 100 / max(live, 1) / step * step
	return int(min(max(percent, gcPercent), muchGarbage))
}

// restAfter is how long no collection must have run until memory is returned to the system.
const restAfter = 3 * time.Second

// restBytes is how many bytes a program at rest may allocate in that time. A large heap is collected
// seldom, so that no collection does not mean rest.
const restBytes = 1 << 20

// A tender adjusts the percentage after each garbage collection, which runs its finalizer. When no
// further collection follows, the program is idle. The tender then collects once more and returns
// the free memory to the system. The runtime would keep that memory.
type gcTuner struct {
	percent   int
	sample    []metrics.Sample
	rest      *time.Timer  // fires when no collection has run for a while
	own       *atomic.Bool // the next collection is due to rest
	restoring *atomic.Bool // no huge heap was collected, and the State is not restored
}

// tendGarbage begins before a State is restored. The returned function is to be called after that.
func tendGarbage() (restored func()) {
	own := new(atomic.Bool)
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	last := uint64(0)
	var rest *time.Timer
	rest = time.AfterFunc(restAfter, func() { // without the tender, which must be garbage
		metrics.Read(allocated)
		if now := allocated[0].Value.Uint64(); now-last > restBytes {
			last = now
			rest.Reset(restAfter)
			return
		}
		own.Store(true)
		debug.FreeOSMemory()
	})
	restoring := new(atomic.Bool)
	restoring.Store(true)
	c := &gcTuner{percent: muchGarbage, sample: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}, rest: rest, own: own, restoring: restoring}
	debug.SetGCPercent(c.percent)
	runtime.SetFinalizer(c, (*gcTuner).look)
	return func() {
		if !restoring.Swap(false) {
			debug.SetGCPercent(leastGarbage) // the heap may be larger than that allows, and is then collected now
		}
	}
}

func (t *gcTuner) look() {
	metrics.Read(t.sample)
	if percent := t.percentFor(t.sample[0].Value.Uint64()); percent != t.percent {
		debug.SetGCPercent(percent)
		t.percent = percent
	}
	if !t.own.Swap(false) {
		t.rest.Reset(restAfter)
	}
	runtime.SetFinalizer(t, (*gcTuner).look)
}

// percentFor is garbageFor, but for the first huge heap of a restart.
func (t *gcTuner) percentFor(live uint64) int {
	percent := garbageFor(live)
	if percent == leastGarbage && t.restoring.CompareAndSwap(true, false) {
		return restoreGarbage
	}
	return percent
}
