package hub

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGarbageFor(t *testing.T) {
	last := muchGarbage
	for live := uint64(0); live <= 600<<20; live += 1 << 20 {
		percent := garbageFor(live)
		require.LessOrEqual(t, percent, last)
		last = percent
	}
	for live, want := range map[uint64]int{0: 400, 6 << 20: 400, 12 << 20: 200, 24 << 20: 100, 255 << 20: 100, 256 << 20: 50, 4 << 30: 50} {
		require.Equal(t, want, garbageFor(live), live)
	}
}

// The heap of a restart may grow once by more than a huge heap may later.
func TestGarbageOfARestart(t *testing.T) {
	tuner := &gcTuner{restoring: new(atomic.Bool)}
	tuner.restoring.Store(true)
	for _, step := range []struct {
		live uint64
		want int
	}{{40 << 20, gcPercent}, {360 << 20, restoreGarbage}, {880 << 20, leastGarbage}, {360 << 20, leastGarbage}} {
		require.Equal(t, step.want, tuner.percentFor(step.live), step.live)
	}
}

// The GC percentage follows the size of the live heap.
func TestGarbageFollowsTheHeap(t *testing.T) {
	tendGarbage() // stays active for all later tests, which does no harm
	percent := func() int {
		now := debug.SetGCPercent(-1)
		debug.SetGCPercent(now)
		return now
	}
	hold := make([]byte, 200<<20)
	waitFor(t, "less garbage", func() bool {
		runtime.GC()
		return percent() == gcPercent
	})
	runtime.KeepAlive(hold)
	waitFor(t, "more garbage", func() bool {
		runtime.GC()
		return percent() > gcPercent
	})
}

// When no memory is allocated, free memory is returned to the system.
func TestMemoryIsReturnedAtRest(t *testing.T) {
	tendGarbage()
	released := func() uint64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/released:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	hold := make([]byte, 100<<20)
	for i := range hold {
		hold[i] = 1
	}
	before := released()
	runtime.KeepAlive(hold)
	runtime.GC() // the last one that is not due to the rest
	waitFor(t, "memory returned", func() bool { return released() >= before+90<<20 })
}

func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		require.True(t, time.Now().Before(end), "there is no %s", what)
	}
}
