package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"orchestrator/wire"

	"golang.org/x/sys/unix"
)

// PipeProtocol is the value of the Upgrade header that requests a pipe.
const PipeProtocol = "orchestrator-pipe"

// A Pipe takes over the connection of a caller and returns when it no longer needs it. Before
// it calls accept it may return a refusal. accept confirms the upgrade and returns the
// connection, which the limits of the API no longer apply to. It must be called at most once,
// and not after Pipe has returned.
type Pipe func(ctx context.Context, query url.Values, accept func() (*Conn, error)) error

// Conn is a connection that was taken over.
type Conn struct {
	net.Conn
	in   *bufio.Reader // may hold data that followed the request
	peer syscall.RawConn
}

var errNoSocket = errors.New("a pipe needs a socket")

// pipe serves a request for a pipe.
func (api *API) pipe(w http.ResponseWriter, r *http.Request, pipe Pipe) {
	if err := wantsPipe(r); err != nil {
		api.refuse(w, r, err)
		return
	}
	var taken net.Conn
	err := pipe(r.Context(), r.URL.Query(), func() (*Conn, error) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return nil, err
		}
		taken = conn
		accountOf(r.Context()).begin()
		return welcome(conn, buffered.Reader)
	})
	if taken != nil {
		_ = taken.Close()
	}
	switch {
	case err != nil && taken == nil:
		api.refuse(w, r, err)
	case err != nil:
		api.Log.Warn("a pipe broke off", "path", r.URL.Path, "error", err)
	}
}

// wantsPipe returns an error if a request cannot become a pipe. The connection must be a plain
// socket, because only a socket reports whether the caller has left.
func wantsPipe(r *http.Request) error {
	asked := strings.EqualFold(r.Header.Get("Upgrade"), PipeProtocol)
	for _, word := range strings.Split(r.Header.Get("Connection"), ",") {
		if asked && strings.EqualFold(strings.TrimSpace(word), "upgrade") && r.ContentLength == 0 {
			return nil
		}
	}
	return &wire.Error{
		Code:    wire.CodeInvalid,
		Message: r.URL.Path + " is a pipe: it takes a request without a body that asks for an upgrade",
		Hint:    "send the headers Connection: Upgrade and Upgrade: " + PipeProtocol,
	}
}

// welcome confirms that the connection is a pipe from now on.
func welcome(conn net.Conn, in *bufio.Reader) (*Conn, error) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return nil, errNoSocket
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+PipeProtocol+"\r\n\r\n"); err != nil {
		return nil, err
	}
	return &Conn{Conn: conn, in: in, peer: raw}, conn.SetDeadline(time.Time{})
}

// Read reads from the caller. It returns io.EOF if the caller has closed its writing side and
// still reads, and another error if it has left.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if err == io.EOF {
		gone := false
		if c.peer.Control(func(fd uintptr) { gone = left(fd) }) != nil || gone {
			err = io.ErrUnexpectedEOF
		}
	}
	return n, err
}

// Gone waits until the caller has left or the connection is closed. Call it only after io.EOF.
func (c *Conn) Gone() { _ = c.peer.Read(left) } // woken by whatever happens to the socket

// left reports whether the other end of a socket is closed. A half-closed connection still
// accepts writes; a closed one refuses even an empty write.
func left(fd uintptr) bool {
	_, err := unix.Write(int(fd), nil)
	return err == unix.EPIPE || err == unix.ECONNRESET
}
