package supervisor

import (
	"sync"

	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// A notifier wakes readers when mail is recorded. Readers fetch the mail from the record, so a
// slow reader holds nothing in memory.
type notifier struct {
	mu   sync.Mutex
	hung map[string]map[*mailWaiter]bool // by the actor whose mail it is; "": all
}

// A mailWaiter receives from rung when new mail may be there.
type mailWaiter struct{ rung chan struct{} }

// hang registers a waiter for the mail of an actor, or of all actors if actor is "". The
// returned func removes it.
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

// ring wakes the waiters for the mail among records.
func (b *notifier) ring(records []wire.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.hung) == 0 {
		return
	}
	for i := range records {
		switch r := &records[i]; {
		case !r.IsMail():
		case r.To == mail.Broadcast:
			for actor := range b.hung {
				b.ringAll(actor)
			}
		default:
			b.ringAll(r.To)
			b.ringAll("")
		}
	}
}

// ringAll wakes the waiters of one actor. b.mu must be held.
func (b *notifier) ringAll(actor string) {
	for one := range b.hung[actor] {
		select {
		case one.rung <- struct{}{}:
		default: // already signalled
		}
	}
}
