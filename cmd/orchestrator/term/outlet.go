package term

import (
	"bytes"
	"errors"
	"io"
	"syscall"
	"time"
)

const (
	// MaxOutlet is the buffered size that requires a flush of an Outlet.
	MaxOutlet = 64 << 10
	// outletRetry is how long no write is tried after a failed one.
	outletRetry = 5 * time.Second
)

// An Outlet buffers lines for a stdout that may fail, for example because the disk is full.
// It counts the lines that cannot be written and retries after outletRetry. The first line
// after a failure is a note with the count. An Outlet is used by one goroutine.
type Outlet struct {
	bytes.Buffer // whole lines, until they are flushed

	To           io.Writer
	TTY          bool                       // whether To was a terminal at first: after a hangup it is none
	Note         func(missing int64) []byte // a line about missing lines
	OnError      func(error)                // called for the first write that fails
	OnReaderGone func()                     // called when the reader is gone

	over    bool  // the reader is gone
	torn    bool  // the last write ended in the middle of a line
	missing int64 // lines lost since the last successful write
	retryAt time.Time
}

// Flush writes the buffered lines, or counts them as missing.
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

// empty clears the buffer and frees one that a huge line has grown.
func (o *Outlet) empty() {
	o.Reset()
	if o.Cap() > 16*MaxOutlet {
		o.Buffer = bytes.Buffer{}
	}
}

// settle writes the note about missing lines, if any are missing.
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

// Close flushes the buffer without waiting for outletRetry. It returns the number of lines
// that could not be written.
func (o *Outlet) Close() (missing int64) {
	o.retryAt = time.Time{}
	o.Flush()
	if !o.over {
		_ = o.settle() // if it fails, missing is returned
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

// ReaderGone reports whether a write failed because its reader is gone: a closed pipe, or a
// terminal that was hung up. Any other failure may be temporary.
func ReaderGone(err error, terminal bool) bool {
	return errors.Is(err, syscall.EPIPE) || terminal && errors.Is(err, syscall.EIO)
}
