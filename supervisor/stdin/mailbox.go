// Package stdin writes to the stdin of agents.
//
// A [Mailbox] holds the lines that wait for one run of an agent, within limits. Putting a
// line never waits. What is refused because of a limit is reported to the caller, and
// receipts report what was written and what was lost.
package stdin

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"orchestrator/wire"
)

// Why a message was not taken.
var (
	ErrFull      = errors.New("its mailbox is full")
	ErrOvertakes = errors.New("a message before it was refused") // the core sends it again in time
	ErrNoStdin   = errors.New("it takes no messages")
)

// Mailbox queues lines for the stdin of one run of an agent. Put never waits. One goroutine
// at a time writes, many lines in one write, and it finishes each line that it has begun.
type Mailbox struct {
	Limits     Limits
	Timeout    time.Duration
	To         Stream
	Shut       func()       // ends the stream
	OnWrite    func([]byte) // sees each line before it is written; may be nil
	OnStall    func(bool)   // stdin took nothing for Timeout; it takes again
	OnBroken   func(error)  // the agent closed its stdin
	OnReceipts func(receipts []wire.Delivered, written bool)

	mu         sync.Mutex
	queue      []Entry
	lines      int // messages in the queue
	bytes      int64
	reserved   int // answers that are being made
	pressing   int // of what is queued or in hand: lines that are lost if they do not fit
	pressed    int // of those in hand
	taken      int // messages that the writer has in hand, and their bytes
	inHand     int64
	asking     receipts // about what the writer has in hand
	scratch    []byte   // the writer's
	writing    bool
	ending     bool // close when the queue is empty
	over       bool // nothing can be written any more
	free       bool // nothing waits for room: the agent is dead, and its last words are heard
	refused    int64
	room       chan struct{}  // closed when something was taken; nil while nothing waits
	onRoom     []func()       // each called once when the mailbox is less than half full again
	onDrained  []func()       // and these when it is without what is owed
	AwaitsRoom atomic.Bool    // of the caller: it reports when the mailbox, which was full, has room again
	missed     map[int64]bool // session messages that were refused, and are not in it since
}

// Stream is the stdin of a process.
type Stream interface {
	io.Writer
	SetWriteDeadline(at time.Time) error
}

// Entry is what is put into a mailbox at once: whole lines.
type Entry struct {
	Text  []byte
	Lines int
	// Told hears, once, whether the entry was written; nil if not wanted.
	Told func(written bool)
	// Receipts are noted when it is known whether the entry was written: those of
	// all that is written at once together, for there may be many.
	Receipts []wire.Delivered
	// Priority is let in beyond the number of messages: there is never much of it.
	Priority bool
	// Answers is how many of the lines answer requests. Those are let in
	// whatever there is: an agent may wait for them, and it is kept from asking
	// for more than there is room for.
	Answers int
	// Retriable can wait: the caller comes again when there is no room,
	// and an agent that does not take it is not stalled by that.
	Retriable bool
}

// OneLine is an entry of one line.
func OneLine(text []byte) Entry { return Entry{Text: text, Lines: 1} }

// receipts collects the callbacks and receipts that wait to learn whether an entry was written.
type receipts struct {
	told     []func(written bool)
	receipts []wire.Delivered
}

func (c *receipts) join(e *Entry) {
	if e.Told != nil {
		c.told = append(c.told, e.Told)
	}
	c.receipts = append(c.receipts, e.Receipts...)
}

func (m *Mailbox) tell(those receipts, written bool) {
	for _, told := range those.told {
		told(written)
	}
	if len(those.receipts) > 0 {
		m.OnReceipts(those.receipts, written)
	}
}

const (
	// BatchBytes bounds what is written at once.
	BatchBytes = 64 << 10
	// scratchKept is how much of a buffer is kept while there is nothing to write.
	scratchKept = 1 << 10
)

