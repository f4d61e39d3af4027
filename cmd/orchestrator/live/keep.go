package live

import (
	"bytes"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// resumed is how long a program waits to be stopped that has asked for it: the kernel
// does not stop one that no shell would continue.
const resumed = 200 * time.Millisecond

// keep draws the rows again when they have changed, and follows the signals that are
// about the terminal, until the end.
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

// pause waits until the rows may be drawn again. It says false at the end.
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
		if !r.mode.ours() { // others had the terminal, and have written since
			r.mode.lost()
			r.canvas.frame = frame{caret: -1}
		}
		r.redraw()
	}
}

// suspend does what Ctrl-Z means: the rows go, the terminal is as it was, and this
// program and those that were started with it stop until they are continued. It
// does not catch the signal: one that has been caught once stops no Go program any
// more.
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

// listen takes what is typed until the end.
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

// press takes keys, and passes on the lines that they complete. It says false at the
// end.
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

// read takes what there is, if it is for this program.
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

// rest lets a while pass. It says false at the end.
func (r *Region) rest() bool {
	select {
	case <-r.quit:
		return false
	case <-time.After(lookEvery):
		return true
	}
}
