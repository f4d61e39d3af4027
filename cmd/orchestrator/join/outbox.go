package join

import (
	"io"
	"sync"
	"time"
)

// An outbox keeps the lines for a peer, and writes them in a separate goroutine: a peer that does
// not read its input delays no request, and not the end of the program.
type outbox struct {
	full  chan struct{} // closed when too much is unread
	moved chan struct{} // has room for one signal: there is more to write, or the box is closed
	done  chan struct{} // closed when the writer has ended

	mu     sync.Mutex
	lines  []byte
	closed bool
}

// maxUnread is how many bytes may wait for a peer that does not read.
const maxUnread = 64 << 20

// newOutbox returns an outbox that writes to w.
func newOutbox(w io.Writer) *outbox {
	o := &outbox{full: make(chan struct{}), moved: make(chan struct{}, 1), done: make(chan struct{})}
	go o.write(w)
	return o
}

// add adds a line. It never blocks.
func (o *outbox) add(line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	if len(o.lines)+len(line) > maxUnread {
		o.closed = true
		close(o.full)
		return
	}
	o.lines = append(o.lines, line...)
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.moved <- struct{}{}:
	default: // the writer takes all lines at each signal
	}
}

// write writes the lines until the box is closed. A peer that has left stops reading; the end of
// its own output shows that.
func (o *outbox) write(w io.Writer) {
	defer close(o.done)
	for range o.moved {
		o.mu.Lock()
		lines, closed := o.lines, o.closed
		o.lines = nil
		o.mu.Unlock()
		if _, err := w.Write(lines); err != nil || closed {
			return
		}
	}
}

// close waits until the lines are written, but no longer than patience: a write to a peer that does
// not read cannot be interrupted.
func (o *outbox) close(patience time.Duration) {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.signal()
	select {
	case <-o.done:
	case <-time.After(patience):
	}
}
