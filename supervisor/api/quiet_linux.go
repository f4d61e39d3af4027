package api

import (
	"cmp"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A quietWatch waits for the first connection at each of many listeners, with one goroutine. Most agents never use
// their socket, and a goroutine of net/http for each would be a quarter of the memory of an idle agent.
type quietWatch struct {
	sockets *os.File // an epoll of listeners, which is on the runtime's poller itself

	mu      sync.Mutex
	waiting map[int32]net.Listener // by file descriptor
	over    bool
}

// newQuietWatch returns a quietWatch without listeners, or nil if the system has no resources for one.
func newQuietWatch() *quietWatch {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil || unix.SetNonblock(fd, true) != nil {
		return nil
	}
	return &quietWatch{sockets: os.NewFile(uintptr(fd), "sockets"), waiting: make(map[int32]net.Listener)}
}

// add begins to wait for a connection at a listener. forget ends the wait; it is nil if no wait is possible. A closed
// listener must be forgotten: the kernel may give its file descriptor to another one.
func (w *quietWatch) add(l net.Listener) (forget func()) {
	if w == nil {
		return nil
	}
	listener, err := rawConn(rawListener(l))
	if err != nil {
		return nil
	}
	var fd int32
	failed := listener.Control(func(n uintptr) {
		fd = int32(n)
		err = w.watch(fd, l)
	})
	if cmp.Or(failed, err) != nil {
		return nil
	}
	return func() { w.take(fd, l) }
}

// watch waits for a connection at a file descriptor.
func (w *quietWatch) watch(fd int32, l net.Listener) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return os.ErrClosed
	}
	sockets, err := rawConn(w.sockets)
	if err != nil {
		return err
	}
	failed := sockets.Control(func(epoll uintptr) {
		err = unix.EpollCtl(int(epoll), unix.EPOLL_CTL_ADD, int(fd), &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: fd})
	})
	if err = cmp.Or(failed, err); err == nil {
		w.waiting[fd] = l
	}
	return err
}

// take ends the wait at a file descriptor and returns its listener, if that is only or if only is nil.
func (w *quietWatch) take(fd int32, only net.Listener) net.Listener {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.waiting[fd]
	if only != nil && l != only {
		return nil
	}
	delete(w.waiting, fd)
	return l
}

// run calls answer for each listener with a connection, until close is called.
func (w *quietWatch) run(answer func(net.Listener)) {
	sockets, err := rawConn(w.sockets)
	for called := make([]unix.EpollEvent, 64); err == nil; {
		n := 0
		err = sockets.Read(func(epoll uintptr) bool {
			n, _ = unix.EpollWait(int(epoll), called, 0)
			return n > 0
		})
		for i := range max(n, 0) {
			if l := w.take(called[i].Fd, nil); l != nil {
				answer(l)
			}
		}
	}
}

// close ends run, and closes the listeners that still wait.
func (w *quietWatch) close() {
	w.mu.Lock()
	waiting := w.waiting
	w.waiting, w.over = nil, true
	w.mu.Unlock()
	_ = w.sockets.Close()
	for _, l := range waiting {
		_ = l.Close()
	}
}

func rawConn(file any) (syscall.RawConn, error) {
	conn, ok := file.(syscall.Conn)
	if !ok {
		return nil, os.ErrInvalid
	}
	return conn.SyscallConn()
}
