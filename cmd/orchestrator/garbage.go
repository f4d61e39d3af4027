package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// How much garbage is let lie, in percent of what is alive.
const (
	muchGarbage = 400
	someGarbage = 100

	smallHeap = 16 << 20
	largeHeap = 128 << 20
)

// garbageFor returns how much garbage is let lie while so many bytes are alive. A few
// megabytes would be collected hundreds of times a second at Go's 100 percent while
// agents talk. Four times a large State would be gigabytes.
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

// tender sets the percentage anew after each collection, which is when its finalizer
// runs.
type tender struct {
	percent int
	sample  []metrics.Sample
}

func tendGarbage() {
	c := &tender{percent: muchGarbage, sample: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	debug.SetGCPercent(c.percent)
	runtime.SetFinalizer(c, (*tender).look)
}

func (c *tender) look() {
	metrics.Read(c.sample)
	if percent := garbageFor(c.sample[0].Value.Uint64()); percent != c.percent {
		debug.SetGCPercent(percent)
		c.percent = percent
	}
	runtime.SetFinalizer(c, (*tender).look)
}
