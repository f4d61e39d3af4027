package eventlog

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"sync"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

// Memory is a log in memory, for tests and for use without files.
type Memory struct {
	mu      sync.Mutex
	base    wire.Base
	facts   []wire.Record // the first is the one after base; elements never change
	taken   map[sender]int64
	letters map[string][]int64 // numbers of each recipient's mail; "" has all
	kept    []state            // at most two, oldest first
	closed  bool
}

// A sender is an actor and a key that it has used.
type sender struct{ from, key string }

// A state is a state stored by Keep.
type state struct {
	seq  int64
	body []byte
}

// NewMemory returns an empty log.
func NewMemory() *Memory {
	return &Memory{taken: make(map[sender]int64), letters: make(map[string][]int64)}
}

// usable returns an error if the log is closed or ctx is done. m.mu must be held.
func (m *Memory) usable(ctx context.Context) error {
	if m.closed {
		return fs.ErrClosed
	}
	return ctx.Err()
}

// Append implements Log.
func (m *Memory) Append(ctx context.Context, last int64, batch []wire.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return err
	}
	if end := m.last(); end != last {
		return moved(end, last)
	}
	if err := examine(last, batch); err != nil {
		return err
	}
	if err := m.take(last, batch); err != nil {
		return err
	}
	for i, r := range batch {
		r.Payload = bytes.Clone(r.Payload)
		m.facts = append(m.facts, asKept(r, last+int64(i)+1))
		if seq := m.last(); r.Topic != "" && r.To != "" {
			m.letters[r.To] = append(m.letters[r.To], seq)
			m.letters[""] = append(m.letters[""], seq)
		}
	}
	return nil
}

// take records the keys of a batch, all or none.
func (m *Memory) take(last int64, batch []wire.Record) error {
	for i := range batch {
		r := &batch[i]
		if r.Key == "" {
			continue
		}
		who := sender{from: r.From, key: r.Key}
		seq, taken := m.taken[who]
		if !taken {
			m.taken[who] = last + int64(i) + 1
			continue
		}
		if seq > last {
			seq = 0
		}
		for _, r := range batch[:i] {
			if who := (sender{from: r.From, key: r.Key}); m.taken[who] > last {
				delete(m.taken, who)
			}
		}
		return &TakenError{Index: i, From: r.From, Key: r.Key, Seq: seq}
	}
	return nil
}

// Records implements Log.
func (m *Memory) Records(ctx context.Context, after int64) iter.Seq2[wire.Record, error] {
	return func(yield func(wire.Record, error) bool) {
		m.mu.Lock()
		facts, closed, base := m.facts, m.closed, m.base
		m.mu.Unlock()
		if closed {
			yield(wire.Record{}, fs.ErrClosed)
			return
		}
		if after = max(after, 0); after < base.Seq {
			yield(wire.Record{}, &wire.RemovedError{Base: base})
			return
		}
		after := min(after-base.Seq, int64(len(facts)))
		for _, r := range facts[after:] {
			if err := ctx.Err(); err != nil {
				yield(wire.Record{}, err)
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Find implements Log.
func (m *Memory) Find(ctx context.Context, s wire.Search) iter.Seq2[wire.Record, error] {
	return func(yield func(wire.Record, error) bool) {
		m.mu.Lock()
		facts, base, holder, err := m.facts, m.base.Seq, m.taken[sender{from: s.From, key: s.Key}], m.usable(ctx)
		m.mu.Unlock()
		if err != nil {
			yield(wire.Record{}, err)
			return
		}
		if s.Archived {
			for _, r := range archivedIn(facts, s) {
				if !yield(r, nil) {
					return
				}
			}
			return
		}
		if s.Artifacts {
			for _, r := range facts {
				if fits := r.Seq > s.After && (s.Until == 0 || r.Seq <= s.Until) && mayRefer(&r); fits && !yield(r, nil) {
					return
				}
			}
			return
		}
		if s.Key != "" {
			if holder > 0 {
				yield(facts[holder-1-base], nil)
			}
			return
		}
		for found := openMail(s, base+int64(len(facts)), m.numbers); ; {
			seq, _, err := found.next(ctx)
			if err != nil {
				yield(wire.Record{}, err)
				return
			}
			if seq == 0 || !yield(facts[seq-1-base], nil) {
				return
			}
		}
	}
}

// archivedIn returns the records of archived tasks that a search selects. It reads all facts.
func archivedIn(facts []wire.Record, s wire.Search) []wire.Record {
	newest := make(map[int64]wire.Record)
	for _, r := range facts {
		if r.Kind == events.TaskArchived && (s.Until == 0 || r.Seq <= s.Until) && (s.Task == r.Correlation || s.Task == "" && r.ReplyTo > s.After) {
			newest[r.ReplyTo] = r
		}
	}
	return slices.SortedFunc(maps.Values(newest), func(a, b wire.Record) int { return cmp.Compare(a.ReplyTo, b.ReplyTo) })
}

// numbers returns up to n numbers of the letters of a recipient, or of all letters, in a span.
func (m *Memory) numbers(to string, s span, n int) ([]int64, error) {
	m.mu.Lock()
	all := m.letters[to]
	m.mu.Unlock()
	from, _ := slices.BinarySearch(all, s.after+1)
	end, _ := slices.BinarySearch(all, s.until+1)
	part := all[from:end]
	if !s.backward {
		return part[:min(n, len(part))], nil
	}
	part = slices.Clone(part[max(len(part)-n, 0):])
	slices.Reverse(part)
	return part, nil
}

// Snapshot implements Log.
func (m *Memory) Snapshot(ctx context.Context) (int64, []byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil || len(m.kept) == 0 {
		return 0, nil, err
	}
	newest := m.kept[len(m.kept)-1]
	return newest.seq, bytes.Clone(newest.body), nil
}

// Keep implements Log.
func (m *Memory) Keep(ctx context.Context, seq int64, text io.Reader) error {
	body, err := io.ReadAll(text)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return err
	}
	if last := m.last(); seq < 1 || seq > last {
		return outside(seq, last)
	}
	at, known := slices.BinarySearchFunc(m.kept, seq, func(s state, seq int64) int { return cmp.Compare(s.seq, seq) })
	rest := m.kept[at:]
	if known {
		rest = rest[1:]
	}
	m.kept = append(append(m.kept[:at:at], state{seq: seq, body: body}), rest...)
	m.kept = m.kept[max(len(m.kept)-2, 0):]
	return nil
}

// Last returns the number of the newest fact, or 0.
func (m *Memory) Last() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last()
}

// last returns the number of the newest fact. m.mu must be held.
func (m *Memory) last() int64 { return m.base.Seq + int64(len(m.facts)) }

// Close makes further operations fail. It does not release the memory.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