// Put adds an entry, and writes it in place when the stream takes it at once.
// The text is the caller's again when it returns. However large it is, it is taken
// as long as less than half of what may wait does: what is never taken would be
// tried for ever. When the mailbox is full it also
// returns what is closed when that may have changed.
func (m *Mailbox) Put(e Entry) (moved <-chan struct{}, err error) {
	m.mu.Lock()
	switch {
	case m.over || m.ending:
		m.refused += int64(e.Lines)
		err = ErrNoStdin
	case e.Answers > 0:
		m.reserved = max(0, m.reserved-e.Answers)
	case e.Retriable: // at the same measure by which its room was told
		if !m.roomy() {
			moved, err = m.moving(), ErrFull
		}
	case !e.Priority && m.full(), m.bytes+int64(len(e.Text)) > m.Limits.Bytes && m.bytes*2 >= m.Limits.Bytes:
		m.refused += int64(e.Lines)
		moved, err = m.moving(), ErrFull
	}
	if err != nil {
		m.mu.Unlock()
		return moved, err
	}
	m.bytes += int64(len(e.Text))
	if !e.Retriable {
		m.pressing += e.Lines
	}
	if m.writing {
		e.Text = bytes.Clone(e.Text)
		m.queue = append(m.queue, e)
		m.lines += e.Lines
		m.mu.Unlock()
		return nil, nil
	}
	m.writing = true
	m.hold(&e)
	m.mu.Unlock()
	m.begin(e.Text)
	return nil, nil
}

// hold takes an entry into the writer's hand. The lock is held.
func (m *Mailbox) hold(e *Entry) {
	if m.OnWrite != nil {
		for line := range bytes.Lines(e.Text) {
			m.OnWrite(line)
		}
	}
	m.inHand += int64(len(e.Text))
	m.taken += e.Lines
	if !e.Retriable {
		m.pressed += e.Lines
	}
	m.asking.join(e)
}

// CloseWhenEmpty closes stdin when all that waits has been written.
func (m *Mailbox) CloseWhenEmpty() {
	m.mu.Lock()
	idle := !m.ending && !m.over && !m.writing
	m.ending = true
	m.makeRoom() // there are no answers any more, and so nothing waits
	m.writing = m.writing || idle
	m.mu.Unlock()
	if idle {
		m.begin(nil)
	}
}

// Drop forgets what waits. The child is gone.
func (m *Mailbox) Drop() {
	m.mu.Lock()
	lost, waited := m.forget()
	m.mu.Unlock()
	m.tell(lost, false)
	for _, do := range waited {
		do()
	}
}

// forget empties the mailbox for good, and returns those who asked about what
// was in it, and what was to be done when it is lighter. The lock is held.
func (m *Mailbox) forget() (lost receipts, waited []func()) {
	lost, waited = m.asking, m.onDrained
	for i := range m.queue {
		lost.join(&m.queue[i])
	}
	m.refused += int64(m.pressing) // what can wait is not lost
	m.over, m.queue, m.lines, m.bytes, m.taken, m.inHand, m.asking = true, nil, 0, 0, 0, 0, receipts{}
	m.onRoom, m.onDrained, m.pressing, m.pressed = nil, nil, 0, 0
	m.makeRoom()
	return lost, waited
}

// eager is a stream that can be written without waiting: what it does not take
// at once is left.
type eager interface {
	TryWrite(text []byte) (n int, err error)
}

// inPlace is how often the caller of put writes in place before a goroutine goes on
// with what others have put meanwhile.
const inPlace = 4

// begin makes its caller the writer, of text and what has been put since, as
// long as the stream takes everything at once: waking a goroutine costs more
// than the write. A goroutine does the rest.
func (m *Mailbox) begin(text []byte) {
	to, ok := m.To.(eager)
	if !ok {
		go m.run(bytes.Clone(text))
		return
	}
	for range inPlace {
		if len(text) > 0 {
			n, err := to.TryWrite(text)
			if err != nil {
				m.fail(err)
				return
			}
			if n < len(text) {
				go m.run(bytes.Clone(text[n:]))
				return
			}
			m.wroteAll()
		}
		if text = m.take(m.scratch[:0]); len(text) == 0 {
			return
		}
		m.scratch = text
	}
	m.scratch = nil
	go m.run(text)
}

