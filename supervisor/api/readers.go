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
func (r *readers) enter(c Caller) (leave func(), refusal *wire.Error) {
	h := holder{kind: c.Kind, name: c.Name, run: c.Run}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open[h] >= maxReaders {
		return nil, &wire.Error{
			Code: wire.CodeLimited, Message: fmt.Sprintf("%s has %d streams open", c, maxReaders),
			Hint: "Close those that are not read",
		}
	}
	if r.open == nil {
		r.open = make(map[holder]int)
	}
	r.open[h]++
	return func() { r.leave(h) }, nil
}

func (r *readers) leave(h holder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open[h]--; r.open[h] == 0 {
		delete(r.open, h)
	}
}
