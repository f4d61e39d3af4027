package supervisor

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// An alarm logs errors. It logs the same text at most once a second, because an agent may be
// able to cause the error at will.
type alarm struct {
	log hclog.Logger

	mu   sync.Mutex
	told map[string]time.Time
}

func (a *alarm) raise(text string, args ...any) {
	now := time.Now()
	a.mu.Lock()
	due := now.Sub(a.told[text]) >= time.Second
	if due {
		if a.told == nil {
			a.told = make(map[string]time.Time)
		}
		a.told[text] = now
	}
	a.mu.Unlock()
	if due {
		a.log.Error(text, args...)
	}
}
