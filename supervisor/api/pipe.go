package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"orchestrator/wire"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// PipeProtocol is what the caller of a pipe asks for in its Upgrade header.
const PipeProtocol = "orchestrator-pipe"

// Pipe takes over the connection of a caller and returns when it is of no more
// use. Until it calls accept it may refuse as any operation does; accept tells
// the caller yes, once, and from then on the connection carries what the two
// have to say, as it is. No limit of the door's holds for it any more. accept
// is not to be called when Pipe has returned.
type Pipe func(ctx context.Context, query url.Values, accept func() (*Conn, error)) error

// Conn is a connection that a caller has given over.
type Conn struct {
	net.Conn
	in   *bufio.Reader // what came behind the request may be in it
	peer syscall.RawConn
}

var errNoSocket = errors.New("a pipe needs a socket")

// pipe answers a caller that wants its connection taken over.
func (d *API) pipe(w http.ResponseWriter, r *http.Request, pipe Pipe) {
	if err := wantsPipe(r); err != nil {
		d.refuse(w, r, err)
		return
	}
	var taken net.Conn
	err := pipe(r.Context(), r.URL.Query(), func() (*Conn, error) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return nil, err
		}
		taken = conn
		return welcome(conn, buffered.Reader)
	})
	if taken != nil {
		_ = taken.Close()
	}
	switch {
	case err != nil && taken == nil:
		d.refuse(w, r, err)
	case err != nil:
		d.Log.Warn("a pipe broke off", "path", r.URL.Path, "error", err)
	}
}

// wantsPipe returns why a request cannot become a pipe. Whether the caller is still
// there is asked of the socket itself, so nothing may lie between.
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

// welcome tells the caller that from now on the connection is a pipe.
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

// Read reads what the caller says. It returns io.EOF when the caller has shut
// its side down and still listens, and another error when it is gone.
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

// Gone waits until the caller is gone, or the connection is closed. It is for
// after io.EOF.
func (c *Conn) Gone() { _ = c.peer.Read(left) } // woken by whatever happens to the socket

// left reports whether the other end of a socket has been closed. A stream that
// merely says no more ends in the same way, but it still takes what is written:
// one that has been closed takes nothing, not even nothing.
func left(fd uintptr) bool {
	_, err := unix.Write(int(fd), nil)
	return err == unix.EPIPE || err == unix.ECONNRESET
}
