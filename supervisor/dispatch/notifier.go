package dispatch

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
func (n *notifier) hang(actor string) (*mailWaiter, func()) {
	fresh := &mailWaiter{rung: make(chan struct{}, 1)}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hung == nil {
		n.hung = make(map[string]map[*mailWaiter]bool)
	}
	if n.hung[actor] == nil {
		n.hung[actor] = make(map[*mailWaiter]bool)
	}
	n.hung[actor][fresh] = true
	return fresh, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if delete(n.hung[actor], fresh); len(n.hung[actor]) == 0 {
			delete(n.hung, actor)
		}
	}
}

// ring wakes the waiters for the mail among records.
func (n *notifier) ring(records []wire.Record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.hung) == 0 {
		return
	}
	for i := range records {
		switch r := &records[i]; {
		case !r.IsMail():
		case r.To == mail.Broadcast:
			for actor := range n.hung {
				n.ringAll(actor)
			}
		default:
			n.ringAll(r.To)
			n.ringAll("")
		}
	}
}

// ringAll wakes the waiters of one actor. b.mu must be held.
func (n *notifier) ringAll(actor string) {
	for one := range n.hung[actor] {
		select {
		case one.rung <- struct{}{}:
		default: // already signalled
		}
	}
}
