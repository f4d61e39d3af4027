package live

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// mode is the mode of a terminal. It is changed only while this program is in the foreground:
// the kernel would stop this process group otherwise.
type mode struct {
	fd int

	mu     sync.Mutex
	before *unix.Termios // the original mode; nil while it is unchanged
}

// front reports whether this process is in the foreground of a terminal.
func front(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// take sets the mode in which the terminal delivers each key at once and echoes none. It
// reports whether that mode is set.
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
	keys.Cc[unix.VSUSP] = disabled // read Ctrl-Z as a key: the rows are erased before the stop
	if unix.IoctlSetTermios(m.fd, setMode, &keys) != nil {
		return false
	}
	m.before = now
	return true
}

// ours reports whether the terminal still has the mode that take has set.
func (m *mode) ours() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := unix.IoctlGetTermios(m.fd, readMode)
	return m.before != nil && err == nil && now.Lflag&(unix.ICANON|unix.ECHO) == 0 && now.Cc[unix.VSUSP] == disabled
}

// lost records that another program has the terminal and may have changed its mode.
func (m *mode) lost() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before = nil
}

// restore gives the terminal its original mode.
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

// awaitInput waits for input, at most lookEvery. It fails when wake is closed.
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
