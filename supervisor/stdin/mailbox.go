// Package stdin writes to the stdin of agents.
//
// A [Mailbox] holds the lines that wait for one run of an agent, within limits. Adding a line
// never blocks. A line that exceeds a limit is refused with an error. Receipts report which
// lines were written and which were lost.
package stdin

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"orchestrator/wire"
)

// The errors of Put.
var (
	ErrFull      = errors.New("its mailbox is full")
	ErrOvertakes = errors.New("a message before it was refused") // the dispatcher sends it again later
	ErrNoStdin   = errors.New("it takes no messages")
)

// A Mailbox queues lines for the stdin of one run of an agent. Put never blocks. One goroutine
// at a time writes, many lines in one write, and it completes each line that it has begun.
type Mailbox struct {
	mu        sync.Mutex
	options   Options // Adopt changes the limits and the timeout
	queue     []Entry
	lines     int // messages in the queue
	bytes     int64
	reserved  int // answers that will be put soon
	pressing  int // lines queued or in hand that are not Retriable
	pressed   int // the part of them that is in hand
	taken     int // messages that are being written, and their bytes
	inHand    int64
	accepted  int64    // bytes, so far
	assigned  int64    // of these up to the latest notice of a task; 0: there was none
	asking    receipts // receipts of the entries that are being written
	scratch   []byte   // used only by the writer
	writing   bool
	ending    bool // close when the queue is empty
	over      bool // stdin can no longer be written
	free      bool // callers no longer wait for room, because the agent is dead
	refused   int64
	room      chan struct{}  // closed when lines were written; nil while no caller waits
	onRoom    []func()       // called once, when the mailbox is less than half full
	onDrained []func()       // called once, when it is less than half full without reserved
	notifies  bool           // NotifyRoom waits
	missed    map[int64]bool // refused session messages that were not put since

	held   chan struct{} // closed by Resume; nil unless Hold was called
	rest   []byte        // the rest of the entry that a held writer writes
	parked bool          // a writer waits for Resume
}

// Options configure a Mailbox.
type Options struct {
	Limits   Limits
	Timeout  time.Duration // how long a write may block before StdinStalled is called
	To       Stream
	Shut     func()       // ends the stream
	OnWrite  func([]byte) // called with each line before it is written; nil: not called
	Listener Listener
}

// A Listener is the run of the agent.
type Listener interface {
	// Received is called with the receipts of entries that were written or lost.
	Received(receipts []wire.Delivered, written bool)
	// StdinStalled is called when stdin has blocked for Options.Timeout (true), and when it is read again (false).
	StdinStalled(yes bool)
	// StdinBroken is called when the agent has closed its stdin.
	StdinBroken(err error)
}

// New returns an empty Mailbox.
func New(o Options) *Mailbox { return &Mailbox{options: o} }

// Stream is the stdin of a process.
type Stream interface {
	io.Writer
	SetWriteDeadline(at time.Time) error
}

// An Entry is the lines of one call of Put.
type Entry struct {
	Text  []byte
	Lines int
	// Told is called once with whether the entry was written. It may be nil.
	Told func(written bool)
	// Receipts are reported when the entry was written or lost. The receipts of one write are
	// reported together, because there may be many.
	Receipts []wire.Delivered
	// Priority exempts the entry from the limit on messages. Such entries are always few.
	Priority bool
	// Answers is the number of lines that answer requests. They are accepted whatever the
	// limits are, because the agent may wait for them. Await limits the number of requests
	// instead.
	Answers int
	// Retriable marks an entry that the caller puts again if it does not fit. It does not count as lost, and an agent that
	// does not read it is not reported as stalled.
	Retriable bool
	// Assigns marks an entry that tells the agent of a task.
	Assigns bool
}

// OneLine returns an entry of one line.
func OneLine(text []byte) Entry { return Entry{Text: text, Lines: 1} }

// receipts collects the callbacks and receipts that wait to learn whether an entry was written.
type receipts struct {
	told     []func(written bool)
	receipts []wire.Delivered
}

func (r *receipts) join(e *Entry) {
	if e.Told != nil {
		r.told = append(r.told, e.Told)
	}
	r.receipts = append(r.receipts, e.Receipts...)
}

func (m *Mailbox) tell(those receipts, written bool) {
	for _, told := range those.told {
		told(written)
	}
	if len(those.receipts) > 0 {
		m.options.Listener.Received(those.receipts, written)
	}
}

const (
	// BatchBytes is the most bytes in one write.
	BatchBytes = 64 << 10
	// scratchKept is the largest buffer that is kept while no entry waits.
	scratchKept = 1 << 10
)

