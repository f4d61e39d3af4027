package api

import (
	"context"
	"net"
	"sync"
)

// runSocket is one run of an agent as the door sees it: who it is, and what is open
// for it. When the run ends all of that does, so that nothing which outlives it
// can speak as its agent.
type runSocket struct {
	caller Caller

	mu   sync.Mutex
	over bool
	open map[*opened]bool
}

// opened is one thing that is open for a visit: its listener, a connection, a
// request.
type opened struct{ close func() }

// is reports whether a caller is whose visit it is: by a credential of that run, or
// one of that agent that is for any run.
func (v *runSocket) is(c Caller) bool {
	return c.Kind == v.caller.Kind && c.Name == v.caller.Name && (c.Run == "" || c.Run == v.caller.Run)
}

// keep has something closed with the visit. It is too late when it says no.
func (v *runSocket) keep(shut func()) (*opened, bool) {
	o := &opened{close: shut}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.over {
		return nil, false
	}
	if v.open == nil {
		v.open = make(map[*opened]bool, 1)
	}
	v.open[o] = true
	return o, true
}

// drop is for what has been closed before.
func (v *runSocket) drop(o *opened) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.open, o)
}

// ask makes a context for a request, which ends with the visit, and what is to
// be called when the request is over. That is nil when the visit is.
func (v *runSocket) ask(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	request, ok := v.keep(cancel)
	if !ok {
		cancel()
		return ctx, nil
	}
	return ctx, func() {
		v.drop(request)
		cancel()
	}
}

// end closes everything.
func (v *runSocket) end() {
	v.mu.Lock()
	v.over = true
	open := v.open
	v.open = nil
	v.mu.Unlock()
	for o := range open {
		o.close()
	}
}

// ownSocket is the socket of one run: a caller that comes in by it is that run.
type ownSocket struct {
	Socket
	visit *runSocket
}

func (s *ownSocket) entrance() *listenerInfo {
	return &listenerInfo{caller: s.visit.caller, visit: s.visit}
}

// Accept waits for a connection, which ends with the run.
func (s *ownSocket) Accept() (net.Conn, error) {
	for {
		conn, err := s.Socket.Accept()
		if err != nil {
			return nil, err
		}
		if socket, ok := conn.(*lingering); ok {
			c := &ownConn{lingering: socket, visit: s.visit}
			if c.opened, ok = s.visit.keep(func() { _ = socket.stream.Close() }); ok {
				return c, nil
			}
		}
		_ = conn.Close()
	}
}

// ownConn is a connection to the socket of a run.
type ownConn struct {
	*lingering
	visit  *runSocket
	opened *opened
}

// NetConn is for follow, which looks for a connection that lingers.
func (c *ownConn) NetConn() net.Conn { return c.lingering }

func (c *ownConn) Close() error {
	c.visit.drop(c.opened)
	return c.lingering.Close()
}
