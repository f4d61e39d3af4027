package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

// Listen opens a unix socket that only this user can use. It replaces a socket at which no
// program answers, and refuses any other file at path. Closing the listener does not remove the
// socket: while the file exists, the orchestrator may still use its state.
func Listen(path string) (*Socket, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("%s is in the way: it is no socket", path)
	default:
		if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
			_ = conn.Close()
			return nil, fmt.Errorf("%s is taken: another program answers there", path)
		} else if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, fmt.Errorf("%s is taken: %w", path, err)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if unix, ok := listener.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = listener.Close()
		return nil, err
	}
	made, err := os.Lstat(path)
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	return newSocket(listener, made), nil
}

// Socket is a listener for this user and root. Its callers are operators.
type Socket struct {
	net.Listener
	made      os.FileInfo
	strangers chan struct{} // holds one for each that is being answered
}

func newSocket(listener net.Listener, made os.FileInfo) *Socket {
	return &Socket{Listener: listener, made: made, strangers: make(chan struct{}, maxStrangers)}
}

// Remove removes the socket file, unless another program has replaced it.
func (s *Socket) Remove() {
	if now, err := os.Lstat(s.Addr().String()); err == nil && os.SameFile(s.made, now) {
		_ = os.Remove(s.Addr().String())
	}
}

func (s *Socket) entrance() *listenerInfo {
	return &listenerInfo{caller: Caller{Kind: Operator, Wide: true}}
}

// Accept waits for a connection of this user or root.
func (s *Socket) Accept() (net.Conn, error) {
	for {
		conn, err := s.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if trusted(conn) == nil {
			return linger(conn), nil
		}
		select {
		case s.strangers <- struct{}{}:
			go func() {
				defer func() { <-s.strangers }()
				turnAway(linger(conn))
			}()
		default:
			_ = conn.Close()
		}
	}
}

// maxStrangers bounds the other users that get an answer at once; more are cut off.
const maxStrangers = 16

// turnAway sends a refusal to another user and closes the connection.
func turnAway(conn net.Conn) {
	const text = `{"format_version":"1.0","error":{"code":"UNAUTHORIZED","message":"this socket is for another user"}}` + "\n"
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	_ = conn.Close()
}

// StrangerError reports that another user is at the other end of a socket.
type StrangerError struct{ UID int }

func (e *StrangerError) Error() string { return fmt.Sprintf("user %d is at the other end", e.UID) }

// trusted returns an error unless the other end of a socket is this user or root.
func trusted(conn net.Conn) error {
	uid, err := peer(conn)
	if err == nil && stranger(uid, os.Geteuid()) {
		err = &StrangerError{UID: uid}
	}
	return err
}

func stranger(uid, self int) bool { return uid != self && uid != 0 }

// Dial opens a connection to the orchestrator at a socket. It returns a StrangerError if
// another user listens there, because that user could have created the socket.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := trusted(conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}