// run writes what is left of a write, and then until there is nothing. It ends
// with the queue, or with the stream.
func (m *Mailbox) run(rest []byte) {
	text := rest
	for {
		if len(text) == 0 {
			if text = m.take(text[:0]); len(text) == 0 {
				return
			}
		}
		if err := m.writeAll(text); err != nil {
			m.fail(err)
			return
		}
		m.wroteAll()
		text = text[:0]
	}
}

// take moves entries from the queue into text. With nothing to take it ends
// the writer.
func (m *Mailbox) take(text []byte) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.queue) > 0 && (len(text) == 0 || len(text)+len(m.queue[0].Text) <= BatchBytes) {
		e := &m.queue[0]
		m.hold(e)
		text = append(text, e.Text...)
		m.lines -= e.Lines
		*e = Entry{}
		m.queue = m.queue[1:]
	}
	m.makeRoom()
	if len(text) == 0 {
		m.queue = nil
		m.writing = false
		if cap(m.scratch) > scratchKept {
			m.scratch = nil
		}
		if m.ending && !m.over {
			m.over = true
			m.Shut()
		}
	}
	return text
}

// wroteAll follows a write: what was in hand is with the agent.
func (m *Mailbox) wroteAll() {
	m.mu.Lock()
	m.bytes -= m.inHand
	m.pressing -= m.pressed
	m.taken, m.inHand, m.pressed = 0, 0, 0
	asked := m.asking
	m.asking = receipts{}
	relief := m.relieved()
	m.mu.Unlock()
	m.tell(asked, true)
	for _, do := range relief {
		do()
	}
}

// writeAll writes text, reporting when the agent does not take it in time, and goes on
// from where it stood: half a line must not be followed by another.
func (m *Mailbox) writeAll(text []byte) error {
	m.mu.Lock()
	timeout := m.Timeout // Adopt changes it
	m.mu.Unlock()
	if err := m.To.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	n, err := m.To.Write(text)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return m.writeLate(text[n:])
}

// Overtakes reports whether a session message would be read before one that was sent
// before it and was refused. It is refused as well then: the core did not know of that
// when it sent it. If the message may go, what was refused before it is settled.
func (m *Mailbox) Overtakes(said, after int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.missed[after] {
		return true
	}
	delete(m.missed, said)
	return false
}

// Owed is how many messages wait, are written, or are being made.
func (m *Mailbox) Owed() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reserved + m.lines + m.taken
}

// NoteRefused notes session messages that were refused.
func (m *Mailbox) NoteRefused(receipts []wire.Delivered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range receipts {
		if r.Said != 0 && r.Task == "" {
			if m.missed == nil {
				m.missed = make(map[int64]bool)
			}
			m.missed[r.Said] = true
		}
	}
}

// writeLate writes the rest of what an agent did not take in time.
func (m *Mailbox) writeLate(text []byte) error {
	m.OnStall(true)
	if err := m.To.SetWriteDeadline(time.Time{}); err != nil {
		return err
	}
	if _, err := m.To.Write(text); err != nil {
		return err
	}
	m.OnStall(false)
	return nil
}

// fail gives the stream up.
func (m *Mailbox) fail(err error) {
	m.mu.Lock()
	known := m.over
	m.writing = false
	lost, waited := m.forget()
	m.mu.Unlock()
	m.tell(lost, false)
	for _, do := range waited {
		do()
	}
	if !known && !errors.Is(err, os.ErrClosed) {
		m.OnBroken(err)
	}
}

// Adopt takes on changed limits.
func (m *Mailbox) Adopt(bounds Limits, timeout time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Limits, m.Timeout = bounds, timeout
}

// Waiting returns how much waits, and how many messages were refused so far.
func (m *Mailbox) Waiting() (messages int, bytes, refused int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lines + m.taken, m.bytes, m.refused
}

// MailWaiting is how many of the messages that wait are mail.
func (m *Mailbox) MailWaiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lines + m.taken - m.pressing
}

// Limits bound what waits for an agent's stdin.
type Limits struct {
	Messages int
	Bytes    int64
}
