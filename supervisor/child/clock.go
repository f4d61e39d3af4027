package child

import (
	"time"

	"golang.org/x/sys/unix"
)

// SinceBoot returns a time that no change of the wall clock moves, and that goes on while the machine is suspended. It
// is the same in all processes.
func SinceBoot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(bootClock, &ts); err != nil {
		panic("reading the boot clock: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
