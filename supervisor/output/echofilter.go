package output

import (
	"bytes"
	"hash/maphash"
	"sync"
	"time"
)

// echoTime is how long after a write a terminal may echo a line.
const echoTime = time.Second

// An EchoFilter recognizes lines that an agent's terminal echoes. The terminal is raw at first,
// but a program may turn its echo on. Messages to the agent would then appear as its output.
type EchoFilter struct {
	seed maphash.Seed

	mu      sync.Mutex
	written map[uint64]time.Time
}

// NewEchoFilter returns a filter for a run in a terminal.
func NewEchoFilter() *EchoFilter {
	return &EchoFilter{seed: maphash.MakeSeed(), written: make(map[uint64]time.Time)}
}

// Wrote records a line that is about to be written.
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

// drop reports whether a line is an echo. Each written line is echoed at most once. Empty lines
// are never dropped.
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
