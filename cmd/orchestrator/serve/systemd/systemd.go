// Package systemd reports the state of this program to the service manager that started it.
package systemd

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The messages to a service manager.
const (
	Ready    = "READY=1\nSTATUS=running"
	Reloaded = "READY=1"
	Stopping = "STOPPING=1"
	Alive    = "WATCHDOG=1"
)

// patience is how long a write to the service manager may take.
const patience = time.Second

// Notify sends a state to the service manager, if one started this program. Getenv returns the variables of the
// environment. Errors are ignored.
func Notify(getenv func(string) string, state string) {
	socket := getenv("NOTIFY_SOCKET")
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
	_ = conn.SetWriteDeadline(time.Now().Add(patience)) // its queue may be full
	_, _ = conn.Write([]byte(state))
}

// Watchdog returns the interval of the messages to the service manager that this program is alive:
// half of the time that it allows, or 0 if it does not look.
func Watchdog(getenv func(string) string) time.Duration {
	if pid := getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	allowed, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || allowed <= 0 {
		return 0
	}
	return time.Duration(allowed) * time.Microsecond / 2
}

// Reloading returns the state of a program that begins to reload. It has the monotonic clock in microseconds.
func Reloading() string {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", now.Nano()/1000)
}
