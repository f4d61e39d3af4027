package serve

import (
	"net"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// notifyPatience is how long a write to the service manager may take.
const notifyPatience = time.Second

// notify sends a state to the service manager, if one started this program. It ignores
// errors.
func notify(socket, state string) {
	if socket == "" {
		return
	}
	if strings.HasPrefix(socket, "@") {
		socket = "\x00" + socket[1:]
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(notifyPatience)) // its queue may be full
	_, _ = conn.Write([]byte(state))
}

// monotonic returns the monotonic clock in microseconds, which the service manager expects
// for a reload.
func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano() / 1000
}
