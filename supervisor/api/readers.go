package api

import (
	"fmt"
	"sync"

	"orchestrator/wire"
)

// maxReaders bounds the mail streams of a caller, so that one credential cannot exhaust the
// process.
const maxReaders = 16

// readers counts the open mail streams.
type readers struct {
	mu   sync.Mutex
	open map[holder]int
}

// holder identifies a caller whose streams are counted together. Each run of an agent has its
// own count.
type holder struct {
	kind      CallerKind
	name, run string
}

// enter counts a stream until leave is called.
func (s *readers) enter(c Caller) (leave func(), refusal *wire.Error) {
	h := holder{kind: c.Kind, name: c.Name, run: c.Run}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[h] >= maxReaders {
		return nil, &wire.Error{
			Code: wire.CodeLimited, Message: fmt.Sprintf("%s has %d streams open", c, maxReaders),
			Hint: "Close those that are not read",
		}
	}
	if s.open == nil {
		s.open = make(map[holder]int)
	}
	s.open[h]++
	return func() { s.leave(h) }, nil
}

func (s *readers) leave(h holder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[h]--; s.open[h] == 0 {
		delete(s.open, h)
	}
}
