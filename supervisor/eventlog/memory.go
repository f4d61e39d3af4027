package eventlog

import (
	"bytes"
	"context"
	"io/fs"
	"iter"
	"sync"

	"orchestrator/wire"
)

// Memory is a log that lives as long as the process: for tests, and for those
// who want no files.
type Memory struct {
	mu     sync.Mutex
	facts  []wire.Record // fact n at n-1; what is there is never changed
	taken  map[sender]int64
	kept   []state // at most two, oldest first
	closed bool
}

// sender is who used which key.
type sender struct{ from, key string }

// state is what Keep was given.
type state struct {
	seq  int64
	body []byte
}

// NewMemory returns an empty log.
func NewMemory() *Memory {
	return &Memory{taken: make(map[sender]int64)}
}

// Append implements Log.
func (m *Memory) Append(ctx context.Context, last int64, batch []wire.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fs.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if end := int64(len(m.facts)); end != last {
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
	}
	return nil
}

// take enters the keys of a batch, all or none.
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
		facts, closed := m.facts, m.closed
		m.mu.Unlock()
		if closed {
			yield(wire.Record{}, fs.ErrClosed)
			return
		}
		after := min(max(after, 0), int64(len(facts)))
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

// Snapshot implements Log.
func (m *Memory) Snapshot(ctx context.Context) (int64, []byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return 0, nil, fs.ErrClosed
	}
	if err := ctx.Err(); err != nil || len(m.kept) == 0 {
		return 0, nil, err
	}
	newest := m.kept[len(m.kept)-1]
	return newest.seq, bytes.Clone(newest.body), nil
}

// Keep implements Log.
func (m *Memory) Keep(ctx context.Context, seq int64, body []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fs.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if last := int64(len(m.facts)); seq < 1 || seq > last {
		return outside(seq, last)
	}
	at := 0
	for at < len(m.kept) && m.kept[at].seq < seq {
		at++
	}
	rest := m.kept[at:]
	if len(rest) > 0 && rest[0].seq == seq {
		rest = rest[1:]
	}
	m.kept = append(append(m.kept[:at:at], state{seq: seq, body: append([]byte{}, body...)}), rest...)
	m.kept = m.kept[max(len(m.kept)-2, 0):]
	return nil
}

// Last is the number of the newest fact; 0 when there is none.
func (m *Memory) Last() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int64(len(m.facts))
}

// Close forgets nothing yet refuses everything.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}
