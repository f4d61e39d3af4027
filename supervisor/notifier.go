package supervisor

import (
	"sync"

	"orchestrator/wire"
)

// A notifier wakes readers when mail is recorded. Readers fetch the mail from the record, so a
// slow reader holds nothing in memory.
type notifier struct {
	mu   sync.Mutex
	hung map[string]map[*mailWaiter]bool // by the actor whose mail it is; "": all
}

// mailWaiter has been rung when there is something in it.
type mailWaiter struct{ rung chan struct{} }

// hang hangs up a bell for the mail of an actor, "" for that of all, until it is
// taken down.
func (b *notifier) hang(actor string) (*mailWaiter, func()) {
	fresh := &mailWaiter{rung: make(chan struct{}, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hung == nil {
		b.hung = make(map[string]map[*mailWaiter]bool)
	}
	if b.hung[actor] == nil {
		b.hung[actor] = make(map[*mailWaiter]bool)
	}
	b.hung[actor][fresh] = true
	return fresh, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if delete(b.hung[actor], fresh); len(b.hung[actor]) == 0 {
			delete(b.hung, actor)
		}
	}
}

// ring tells of the mail among records.
func (b *notifier) ring(records []wire.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.hung) == 0 {
		return
	}
	for i := range records {
		switch r := &records[i]; {
		case !r.IsMail():
		case r.To == wire.Broadcast:
			for actor := range b.hung {
				b.ringAll(actor)
			}
		default:
			b.ringAll(r.To)
			b.ringAll("")
		}
	}
}

// ringAll rings the notifiers of one actor. The lock is held.
func (b *notifier) ringAll(actor string) {
	for one := range b.hung[actor] {
		select {
		case one.rung <- struct{}{}:
		default: // it has been heard of, and not looked at yet
		}
	}
}
