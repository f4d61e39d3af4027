// Package link sends and reads the lines between a hub and a host.
package link

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"orchestrator/wire/hostlink"
)

// maxLine bounds a line. The longest ones have a piece of output, in base64.
const maxLine = 1 << 20

// writePatience is how long a line may wait for a side that does not read.
const writePatience = hostlink.Silence

// A Conn is one end of a link. Send may be called concurrently.
type Conn struct {
	conn net.Conn
	in   *bufio.Reader

	mu  sync.Mutex
	buf []byte
}

// New returns an end of a link. in has the bytes that were read from conn before.
func New(conn net.Conn, in *bufio.Reader) *Conn { return &Conn{conn: conn, in: in} }

// Send sends a line. After an error the link is closed.
func (c *Conn) Send(l *hostlink.Line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = append(append(c.buf[:0], text...), '\n')
	err = c.conn.SetWriteDeadline(time.Now().Add(writePatience))
	if err == nil {
		_, err = c.conn.Write(c.buf)
	}
	if err != nil {
		_ = c.conn.Close()
	}
	return err
}

// Read returns the next line. It fails if none comes within hostlink.Silence.
func (c *Conn) Read() (*hostlink.Line, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(hostlink.Silence)); err != nil {
		return nil, err
	}
	var text []byte
	for {
		part, err := c.in.ReadSlice('\n')
		text = append(text, part...)
		if len(text) > maxLine {
			return nil, fmt.Errorf("a line is longer than %d bytes", maxLine)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) && len(text) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	l := new(hostlink.Line)
	if err := json.Unmarshal(text, l); err != nil {
		return nil, fmt.Errorf("a line cannot be read: %w", err)
	}
	return l, nil
}

// Close closes the link.
func (c *Conn) Close() error { return c.conn.Close() }

// A Room is a window for flow control: how many bytes may be sent before the other side has taken some. Its methods
// may be called concurrently.
type Room struct {
	mu       sync.Mutex
	left     int
	shut     bool
	deadline time.Time
	changed  chan struct{} // closed by a change
}

// NewRoom returns a room of n bytes.
func NewRoom(n int) *Room { return &Room{left: n, changed: make(chan struct{})} }

// change calls do, and wakes the calls of Take that wait.
func (r *Room) change(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
	close(r.changed)
	r.changed = make(chan struct{})
}

// Free gives n bytes back.
func (r *Room) Free(n int) { r.change(func() { r.left += n }) }

// Set sets how many bytes there are.
func (r *Room) Set(n int) { r.change(func() { r.left = n }) }

// Shut ends the room: Take fails with os.ErrClosed.
func (r *Room) Shut() { r.change(func() { r.shut = true }) }

// SetDeadline sets the time after which Take fails with os.ErrDeadlineExceeded; zero: it waits.
func (r *Room) SetDeadline(at time.Time) { r.change(func() { r.deadline = at }) }

// Left returns how many bytes may be sent.
func (r *Room) Left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}

// Take takes between least and most bytes. It waits until there are so many.
func (r *Room) Take(least, most int) (int, error) {
	for {
		r.mu.Lock()
		changed, deadline := r.changed, r.deadline
		late := !deadline.IsZero() && !time.Now().Before(deadline)
		switch {
		case r.shut:
			r.mu.Unlock()
			return 0, os.ErrClosed
		case late:
			r.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case r.left >= least:
			n := min(most, r.left)
			r.left -= n
			r.mu.Unlock()
			return n, nil
		}
		r.mu.Unlock()
		wait(changed, deadline)
	}
}

// wait waits for a channel to be closed, or until the deadline.
func wait(changed <-chan struct{}, deadline time.Time) {
	if deadline.IsZero() {
		<-changed
		return
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	}
}
