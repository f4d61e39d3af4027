package api

import (
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
)

// MostOfRun is the default limit at the socket of a run. The operators' socket has none, so that an operator can always
// see and end the work of other callers. A lobby has the limits of TCP listeners.
const MostOfRun = 64

// A crowd counts the open connections of a listener, by source.
type connLimiter struct {
	most      func() (each, all int) // of a source, and in all
	what      string                 // the listener, for the log
	encrypted bool                   // a refused connection gets no reason

	mu      sync.Mutex
	open    map[string]int
	total   int
	log     hclog.Logger // nil until the listener is served
	told    time.Time
	refused int // since then

	turning farewells
}

// enter counts a connection of a source until leave is called. If there are too many, it answers and
// closes the connection, and leave is nil.
func (c *connLimiter) enter(source string, conn net.Conn) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	each, all := c.most()
	switch {
	case c.open[source] >= each:
		c.refuse(conn, fmt.Sprintf("%d connections from here are open, which is the limit", each))
		return nil
	case c.total >= all:
		c.refuse(conn, fmt.Sprintf("%d connections are open, which is the limit", all))
		return nil
	case usesReserve(conn):
		c.note("the last file descriptors are for operators and agents that start")
		_ = conn.Close() // an answer would hold the descriptor for a moment
		return nil
	}
	if c.open == nil {
		c.open = make(map[string]int)
	}
	c.open[source]++
	c.total++
	return sync.OnceFunc(func() { c.leave(source) })
}

// reservedFiles is how many file descriptors connections cannot take. Many runs together could take all
// of them, and then no operator could connect and no agent start. A process that may open few files
// reserves a quarter.
const reservedFiles = 64

// usesReserve reports whether a connection has one of the last file descriptors. The kernel gives each
// new one the lowest number that is free.
func usesReserve(conn net.Conn) (yes bool) {
	var limit syscall.Rlimit
	socket, ok := conn.(syscall.Conn)
	if !ok || syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	last := limit.Cur - min(reservedFiles, limit.Cur/4)
	_ = raw.Control(func(fd uintptr) { yes = uint64(fd) >= last })
	return yes
}

func (c *connLimiter) leave(source string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total--
	if c.open[source]--; c.open[source] == 0 {
		delete(c.open, source)
	}
}

// refuse turns a connection away. The lock must be held.
func (c *connLimiter) refuse(conn net.Conn, why string) {
	c.note(why)
	if c.encrypted {
		_ = conn.Close()
		return
	}
	c.turning.away(conn, "429 Too Many Requests", "LIMITED", why)
}

// note counts a refused connection, and logs at most one line in tellEvery. The lock must be held.
func (c *connLimiter) note(why string) {
	c.refused++
	if now := time.Now(); c.log != nil && now.Sub(c.told) >= tellEvery {
		c.log.Warn("connections were refused", "at", c.what, "because", why, "connections", c.refused)
		c.told, c.refused = now, 0
	}
}

// tellEvery is how often refused connections of a listener are logged.
const tellEvery = 10 * time.Second

// logTo sets the log of refused connections.
func (c *connLimiter) logTo(log hclog.Logger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = log
}
