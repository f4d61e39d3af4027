package bus_test

import (
	"context"
	"net"
	"sync"
)

// A pipes value makes connections in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex
	down error // the error of new connections
	made []net.Conn
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

// cut makes new connections fail and closes all existing ones; nil allows connections again.
func (p *pipes) cut(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = why
	for _, conn := range p.made {
		_ = conn.Close()
	}
	p.made = nil
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	p.mu.Lock()
	down := p.down
	p.made = append(p.made, near)
	p.mu.Unlock()
	if down != nil {
		return nil, down
	}
	select {
	case p.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }
