package serve

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Percentages for debug.SetGCPercent, and the sizes of the live heap between them.
const (
	muchGarbage = 400
	someGarbage = 100

	smallHeap = 16 << 20
	largeHeap = 128 << 20
)

// garbageFor returns the percentage for a live heap of so many bytes. At 100 percent a
// heap of a few megabytes is collected hundreds of times a second while agents talk. At
// 400 percent a large State would need gigabytes.
func garbageFor(live uint64) int {
	switch {
	case live <= smallHeap:
		return muchGarbage
	case live >= largeHeap:
		return someGarbage
	}
	const step = 25 // each change stops the world for a moment
	return muchGarbage - int((muchGarbage-someGarbage)*(live-smallHeap)/(largeHeap-smallHeap))/step*step
}

// A tender adjusts the percentage after each garbage collection, which runs its finalizer.
type tender struct {
	percent int
	sample  []metrics.Sample
}

func tendGarbage() {
	c := &tender{percent: muchGarbage, sample: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	debug.SetGCPercent(c.percent)
	runtime.SetFinalizer(c, (*tender).look)
}

func (t *tender) look() {
	metrics.Read(t.sample)
	if percent := garbageFor(t.sample[0].Value.Uint64()); percent != t.percent {
		debug.SetGCPercent(percent)
		t.percent = percent
	}
	runtime.SetFinalizer(t, (*tender).look)
}
