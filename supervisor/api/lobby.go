package api

import (
	"fmt"
	"net"
	"slices"

	"golang.org/x/sys/unix"

	"orchestrator/wire"
	"orchestrator/wire/identity"
)

// Limits of open connections at a TCP listener. A connection has no credential until its first request shows one. When
// there are too many of these, the oldest one without a request makes room, so that idle connections lock nobody out. A
// stream holds a connection.
const (
	maxStrangersOfSource = 64  // without a credential, from one address
	maxStrangersInAll    = 128 // without a credential
	maxOfCaller          = 64  // with the credentials of one caller
	maxInAll             = 512
	reservedInAll        = 64 // of those, reserved: connections without a request make room for them
)

// A lobby counts the open connections of a TCP listener, by source and then by caller.
type lobby struct {
	connLimiter            // answers refused connections; only its lock and its log are used
	strangers   []*visitor // oldest first
	callers     map[holder]int
	all         int
}

// A visitor is a connection in a lobby.
type visitor struct {
	lobby  *lobby
	conn   *lingering
	source string

	// The lock of the lobby guards the rest.
	gone bool
	by   *holder // the owner of its credential; nil: it has shown none yet
}

// enter counts a connection until it is closed, and reports whether there is room for it.
func (l *lobby) enter(source string, conn *lingering) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := func(v *visitor) bool { return v.source == source }
	anyone := func(*visitor) bool { return true }
	here := 0
	for _, v := range l.strangers {
		if from(v) {
			here++
		}
	}
	why := ""
	switch full := len(l.strangers) >= maxStrangersInAll; {
	case here >= maxStrangersOfSource:
		if most := fmt.Sprintf("%d connections without a credential are open from here, which is the limit", maxStrangersOfSource); !l.evict(from, most) {
			why = most
		}
	case full || l.all >= maxInAll-reservedInAll:
		if most := fmt.Sprintf("%d connections without a credential are open, which is the limit", maxStrangersInAll); !l.evict(anyone, most) && full {
			why = most
		}
	}
	switch {
	case why == "" && l.all >= maxInAll:
		why = fmt.Sprintf("%d connections are open, which is the limit", maxInAll)
	case why == "" && usesReserve(conn.stream):
		l.note("the last file descriptors are for operators and agents that start")
		_ = conn.stream.Close() // an answer would hold the descriptor for a moment
		return false
	}
	if why != "" {
		l.refuse(conn.stream, why)
		return false
	}
	v := &visitor{lobby: l, conn: conn, source: source}
	conn.visitor, conn.leave = v, v.leave
	l.strangers = append(l.strangers, v)
	l.all++
	return true
}

// evict turns away the oldest connection of strangers that has no request, and reports whether there was one.
// The lock must be held.
func (l *lobby) evict(which func(*visitor) bool, why string) bool {
	i := slices.IndexFunc(l.strangers, func(v *visitor) bool {
		return which(v) && !arrived(v.conn.stream) && v.conn.phase.CompareAndSwap(calm, turned)
	})
	if i < 0 {
		return false
	}
	v := l.strangers[i]
	l.forget(v)
	l.refuse(v.conn.stream, why)
	return true
}

// arrived reports whether a connection has bytes that were not read: perhaps its first request.
func arrived(conn stream) (yes bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		yes = err == nil && n > 0
	})
	return yes
}

// leave ends the count of a connection.
func (v *visitor) leave() {
	v.lobby.mu.Lock()
	defer v.lobby.mu.Unlock()
	v.lobby.forget(v)
}

// forget ends the count of a connection. The lock must be held.
func (l *lobby) forget(v *visitor) {
	if v.gone {
		return
	}
	v.gone = true
	l.all--
	if v.by == nil {
		l.strangers = slices.DeleteFunc(l.strangers, func(other *visitor) bool { return other == v })
		return
	}
	l.stand(v)
}

// stand takes a connection from its caller. The lock must be held.
func (l *lobby) stand(v *visitor) {
	if l.callers[*v.by]--; l.callers[*v.by] == 0 {
		delete(l.callers, *v.by)
	}
	v.by = nil
}

// seat counts the connection of a request for its caller from now on. It returns a refusal if the caller has too
// many.
func (v *visitor) seat(c identity.Caller) *wire.Error {
	if v == nil {
		return nil
	}
	h := holderOf(c)
	l := v.lobby
	l.mu.Lock()
	defer l.mu.Unlock()
	if v.gone || v.by != nil && *v.by == h {
		return nil
	}
	if l.callers[h] >= maxOfCaller {
		return &wire.Error{
			Code: wire.CodeLimited, Message: fmt.Sprintf("%s has %d connections open, which is the limit", displayName(c), maxOfCaller),
			Hint: "Close some connections, or send several requests over one",
		}
	}
	if v.by != nil { // a proxy sends requests of several callers over one connection
		l.stand(v)
	} else {
		l.strangers = slices.DeleteFunc(l.strangers, func(other *visitor) bool { return other == v })
	}
	if l.callers == nil {
		l.callers = make(map[holder]int)
	}
	v.by = &h
	l.callers[h]++
	return nil
}

// lobbyListener accepts connections that are closed in order, and not too many.
type lobbyListener struct {
	net.Listener
	lobby *lobby
}

func (l lobbyListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, ok := linger(conn).(*lingering)
		if !ok {
			return conn, nil
		}
		c.phase.Store(calm) // until its first request
		if l.lobby.enter(bucketName(identity.Caller{}, conn.RemoteAddr().String()), c) {
			return c, nil
		}
	}
}
