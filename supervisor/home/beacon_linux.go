package home

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lockName takes a second lock of a state directory, which no program can delete. The lock
// is an abstract unix socket that is named after the directory and disappears with the process.
// The lock file is not enough: after the directory was deleted, another orchestrator could
// create it again and kill the agents of the first.
func lockName(dir string) (io.Closer, error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, err
	}
	around, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	place := path
	if stat, ok := around.Sys().(*syscall.Stat_t); ok { // containers that share a network can have the same paths
		place = fmt.Sprintf("%d:%d:%s", stat.Dev, stat.Ino, path)
	}
	sum := sha256.Sum256([]byte(place))
	name := fmt.Sprintf("@orchestrator-%d-%s", os.Geteuid(), hex.EncodeToString(sum[:16]))
	l, err := net.Listen("unix", name)
	if err == nil {
		return newBeacon(l), nil
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		return nil, nil // no abstract sockets here: the lock file has to do
	}
	pid, uid := listenerOf(name)
	if uid != os.Geteuid() {
		return nil, nil // another program has the name: the lock file has to do
	}
	return nil, &BusyError{Dir: dir, PID: pid}
}

func newBeacon(l net.Listener) *beacon {
	b := &beacon{Listener: l, done: make(chan struct{})}
	go b.refuseAll()
	return b
}

// takeName returns the second lock of the program before this one.
func takeName(file *os.File) (io.Closer, error) {
	defer file.Close() // the listener has a duplicate
	l, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	return newBeacon(l), nil
}

// SyscallConn implements syscall.Conn.
func (b *beacon) SyscallConn() (syscall.RawConn, error) {
	return b.Listener.(syscall.Conn).SyscallConn()
}

// beacon is the second lock of a state directory.
type beacon struct {
	net.Listener
	done chan struct{}
}

func (b *beacon) Close() error {
	err := b.Listener.Close()
	<-b.done
	return err
}

// refuseAll closes every connection at once, so that the backlog never fills up.
func (b *beacon) refuseAll() {
	defer close(b.done)
	for {
		conn, err := b.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(time.Second) // no file descriptors are left
			continue
		}
		conn.Close()
	}
}

// listenerOf returns the process that listens at a unix socket, and its user. The user is
// -1 if the name is taken and no process listens, which no orchestrator does.
func listenerOf(name string) (pid, uid int) {
	conn, err := net.DialTimeout("unix", name, time.Second)
	for range 10 { // it has the name a moment before it listens
		if !errors.Is(err, syscall.ECONNREFUSED) {
			break
		}
		time.Sleep(10 * time.Millisecond)
		conn, err = net.DialTimeout("unix", name, time.Second)
	}
	if err != nil {
		return 0, -1
	}
	defer conn.Close()
	uid = -1
	if raw, err := conn.(*net.UnixConn).SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
				pid, uid = int(cred.Pid), int(cred.Uid)
			}
		})
	}
	return pid, uid
}
