package serve

import (
	"net"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// notifyPatience is how long a service manager may take nothing.
const notifyPatience = time.Second

// notify tells the service manager that started us, if one did, how we are. A
// manager that does not listen is no trouble of ours.
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

// monotonic is the clock that the service manager compares reloads by, in
// microseconds.
func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano() / 1000
}