// Put adds an entry, and writes it directly if the stream accepts it at once. The caller may
// reuse the text afterwards. While less than half of the bytes is used, an entry of any size
// is accepted, because it would otherwise be retried without end. If the mailbox is full, Put
// also returns a channel that is closed when this may have changed.
func (m *Mailbox) Put(e Entry) (moved <-chan struct{}, err error) {
	m.mu.Lock()
	switch {
	case m.over || m.ending:
		m.refused += int64(e.Lines)
		err = ErrNoStdin
	case e.Answers > 0:
		m.reserved = max(0, m.reserved-e.Answers)
	case e.Retriable: // measured as in PageRoom
		if !m.roomy() {
			moved, err = m.moving(), ErrFull
		}
	case !e.Priority && m.full(), m.bytes+int64(len(e.Text)) > m.options.Limits.Bytes && m.bytes*2 >= m.options.Limits.Bytes:
		m.refused += int64(e.Lines)
		moved, err = m.moving(), ErrFull
	}
	if err != nil {
		m.mu.Unlock()
		return moved, err
	}
	m.bytes += int64(len(e.Text))
	m.accepted += int64(len(e.Text))
	if e.Assigns {
		m.assigned = m.accepted
	}
	if !e.Retriable {
		m.pressing += e.Lines
	}
	if m.writing || m.held != nil {
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

// hold marks an entry as being written. m.mu must be held.
func (m *Mailbox) hold(e *Entry) {
	if m.options.OnWrite != nil {
		for line := range bytes.Lines(e.Text) {
			m.options.OnWrite(line)
		}
	}
	m.inHand += int64(len(e.Text))
	m.taken += e.Lines
	if !e.Retriable {
		m.pressed += e.Lines
	}
	m.asking.join(e)
}

// CloseWhenEmpty closes stdin when everything in the mailbox is written.
func (m *Mailbox) CloseWhenEmpty() {
	m.mu.Lock()
	idle := !m.ending && !m.over && !m.writing && m.held == nil
	m.ending = true
	m.makeRoom() // no caller needs to wait, because no answers will follow
	m.writing = m.writing || idle
	m.mu.Unlock()
	if idle {
		m.begin(nil)
	}
}

// Drop discards the contents, because the process is gone.
func (m *Mailbox) Drop() {
	m.mu.Lock()
	lost, waited := m.forget()
	m.mu.Unlock()
	m.tell(lost, false)
	for _, do := range waited {
		do()
	}
}

// forget empties the mailbox for good. It returns the receipts of the contents, and the
// functions that waited until the mailbox is drained. m.mu must be held.
func (m *Mailbox) forget() (lost receipts, waited []func()) {
	lost, waited = m.asking, m.onDrained
	for i := range m.queue {
		lost.join(&m.queue[i])
	}
	m.refused += int64(m.pressing) // retriable entries are not lost
	m.over, m.queue, m.lines, m.bytes, m.taken, m.inHand, m.asking = true, nil, 0, 0, 0, 0, receipts{}
	m.onRoom, m.onDrained, m.pressing, m.pressed = nil, nil, 0, 0
	m.makeRoom()
	return lost, waited
}

// An eager stream can be written without blocking.
type eager interface {
	TryWrite(text []byte) (n int, err error)
}

// inPlace is the number of writes that the caller of Put makes before a goroutine continues
// with later entries.
const inPlace = 4

// begin writes text and later entries as long as the stream accepts them at once, because
// waking a goroutine costs more than the write. A goroutine writes the rest.
func (m *Mailbox) begin(text []byte) {
	to, ok := m.options.To.(eager)
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

// run writes the rest of a write, and then the queue until it is empty or the stream fails.
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

// take moves entries from the queue to text. If the queue is empty, it ends the writer.
func (m *Mailbox) take(text []byte) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held != nil {
		m.writing = false
		return text[:0]
	}
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
			m.options.Shut()
		}
	}
	return text
}

// wroteAll updates the mailbox after a complete write.
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

// writeAll writes text completely. It reports when the agent does not read it in time and then
// continues, because half a line must not be followed by another line.
func (m *Mailbox) writeAll(text []byte) error {
	m.mu.Lock()
	timeout := m.options.Timeout // Adopt changes it
	m.mu.Unlock()
	if err := m.options.To.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	n, err := m.options.To.Write(text)
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case m.park(text[n:]):
		return m.writeAll(text[n:])
	}
	return m.writeLate(text[n:])
}

// Overtakes reports whether a session message would be read before an earlier one that was
// refused. The message must then be refused as well, because its sender did not know of the
// refusal. If it may be put, its own earlier refusal is forgotten.
func (m *Mailbox) Overtakes(said, after int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.missed[after] {
		return true
	}
	delete(m.missed, said)
	return false
}

// NoteRefused records session messages that were refused.
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

// writeLate writes the rest of a text that the agent did not read in time.
func (m *Mailbox) writeLate(text []byte) error {
	m.options.Listener.StdinStalled(true)
	if err := m.options.To.SetWriteDeadline(time.Time{}); err != nil {
		return err
	}
	n, err := m.options.To.Write(text)
	if errors.Is(err, os.ErrDeadlineExceeded) && m.park(text[n:]) {
		return m.writeLate(text[n:])
	}
	if err != nil {
		return err
	}
	m.options.Listener.StdinStalled(false)
	return nil
}

// fail gives up the stream.
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
		m.options.Listener.StdinBroken(err)
	}
}

// Adopt applies changed limits.
func (m *Mailbox) Adopt(limits Limits, timeout time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.options.Limits, m.options.Timeout = limits, timeout
}

// TaskUnread reports whether the agent has not read the latest notice of a task, when so many
// written bytes are unread.
func (m *Mailbox) TaskUnread(written int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.assigned > 0 && m.bytes+written > m.accepted-m.assigned
}

// Waiting returns the number and the size of the waiting messages, and how many messages were
// refused.
func (m *Mailbox) Waiting() (messages int, bytes, refused int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lines + m.taken, m.bytes, m.refused
}

// IsIdle reports whether all entries were written, and no entry is to come or was refused.
func (m *Mailbox) IsIdle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.writing && !m.over && !m.ending && m.lines+m.taken+m.reserved+len(m.missed) == 0
}

// MailWaiting returns how many of the waiting messages are mail.
func (m *Mailbox) MailWaiting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lines + m.taken - m.pressing
}

// Limits restrict the entries that wait for an agent's stdin.
type Limits struct {
	Messages int
	Bytes    int64
}
