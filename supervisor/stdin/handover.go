package stdin

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"orchestrator/wire"
)

// A Handover has the waiting entries of a Mailbox, for the Mailbox of the next program of this process.
type Handover struct {
	Entries []Waiting `json:"entries"`
	Refused int64     `json:"refused"`
	Missed  []int64   `json:"missed"` // see Overtakes
}

// A Waiting is an entry that is not written, or the rest of a write. A line may be half written, so
// the order must be kept.
type Waiting struct {
	Text      []byte           `json:"text"`
	Lines     int              `json:"lines"`
	Receipts  []wire.Delivered `json:"receipts"`
	Retriable bool             `json:"retriable"`
}

// Hold stops the writing at once, even within a line, until Resume is called. It returns false if
// that takes longer than patience; the caller then calls Resume.
func (m *Mailbox) Hold(patience time.Duration) bool {
	m.mu.Lock()
	m.held = make(chan struct{})
	m.mu.Unlock()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		m.mu.Lock()
		still := !m.writing || m.parked
		m.mu.Unlock()
		if still {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		_ = m.options.To.SetWriteDeadline(time.Unix(1, 0)) // again, because a writer sets its own
	}
}

// Resume undoes Hold.
func (m *Mailbox) Resume() {
	m.mu.Lock()
	close(m.held)
	m.held, m.rest, m.parked = nil, nil, false
	idle := !m.writing && !m.over && (len(m.queue) > 0 || m.ending)
	m.writing = m.writing || idle
	m.mu.Unlock()
	if idle {
		go m.run(nil)
	}
}

// park waits for Resume if the mailbox is held, and reports whether it was.
func (m *Mailbox) park(rest []byte) bool {
	m.mu.Lock()
	held := m.held
	if held != nil {
		m.rest, m.parked = rest, true
	}
	m.mu.Unlock()
	if held == nil {
		return false
	}
	<-held
	return true
}

// Handover returns the waiting entries of a held mailbox.
func (m *Mailbox) Handover() Handover {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := Handover{Refused: m.refused, Missed: slices.Collect(maps.Keys(m.missed))}
	if m.parked {
		h.Entries = append(h.Entries, Waiting{Text: m.rest, Lines: m.taken, Receipts: m.asking.receipts, Retriable: m.pressed == 0})
	}
	for i := range m.queue {
		e := &m.queue[i]
		h.Entries = append(h.Entries, Waiting{Text: bytes.Clone(e.Text), Lines: e.Lines, Receipts: e.Receipts, Retriable: e.Retriable})
	}
	return h
}

// TakeOver puts the waiting entries of an earlier mailbox into a new one. They are accepted beyond the limits, because
// they were accepted before.
func (m *Mailbox) TakeOver(h Handover) {
	m.mu.Lock()
	m.refused = h.Refused
	for _, said := range h.Missed {
		if m.missed == nil {
			m.missed = make(map[int64]bool)
		}
		m.missed[said] = true
	}
	for _, w := range h.Entries {
		m.queue = append(m.queue, Entry{Text: w.Text, Lines: w.Lines, Receipts: w.Receipts, Retriable: w.Retriable})
		m.lines += w.Lines
		m.bytes += int64(len(w.Text))
		if !w.Retriable {
			m.pressing += w.Lines
		}
	}
	m.writing = len(h.Entries) > 0
	m.mu.Unlock()
	if len(h.Entries) > 0 {
		go m.run(nil)
	}
}
