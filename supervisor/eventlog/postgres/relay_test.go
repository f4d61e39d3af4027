package postgres

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// A relay is between a hub and the server, and can keep back the bytes of each.
type relay struct {
	listener net.Listener
	to       string
	requests sync.Mutex    // held by a test to keep back bytes of the hub
	missed   chan struct{} // closed when the answers to a request are thrown away

	mu    sync.Mutex
	miss  []byte // the answers to the next request with this text are thrown away
	conns []net.Conn
}

func newRelay(t *testing.T, to string) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &relay{listener: l, to: to, missed: make(chan struct{})}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { r.pass(c) })
		}
	})
	t.Cleanup(func() {
		r.requests.TryLock() // a test that has failed may hold it
		r.requests.Unlock()
		_ = l.Close()
		r.cut()
		all.Wait()
	})
	return r
}

func (r *relay) url() string { return "postgres://hub@" + r.listener.Addr().String() + "/postgres" }

// cut closes all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}

// hold waits while requests are kept back.
func (r *relay) hold() {
	r.requests.Lock()
	defer r.requests.Unlock()
}

// loses reports whether the answers to a request are to be thrown away.
func (r *relay) loses(request []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.miss == nil || !bytes.Contains(request, r.miss) {
		return false
	}
	r.miss = nil
	close(r.missed)
	return true
}

// pass passes on the bytes of a connection, in both directions.
func (r *relay) pass(client net.Conn) {
	server, err := net.Dial("tcp", r.to)
	if err != nil {
		_ = client.Close()
		return
	}
	r.mu.Lock()
	r.conns = append(r.conns, client, server)
	r.mu.Unlock()
	var deaf sync.Mutex // held once answers are thrown away
	var both sync.WaitGroup
	both.Go(func() {
		defer server.Close()
		for b := make([]byte, 1<<16); ; {
			n, err := client.Read(b)
			if err != nil {
				return
			}
			r.hold()
			if r.loses(b[:n]) {
				deaf.Lock()
			}
			if _, err := server.Write(b[:n]); err != nil {
				return
			}
		}
	})
	both.Go(func() {
		defer client.Close()
		for b := make([]byte, 1<<16); ; {
			n, err := server.Read(b)
			if err != nil {
				return
			}
			if !deaf.TryLock() {
				_, _ = io.Copy(io.Discard, server)
				return
			}
			deaf.Unlock()
			if _, err := client.Write(b[:n]); err != nil {
				return
			}
		}
	})
	both.Wait()
}
