package api

import (
	"context"
	"net"
	"sync"
)

// runSocket is the identity of a run with all its open connections and requests. They end with
// the run, so that no leftover process can act as its agent.
type runSocket struct {
	caller Caller

	mu   sync.Mutex
	over bool
	open map[*opened]bool
}

// opened is a listener, connection or request of a run.
type opened struct{ close func() }

// is reports whether a caller is this run, or its agent with a key for any run.
func (r *runSocket) is(c Caller) bool {
	return c.Kind == r.caller.Kind && c.Name == r.caller.Name && (c.Run == "" || c.Run == r.caller.Run)
}

// keep registers a function to call at the end of the run. It returns false if the run has
// ended.
func (r *runSocket) keep(shut func()) (*opened, bool) {
	o := &opened{close: shut}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return nil, false
	}
	if r.open == nil {
		r.open = make(map[*opened]bool, 1)
	}
	r.open[o] = true
	return o, true
}

// drop unregisters what was closed earlier.
func (r *runSocket) drop(o *opened) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, o)
}

// ask returns a context for a request that ends with the run, and a function to call after the
// request. The function is nil if the run has ended.
func (r *runSocket) ask(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	request, ok := r.keep(cancel)
	if !ok {
		cancel()
		return ctx, nil
	}
	return ctx, func() {
		r.drop(request)
		cancel()
	}
}

// end closes everything that is open.
func (r *runSocket) end() {
	r.mu.Lock()
	r.over = true
	open := r.open
	r.open = nil
	r.mu.Unlock()
	for o := range open {
		o.close()
	}
}

// ownSocket is the socket of one run. Its callers are that run.
type ownSocket struct {
	Socket
	visit *runSocket
}

func (s *ownSocket) entrance() *listenerInfo {
	return &listenerInfo{caller: s.visit.caller, visit: s.visit}
}

// Accept waits for a connection. It closes with the run.
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

// NetConn returns the wrapped connection. Server.follow needs it to find the lingering one.
func (c *ownConn) NetConn() net.Conn { return c.lingering }

func (c *ownConn) Close() error {
	c.visit.drop(c.opened)
	return c.lingering.Close()
}
