package api

import (
	"fmt"
	"sync"

	"orchestrator/wire"
)

// mostReaders is how many streams of mail a caller may have open: a caller that has
// one credential can fill the process with them.
const mostReaders = 16

// readers counts the streams of mail that are open.
type readers struct {
	mu   sync.Mutex
	open map[holder]int
}

// holder is whose streams are counted together. Runs of one agent may be actors
// of their own, each with a stream.
type holder struct {
	kind      CallerKind
	name, run string
}

// enter counts a stream, until leave is called.
func (s *readers) enter(c Caller) (leave func(), refusal *wire.Error) {
	h := holder{kind: c.Kind, name: c.Name, run: c.Run}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[h] >= mostReaders {
		return nil, &wire.Error{
			Code: wire.CodeLimited, Message: fmt.Sprintf("%s has %d streams open", c, mostReaders),
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
