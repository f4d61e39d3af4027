package live

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// resumed is how long suspend waits for its stop signal to take effect. The kernel does not
// stop a process group that no shell can continue.
const resumed = 200 * time.Millisecond

// keep redraws the rows when they change and handles the terminal's signals until Close.
func (r *Region) keep() {
	clocks := time.NewTicker(clocksEvery)
	defer clocks.Stop()
	for {
		select {
		case <-r.quit:
			return
		case s := <-r.signals:
			r.signalled(s)
		case <-r.dirty:
			if !r.pause() {
				return
			}
			r.again()
		case <-clocks.C:
			r.again()
		}
	}
}

func (r *Region) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.redraw()
}

// pause waits until the rows may be drawn again. It returns false after Close.
func (r *Region) pause() bool {
	r.mu.Lock()
	rest := drawEvery - time.Since(r.drawn)
	r.mu.Unlock()
	if rest <= 0 {
		return true
	}
	select {
	case <-r.quit:
		return false
	case <-time.After(rest):
		return true
	}
}

func (r *Region) signalled(s os.Signal) {
	switch s {
	case unix.SIGWINCH:
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.live() {
			_, _ = r.flush(append(r.canvas.draw(r.canvas.erase(append(r.buffer[:0], begin...)), r.compose()), commit...))
		}
	case unix.SIGCONT:
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.mode.ours() { // another program had the terminal and wrote to it
			r.mode.lost()
			r.canvas.frame = frame{caret: -1}
		}
		r.redraw()
	}
}

// suspend handles Ctrl-Z. It erases the rows, restores the terminal and stops this process
// group until it is continued. It does not catch SIGTSTP: once caught, the signal never
// stops a Go program again.
func (r *Region) suspend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.canvas.erase(nil); len(b) > 0 && front(r.mode.fd) {
		_, _ = r.out.Write(b)
	}
	r.mode.restore()
	_ = unix.Kill(0, unix.SIGTSTP)
	select { // the kernel may take a moment
	case <-r.quit:
	case <-time.After(resumed):
	}
	r.redraw()
}

// listen reads typed input until Close.
func (r *Region) listen() {
	defer close(r.typed)
	chunk := make([]byte, 4<<10)
	for {
		ready, err := awaitInput(r.in, r.wake[0])
		if err != nil {
			return
		}
		if !ready {
			continue
		}
		n := r.read(chunk)
		if n == 0 {
			if !r.rest() {
				return
			}
			continue
		}
		for typed, stop := chunk[:n], true; stop; {
			var keys []byte
			if keys, typed, stop = bytes.Cut(typed, []byte{keySuspend}); !r.press(keys) {
				return
			}
			if stop {
				r.suspend()
			}
		}
	}
}

// press handles keys and sends the lines that they complete. It returns false after Close.
func (r *Region) press(keys []byte) bool {
	r.mu.Lock()
	lines := r.edit.feed(keys)
	r.redraw()
	r.mu.Unlock()
	for _, line := range lines {
		select {
		case r.typed <- line:
		case <-r.quit:
			return false
		}
	}
	return true
}

// read reads the available input, or none if the terminal belongs to another program.
func (r *Region) read(chunk []byte) int {
	r.mu.Lock()
	mine := r.live()
	r.mu.Unlock()
	if !mine {
		return 0
	}
	n, err := r.in.Read(chunk)
	if err != nil {
		return 0
	}
	return n
}

// rest sleeps for lookEvery. It returns false after Close.
func (r *Region) rest() bool {
	select {
	case <-r.quit:
		return false
	case <-time.After(lookEvery):
		return true
	}
}

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

// take sets the mode that delivers each key at once and echoes none. It reports whether that mode
// is set.
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
