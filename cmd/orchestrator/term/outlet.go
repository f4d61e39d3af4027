package term

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"time"
)

const (
	// MaxOutlet is how much is gathered before it is written.
	MaxOutlet = 64 << 10
	// outletRetry is how long a stream that refused a write is left alone.
	outletRetry = 5 * time.Second
)

// Outlet is stdout for those who have something better to do than to be read:
// a team goes on when the disk is full. Lines that cannot be written are
// counted, after a while it is tried again, and when it works again the first
// line says how many are missing. It is used by one goroutine.
type Outlet struct {
	bytes.Buffer // whole lines, until they are flushed

	To           io.Writer
	TTY          bool                       // to was a terminal: one that is hung up is none any more
	Note         func(missing int64) []byte // a line that says that lines are missing
	OnError      func(error)                // hears of the first write that fails
	OnReaderGone func()                     // is called when its reader is gone

	over    bool  // its reader is gone
	torn    bool  // what was written last was half a line
	missing int64 // lines since the trouble began
	retryAt time.Time
}

// Flush writes what was gathered, or counts it.
func (o *Outlet) Flush() {
	defer o.empty()
	lines := countLines(o.Bytes())
	switch {
	case o.over || o.Len() == 0:
		return
	case o.missing > 0 && time.Now().Before(o.retryAt):
		o.missing += lines
		return
	}
	if err := o.settle(); err != nil {
		o.failed(err, lines)
		return
	}
	written, err := o.write(o.Bytes())
	if err != nil {
		o.failed(err, lines-written)
	}
}

// empty forgets what was gathered, and the room that a huge line took.
func (o *Outlet) empty() {
	o.Reset()
	if o.Cap() > 16*MaxOutlet {
		o.Buffer = bytes.Buffer{}
	}
}

// settle returns what is missing, if anything is.
func (o *Outlet) settle() error {
	if o.missing == 0 {
		return nil
	}
	note := o.Note(o.missing)
	if o.torn {
		note = append([]byte("\n"), note...)
	}
	if _, err := o.write(note); err != nil {
		return err
	}
	o.missing = 0
	return nil
}

// Close writes what is left to be written, whenever the last trouble was, and
// returns how many lines will never be read.
func (o *Outlet) Close() (missing int64) {
	o.retryAt = time.Time{}
	o.Flush()
	if !o.over {
		_ = o.settle() // or the caller is told
	}
	return o.missing
}

func (o *Outlet) write(text []byte) (lines int64, err error) {
	n, err := o.To.Write(text)
	if n > 0 {
		o.torn = text[n-1] != '\n'
	}
	return countLines(text[:n]), err
}

func (o *Outlet) failed(err error, lines int64) {
	if ReaderGone(err, o.TTY) {
		o.over = true
		o.OnReaderGone()
		return
	}
	if o.missing == 0 {
		o.OnError(err)
	}
	o.missing += lines
	o.retryAt = time.Now().Add(outletRetry)
}

func countLines(text []byte) int64 { return int64(bytes.Count(text, []byte("\n"))) }

// ReaderGone reports whether a write failed because there is no reader any more.
// Any other failure may pass, but for that of a terminal that was hung up.
func ReaderGone(err error, terminal bool) bool {
	return errors.Is(err, syscall.EPIPE) || terminal && errors.Is(err, syscall.EIO)
}
