package live

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// mode is that of a terminal. It is changed only while this program is in front of
// it: any other that tries is stopped by the kernel, and all it runs with it.
type mode struct {
	fd int

	mu     sync.Mutex
	before *unix.Termios // what it was; nil while it is as it was
}

// front reports whether this program is in front of a terminal.
func front(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// take has the terminal give each key at once, and show none. It reports whether it
// does.
func (m *mode) take() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.before != nil {
		return true
	}
	if !front(m.fd) {
		return false
	}
	now, err := unix.IoctlGetTermios(m.fd, readMode)
	if err != nil {
		return false
	}
	keys := *now
	keys.Lflag &^= unix.ICANON | unix.ECHO
	keys.Lflag |= unix.ISIG
	keys.Cc[unix.VMIN], keys.Cc[unix.VTIME] = 1, 0
	keys.Cc[unix.VSUSP] = disabled // a key like others: there is something to do before the stop
	if unix.IoctlSetTermios(m.fd, setMode, &keys) != nil {
		return false
	}
	m.before = now
	return true
}

// ours reports whether the terminal still is as it was set here.
func (m *mode) ours() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := unix.IoctlGetTermios(m.fd, readMode)
	return m.before != nil && err == nil && now.Lflag&(unix.ICANON|unix.ECHO) == 0 && now.Cc[unix.VSUSP] == disabled
}

// lost notes that another program has the terminal, and has set it as it likes.
func (m *mode) lost() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before = nil
}

// restore makes the terminal what it was.
func (m *mode) restore() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.before == nil {
		return
	}
	if front(m.fd) {
		_ = unix.IoctlSetTermios(m.fd, setMode, m.before)
	}
	m.before = nil
}

// awaitInput waits until there is something to read, or for a while. It fails when
// wake has ended.
func awaitInput(in, wake *os.File) (ready bool, err error) {
	of := []unix.PollFd{{Fd: int32(in.Fd()), Events: unix.POLLIN}, {Fd: int32(wake.Fd()), Events: unix.POLLIN}}
	_, err = unix.Poll(of, int(lookEvery.Milliseconds()))
	switch {
	case errors.Is(err, unix.EINTR):
		return false, nil
	case err != nil:
		return false, err
	case of[1].Revents != 0:
		return false, os.ErrClosed
	}
	return of[0].Revents != 0, nil
}
