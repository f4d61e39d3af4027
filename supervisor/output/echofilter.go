package output

import (
	"bytes"
	"hash/maphash"
	"sync"
	"time"
)

// echoTime is how long a line of ours can come back from a terminal.
const echoTime = time.Second

// EchoFilter remembers what was just written to an agent's terminal. The terminal
// is made raw, but a program may turn its echo on again, and then our own
// messages would come back as the agent's.
type EchoFilter struct {
	seed maphash.Seed

	mu      sync.Mutex
	written map[uint64]time.Time
}

// NewEchoFilter makes a filter for a run in a terminal.
func NewEchoFilter() *EchoFilter {
	return &EchoFilter{seed: maphash.MakeSeed(), written: make(map[uint64]time.Time)}
}

// Wrote notes a line that is about to be written.
func (e *EchoFilter) Wrote(line []byte) {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for sum, at := range e.written {
		if now.Sub(at) > echoTime {
			delete(e.written, sum)
		}
	}
	e.written[maphash.Bytes(e.seed, bytes.TrimRight(line, "\r\n"))] = now
}

// drop reports whether a line is one of ours that came back. Each comes back
// once. Empty lines belong to no side.
func (e *EchoFilter) drop(line []byte, now time.Time) bool {
	if e == nil || len(line) == 0 {
		return false
	}
	sum := maphash.Bytes(e.seed, line)
	e.mu.Lock()
	defer e.mu.Unlock()
	at, ours := e.written[sum]
	if !ours {
		return false
	}
	delete(e.written, sum)
	return now.Sub(at) <= echoTime
}
