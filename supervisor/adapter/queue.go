package adapter

import (
	"bytes"
	"errors"
	"os"
	"sync"
	"time"
)

// A queue holds texts for a writer. Adding never blocks; wait blocks while it is full.
type queue struct {
	mu     sync.Mutex
	moved  *sync.Cond
	texts  [][]byte
	bytes  int
	closed bool
	err    error // of the writer
}

func newQueue() *queue {
	q := new(queue)
	q.moved = sync.NewCond(&q.mu)
	return q
}

func (q *queue) add(text []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.err != nil {
		return
	}
	q.texts = append(q.texts, text)
	q.bytes += len(text)
	q.moved.Broadcast()
}

// tryAdd adds a text, and reports whether there was room.
func (q *queue) tryAdd(text []byte) bool {
	q.mu.Lock()
	full := q.bytes > maxWaiting
	q.mu.Unlock()
	if !full {
		q.add(text)
	}
	return !full
}

// all yields the texts until the queue is closed and empty. Texts that wait together are one.
func (q *queue) all(yield func([]byte) bool) {
	for text, ok := q.take(); ok && yield(text); text, ok = q.take() {
	}
}

// take waits for texts and returns them as one. It reports false when the queue is closed and
// empty.
func (q *queue) take() ([]byte, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.texts) == 0 && !q.closed {
		q.moved.Wait()
	}
	if len(q.texts) == 0 {
		return nil, false
	}
	text := bytes.Join(q.texts, nil)
	q.texts, q.bytes = nil, 0
	q.moved.Broadcast()
	return text, true
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.moved.Broadcast()
}

func (q *queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err, q.texts, q.bytes = err, nil, 0
	q.moved.Broadcast()
}

// wait waits until there is room, until the deadline, or until the queue is closed.
func (q *queue) wait(deadline time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !deadline.IsZero() {
		alarm := time.AfterFunc(time.Until(deadline), func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.moved.Broadcast()
		})
		defer alarm.Stop()
	}
	for q.bytes > maxWaiting && !q.closed && q.err == nil {
		if !deadline.IsZero() && !time.Now().Before(deadline) {
			return os.ErrDeadlineExceeded
		}
		q.moved.Wait()
	}
	if q.closed {
		return os.ErrClosed
	}
	return errors.Join(q.err)
}

// maxWaiting is how many bytes may wait for the client, or for the orchestrator, before the other side is no longer
// read.
const maxWaiting = 1 << 20
