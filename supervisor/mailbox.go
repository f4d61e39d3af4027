package supervisor

import (
	"errors"
	"os"
	"sync"
	"time"

	"orchestrator/supervisor/child"
)

// Why a message was not taken.
var (
	ErrMailboxFull = errors.New("its mailbox is full")
	ErrNoStdin     = errors.New("it takes no messages")
)

// mailbox is what waits for the stdin of one run of an agent. Putting never
// waits. One goroutine writes while there is something to write, whole lines,
// many in one write; a line of which a part was written is always finished
// before anything else happens to the stream.
type mailbox struct {
	bounds  Bounds
	timeout time.Duration
	to      child.Stdin
	close   func()       // ends the stream
	wrote   func([]byte) // sees each line before it is written; may be nil
	stalled func(bool)   // stdin took nothing for timeout; it takes again
	broken  func(error)  // the agent closed its stdin

	mu      sync.Mutex
	queue   [][]byte
	bytes   int64
	taken   int // messages that the writer has in hand, and their bytes
	inHand  int64
	writing bool
	ending  bool // close when the queue is empty
	over    bool // nothing can be written any more
	refused int64
	room    chan struct{} // closed when something was taken; nil while nobody waits
}

// batch bounds what is written at once.
const batch = 64 << 10

// put adds a message, which must be a whole line. When the mailbox is full it
// also returns what is closed when that may have changed.
func (m *mailbox) put(line []byte) (moved <-chan struct{}, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.over || m.ending:
		m.refused++
		return nil, ErrNoStdin
	case len(m.queue)+m.taken >= m.bounds.Messages, m.bytes+int64(len(line)) > m.bounds.Bytes && m.bytes > 0:
		m.refused++
		if m.room == nil {
			m.room = make(chan struct{})
		}
		return m.room, ErrMailboxFull
	}
	m.queue = append(m.queue, line)
	m.bytes += int64(len(line))
	m.write()
	return nil, nil
}

// end closes stdin when all that waits has been written.
func (m *mailbox) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ending && !m.over {
		m.ending = true
		m.write()
	}
}

// drop forgets what waits. The child is gone.
func (m *mailbox) drop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused += int64(len(m.queue) + m.taken)
	m.over, m.queue, m.bytes, m.taken, m.inHand = true, nil, 0, 0, 0
	m.makeRoom()
}

// write makes sure that a writer is at work. The lock is held.
func (m *mailbox) write() {
	if !m.writing {
		m.writing = true
		go m.run()
	}
}

// run writes until there is nothing left. It ends with the queue, or with the
// stream.
func (m *mailbox) run() {
	var text []byte
	for {
		text = m.take(text[:0])
		if len(text) == 0 {
			return
		}
		if err := m.writeAll(text); err != nil {
			m.fail(err)
			return
		}
	}
}

// take moves messages from the queue into text. With nothing to take it ends
// the writer.
func (m *mailbox) take(text []byte) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes -= m.inHand // what was taken before is written now
	m.taken, m.inHand = 0, 0
	for len(m.queue) > 0 && (len(text) == 0 || len(text)+len(m.queue[0]) <= batch) {
		if m.wrote != nil {
			m.wrote(m.queue[0])
		}
		text = append(text, m.queue[0]...)
		m.inHand += int64(len(m.queue[0]))
		m.queue[0] = nil
		m.queue = m.queue[1:]
		m.taken++
	}
	m.makeRoom()
	if len(text) == 0 {
		m.queue = nil
		m.writing = false
		if m.ending && !m.over {
			m.over = true
			m.close()
		}
	}
	return text
}

// writeAll writes text, saying so when the agent does not take it in time, and
// goes on from where it stood: half a line must not be followed by another.
func (m *mailbox) writeAll(text []byte) error {
	m.mu.Lock()
	timeout := m.timeout
	m.mu.Unlock()
	if err := m.to.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	n, err := m.to.Write(text)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	m.stalled(true)
	if err := m.to.SetWriteDeadline(time.Time{}); err != nil {
		return err
	}
	if _, err := m.to.Write(text[n:]); err != nil {
		return err
	}
	m.stalled(false)
	return nil
}

// fail gives the stream up.
func (m *mailbox) fail(err error) {
	m.mu.Lock()
	known := m.over
	m.writing, m.over = false, true
	m.refused += int64(len(m.queue) + m.taken)
	m.queue, m.bytes, m.taken, m.inHand = nil, 0, 0, 0
	m.makeRoom()
	m.mu.Unlock()
	if !known && !errors.Is(err, os.ErrClosed) {
		m.broken(err)
	}
}

// makeRoom wakes those who wait for room. The lock is held.
func (m *mailbox) makeRoom() {
	if m.room != nil {
		close(m.room)
		m.room = nil
	}
}

// adopt takes on changed limits.
func (m *mailbox) adopt(bounds Bounds, timeout time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bounds, m.timeout = bounds, timeout
}

func (m *mailbox) waiting() (messages int, bytes, refused int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.queue) + m.taken, m.bytes, m.refused
}
