package live

import (
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// resumed is how long a program waits to be stopped that has asked for it: the kernel
// does not stop one that nobody would continue.
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
	case unix.SIGTSTP:
		r.suspend()
	case unix.SIGWINCH:
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.live() {
			_, _ = r.flush(append(r.canvas.draw(r.canvas.erase(append(r.buffer[:0], begin...)), r.compose()), commit...))
		}
	case unix.SIGCONT:
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.suspended { // it was stopped without a word, and others have written since
			r.mode.lost()
			r.canvas.frame = frame{caret: -1}
		}
		r.suspended = false
		r.redraw()
	}
}

// suspend does what Ctrl-Z means: the rows go, the terminal is as it was, and the
// program stops until somebody continues it.
func (r *Region) suspend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.canvas.erase(nil); len(b) > 0 && front(r.mode.fd) {
		_, _ = r.out.Write(b)
	}
	r.mode.restore()
	r.suspended = true
	signal.Reset(unix.SIGTSTP)
	_ = unix.Kill(unix.Getpid(), unix.SIGTSTP)
	select { // the kernel may take a moment
	case <-r.quit:
	case <-time.After(resumed):
	}
	signal.Notify(r.signals, unix.SIGTSTP)
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
		r.mu.Lock()
		lines := r.edit.feed(chunk[:n])
		r.redraw()
		r.mu.Unlock()
		for _, line := range lines {
			select {
			case r.typed <- line:
			case <-r.quit:
				return
			}
		}
	}
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
