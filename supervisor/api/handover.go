package api

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// At an upgrade this process executes another program, and its listeners stay open. Connections that come during the
// upgrade wait in them.

// A pausable is a listener that a Server can pause.
type pausable struct {
	net.Listener
	server *Server
}

// Accept waits for a connection, and for the end of a pause.
func (p *pausable) Accept() (net.Conn, error) {
	for {
		conn, err := p.Listener.Accept()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return conn, err
		}
		p.server.mu.Lock()
		paused := p.server.paused
		p.server.mu.Unlock()
		if paused != nil {
			<-paused
		}
	}
}

// pause ends Accept of the listener below.
func (p *pausable) pause() { p.deadline(time.Unix(1, 0)) }

func (p *pausable) deadline(at time.Time) {
	if l, ok := rawListener(p.Listener).(interface{ SetDeadline(time.Time) error }); ok {
		_ = l.SetDeadline(at) // a closed listener accepts no connection anyway
	}
}

// rawListener returns the listener of the kernel in a listener of this package.
func rawListener(l net.Listener) net.Listener {
	switch l := l.(type) {
	case *Socket:
		return l.Listener
	case *ownSocket:
		return l.Socket.Listener
	case *TCPListener:
		return l.raw
	}
	return l
}

// Pause stops accepting connections, ends streams, and waits at most patience for the other
// requests. Resume undoes it.
func (s *Server) Pause(patience time.Duration) {
	s.mu.Lock()
	s.paused = make(chan struct{})
	for p := range s.listeners {
		p.pause()
	}
	s.mu.Unlock()
	s.streams.Swap(newStreams()).end()
	for end := time.Now().Add(patience); time.Now().Before(end) && s.closeCalm() > 0; time.Sleep(time.Millisecond) {
	}
}

// closeCalm closes the connections without a request, and returns the number of other connections.
func (s *Server) closeCalm() (others int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		if c.phase.Load() == busy {
			others++
			continue
		}
		_ = c.stream.Close()
	}
	return others
}

// Resume accepts connections again.
func (s *Server) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.listeners {
		p.deadline(time.Time{})
	}
	close(s.paused)
	s.paused = nil
}

// FileOf returns the file descriptor of a listener of this package.
func FileOf(l net.Listener) (fd int, err error) {
	conn, ok := rawListener(l).(syscall.Conn)
	if !ok {
		return -1, fmt.Errorf("the listener %s has no file", l.Addr())
	}
	raw, err := conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(n uintptr) { fd = int(n) })
	}
	return fd, err
}

// listenerFrom returns the listener with a file descriptor, which it takes.
func listenerFrom(fd int) (net.Listener, error) {
	file := os.NewFile(uintptr(fd), "listener")
	if file == nil {
		return nil, fmt.Errorf("file %d is not open", fd)
	}
	defer file.Close() // the listener has a duplicate
	return net.FileListener(file)
}

// Inherit returns the operators' socket of the program before this one.
func Inherit(fd int) (*Socket, error) {
	listener, err := listenerFrom(fd)
	if err != nil {
		return nil, err
	}
	made, err := os.Lstat(listener.Addr().String())
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	return newSocket(listener, made), nil
}

// InheritTCP returns a TCP listener of the program before this one. The address is the configured
// one.
func InheritTCP(fd int, address string, o TCP) (*TCPListener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	secure, err := o.config()
	if err != nil {
		return nil, err
	}
	listener, err := listenerFrom(fd)
	if err != nil {
		return nil, err
	}
	tcp, ok := listener.(*net.TCPListener)
	if !ok {
		return nil, fmt.Errorf("file %d is no TCP listener", fd)
	}
	return o.guard(tcp, secure, host), nil
}

// A HandedRun is the access of a run, for the Runs of the next program.
type HandedRun struct {
	Run  string `json:"run"`
	Hash string `json:"hash"` // of its token
	Path string `json:"path"` // of its socket
	File int    `json:"file"` // of its socket; -1: it has none
}

// Handover returns the access of all runs.
func (r *Runs) Handover() (runs []HandedRun, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for hash, v := range r.visits {
		h := HandedRun{Run: v.caller.Run, Hash: hex.EncodeToString(hash[:]), Path: v.path, File: -1}
		if v.listener != nil {
			if h.File, err = FileOf(v.listener); err != nil {
				return nil, err
			}
		}
		runs = append(runs, h)
	}
	return runs, nil
}

// TakeOver gives the runs that Open admits next the access that they had in the program before.
func (r *Runs) TakeOver(runs []HandedRun) {
	r.handed = make(map[string]HandedRun, len(runs))
	for _, h := range runs {
		r.handed[h.Run] = h
		name := strings.TrimSuffix(h.Path[strings.LastIndexByte(h.Path, '/')+1:], ".sock")
		if n, err := strconv.ParseInt(strings.TrimPrefix(name, "r"), 36, 64); err == nil {
			r.last = max(r.last, n)
		}
	}
}

// reopen admits a run with the access that it had.
func (r *Runs) reopen(h HandedRun, v *runSocket) (hash [sha256.Size]byte, err error) {
	sum, err := hex.DecodeString(h.Hash)
	if err != nil || len(sum) != len(hash) {
		return hash, fmt.Errorf("the token of run %s cannot be read", h.Run)
	}
	copy(hash[:], sum)
	if h.File < 0 {
		return hash, nil
	}
	listener, err := listenerFrom(h.File)
	if err != nil {
		return hash, err
	}
	if unix, ok := listener.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(true)
	}
	return hash, r.answer(listener, h.Path, v)
}
