package dispatch

import (
	"sync"

	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// A notifier wakes readers when mail is recorded. Readers fetch the mail from the record, so a
// slow reader holds nothing in memory.
type notifier struct {
	mu      sync.Mutex
	waiters map[string]map[*mailWaiter]bool // by the actor whose mail it is; "": all
}

// A mailWaiter receives from ready when new mail may be there.
type mailWaiter struct{ ready chan struct{} }

// add registers a waiter for the mail of an actor, or of all actors if actor is "". The
// returned func removes it.
func (n *notifier) add(actor string) (*mailWaiter, func()) {
	fresh := &mailWaiter{ready: make(chan struct{}, 1)}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiters == nil {
		n.waiters = make(map[string]map[*mailWaiter]bool)
	}
	if n.waiters[actor] == nil {
		n.waiters[actor] = make(map[*mailWaiter]bool)
	}
	n.waiters[actor][fresh] = true
	return fresh, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if delete(n.waiters[actor], fresh); len(n.waiters[actor]) == 0 {
			delete(n.waiters, actor)
		}
	}
}

// notify wakes the waiters for the mail among records.
func (n *notifier) notify(records []wire.Record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.waiters) == 0 {
		return
	}
	for i := range records {
		switch r := &records[i]; {
		case !r.IsMail():
		case r.To == mail.Broadcast:
			for actor := range n.waiters {
				n.notifyActor(actor)
			}
		default:
			n.notifyActor(r.To)
			n.notifyActor("")
		}
	}
}

// notifyActor wakes the waiters of one actor. n.mu must be held.
func (n *notifier) notifyActor(actor string) {
	for one := range n.waiters[actor] {
		select {
		case one.ready <- struct{}{}:
		default: // already signalled
		}
	}
}
