package logtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"orchestrator/supervisor/eventlog"
)

// Entries are the entries of a shared log in memory, which several engines use. The zero Entries
// have none.
type Entries struct {
	Most int // bytes of an entry; 0: 1 MiB

	mu     sync.Mutex
	texts  [][]byte // in the form of eventlog.Entry.Append
	atWork []*seat
	key    []byte // of the hubs; made when it is first asked for

	objects map[string][]byte
}

// Join returns the engine of one more hub.
func (s *Entries) Join() *Memory { return &Memory{entries: s, closed: make(chan struct{})} }

// Len returns the number of entries.
func (s *Entries) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.texts)
}

// Lose removes the newest entries, so that n are left. An engine that does this has broken its
// promise.
func (s *Entries) Lose(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = s.texts[:n:n]
}

// Entry returns entry n.
func (s *Entries) Entry(n int64) (eventlog.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < 1 || n > int64(len(s.texts)) {
		return eventlog.Entry{}, fmt.Errorf("there is no entry %d of %d", n, len(s.texts))
	}
	return eventlog.ReadEntry(bytes.Clone(s.texts[n-1]))
}

func (s *Entries) most() int {
	if s.Most == 0 {
		return 1 << 20
	}
	return s.Most
}

// put adds an entry after entry at.
func (s *Entries) put(at int64, e eventlog.Entry) (int64, error) {
	text := e.Append(nil)
	if len(text) > s.most() {
		return 0, fmt.Errorf("an entry has %d bytes, and %d is the limit", len(text), s.most())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch end := int64(len(s.texts)); {
	case at < end:
		return 0, eventlog.ErrBehind
	case at > end:
		return 0, fmt.Errorf("there is no entry %d of %d to follow", at, end)
	}
	s.texts = append(s.texts, text)
	return at + 1, nil
}

// A seat is an engine that serves.
type seat struct{ who []byte }

// Memory is an engine of eventlog in memory, for tests: one hub's access to Entries. Its funcs
// are faults. They are set before the engine is used, and may be nil.
type Memory struct {
	// Putting is called before an entry is added. Put returns its error, and the entry is not there.
	// Other hubs can write while it runs.
	Putting func(at int64, e eventlog.Entry) error

	// Stored is called after an entry was added. Put returns its error, although the entry is stored.
	Stored func(n int64, e eventlog.Entry) error

	// Asking is called before Get, End, First and Ask, which return its error.
	Asking func() error

	entries *Entries
	once    sync.Once
	closed  chan struct{}
	ends    []func() // of Serve; entries.mu guards it
}

var _ eventlog.Engine = (*Memory)(nil)

// Closed returns a channel that Close closes.
func (m *Memory) Closed() <-chan struct{} { return m.closed }

// usable returns an error if the engine is closed.
func (m *Memory) usable() error {
	select {
	case <-m.closed:
		return fs.ErrClosed
	default:
		return nil
	}
}

// ask returns an error if no question can be answered.
func (m *Memory) ask(ctx context.Context) error {
	if m.Asking != nil {
		if err := m.Asking(); err != nil {
			return err
		}
	}
	if err := m.usable(); err != nil {
		return err
	}
	return ctx.Err()
}

// Put implements eventlog.Engine.
func (m *Memory) Put(at int64, e eventlog.Entry) (int64, error) {
	if m.Putting != nil {
		if err := m.Putting(at, e); err != nil {
			return 0, err
		}
	}
	if err := m.usable(); err != nil {
		return 0, err
	}
	n, err := m.entries.put(at, e)
	if err == nil && m.Stored != nil {
		err = m.Stored(n, e)
	}
	return n, err
}

// Get implements eventlog.Engine. It ends at the entry that was the last when it began. It
// overwrites the body of an entry after see, to find a caller that keeps it.
func (m *Memory) Get(ctx context.Context, at int64, see func(n int64, e eventlog.Entry) error) error {
	for end := int64(m.entries.Len()); at < end; at++ {
		if err := m.ask(ctx); err != nil {
			return err
		}
		e, err := m.entries.Entry(at + 1)
		if err != nil {
			return err
		}
		if err := see(at+1, e); err != nil {
			return err
		}
		clear(e.Body)
	}
	return m.ask(ctx)
}

// End implements eventlog.Engine.
func (m *Memory) End(ctx context.Context) (int64, error) {
	return int64(m.entries.Len()), m.ask(ctx)
}

// First implements eventlog.Engine.
func (m *Memory) First(ctx context.Context, n int64) (int64, error) {
	if err := m.ask(ctx); err != nil {
		return 0, err
	}
	e, err := m.entries.Entry(n)
	return e.First, err
}

// Most implements eventlog.Engine.
func (m *Memory) Most() int { return m.entries.most() }

// Ask implements eventlog.Engine.
func (m *Memory) Ask(ctx context.Context) ([]byte, error) {
	if err := m.ask(ctx); err != nil {
		return nil, err
	}
	m.entries.mu.Lock()
	defer m.entries.mu.Unlock()
	if len(m.entries.atWork) == 0 {
		return nil, eventlog.ErrVacant
	}
	return m.entries.atWork[len(m.entries.atWork)-1].who, nil
}

// Serve implements eventlog.Engine.
func (m *Memory) Serve(who []byte) (end func(), err error) {
	if err := m.usable(); err != nil {
		return nil, err
	}
	m.entries.mu.Lock()
	defer m.entries.mu.Unlock()
	mine := &seat{who: who}
	m.entries.atWork = append(m.entries.atWork, mine)
	end = func() {
		m.entries.mu.Lock()
		defer m.entries.mu.Unlock()
		m.entries.atWork = slices.DeleteFunc(m.entries.atWork, func(s *seat) bool { return s == mine })
	}
	m.ends = append(m.ends, end)
	return end, nil
}

// Key implements eventlog.Engine.
func (m *Memory) Key() []byte {
	m.entries.mu.Lock()
	defer m.entries.mu.Unlock()
	if m.entries.key == nil {
		m.entries.key = make([]byte, 32)
		_, _ = rand.Read(m.entries.key) // it never fails
	}
	return m.entries.key
}

// Missing implements eventlog.Engine.
func (m *Memory) Missing() []string { return nil }

// Close implements eventlog.Engine.
func (m *Memory) Close() error {
	m.once.Do(func() { close(m.closed) })
	m.entries.mu.Lock()
	ends := m.ends
	m.entries.mu.Unlock()
	for _, end := range ends {
		end()
	}
	return nil
}
