package api

import (
	"context"
	"net"
	"sync"
)

// Inside is an in-process listener. Its callers are operators.
type Inside struct {
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
}

// NewInside returns an Inside without connections.
func NewInside() *Inside {
	return &Inside{conns: make(chan net.Conn), over: make(chan struct{})}
}

// Dial opens a connection to the listener.
func (i *Inside) Dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case i.conns <- there:
		return here, nil
	case <-i.over:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept waits for a connection.
func (i *Inside) Accept() (net.Conn, error) {
	select {
	case conn := <-i.conns:
		return conn, nil
	case <-i.over:
		return nil, net.ErrClosed
	}
}

// Close closes the listener; Dial and Accept then return net.ErrClosed.
func (i *Inside) Close() error {
	i.once.Do(func() { close(i.over) })
	return nil
}

// Addr implements net.Listener.
func (i *Inside) Addr() net.Addr { return &net.UnixAddr{Name: "inside", Net: "unix"} }

func (i *Inside) entrance() *listenerInfo {
	return &listenerInfo{caller: Caller{Kind: Operator, Wide: true}}
}
