package supervisor

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// jumped returns a time as if the clock had been off by d when it was read. Only the wall time
// changes, not the monotonic reading.
func jumped(at time.Time, d time.Duration) time.Time {
	const nsecShift = 30 // of package time: the seconds are above the nanoseconds
	*(*uint64)(unsafe.Pointer(&at)) += uint64(int64(d/time.Second)) << nsecShift
	return at
}

// TestRestartWindowIsMonotonic checks that the restart window uses the monotonic clock: setting
// the clock does not empty it.
func TestRestartWindowIsMonotonic(t *testing.T) {
	first := time.Now()
	require.Zero(t, first.Sub(jumped(first, -time.Hour)), "package time keeps times in another way now")
	require.Equal(t, time.Hour, first.Round(0).Sub(jumped(first, -time.Hour).Round(0)))

	r := Restart{Policy: Always, Delay: time.Second, Factor: 1, MaxDelay: time.Second, Burst: 2, Window: time.Minute}
	var h restartHistory
	require.True(t, h.again(r, "exit 1", 0, first, 0.5).again)
	h.restarts[0] = jumped(first, -time.Hour)
	require.Equal(t, 2, h.again(r, "exit 1", 0, first.Add(time.Second), 0.5).attempt)
}
