package handlers

import (
	"cmp"
	"encoding/binary"
	"slices"

	"orchestrator/wire"
)

// market is where tasks that wait and agents that are free meet.
//
// Each turn ends with nothing left that fits, so the next one need only look at
// what has changed since: demands in which a task waits again, and agents that
// are free again. With nothing new, however much waits, nothing is looked at.
type market struct {
	byKey   map[string]*demand
	demands []*demand // in which a task waits, in no order
	free    []*agent  // that can be given a task, by patience
	freed   []*agent  // those of them that were not there when all was given out, in the same order
	round   int64     // how often all was given out
	fresh   bool      // a demand is of this round
	key     []byte    // room to spell one
}

// demand is what tasks ask of an agent, and those that ask it. It includes who
// submitted them, for an agent is never given its own: the tasks of a demand
// differ in nothing but whose turn it is.
type demand struct {
	role         string
	capabilities []string
	submitter    string
	waiting      [urgencies]line
	size         int
	key          string
	at           int   // in demands
	round        int64 // in which the first of those that wait came
}

// spareDemands are how many demands are kept for the next task that asks for
// the same: there are few different ones, however many tasks there are.
const spareDemands = 1024

// enqueue lets a task wait for an agent, if it goes by itself and nothing holds
// it back.
func (s *State) enqueue(k *task) {
	if k.view.State != wire.TaskPending || k.open > 0 || k.demand != nil ||
		k.view.RequiredRole == "" && len(k.view.RequiredCapabilities) == 0 {
		return
	}
	m := &s.market
	d := m.demand(k)
	if d.size == 0 {
		d.at, d.round, m.fresh = len(m.demands), m.round, true
		m.demands = append(m.demands, d)
	}
	d.waiting[k.urgency] = d.waiting[k.urgency].with(k)
	d.size++
	k.demand = d
}

// demand finds the demand of a task.
func (m *market) demand(k *task) *demand {
	capabilities := k.view.RequiredCapabilities
	if !slices.IsSorted(capabilities) {
		capabilities = slices.Sorted(slices.Values(capabilities))
	}
	m.key = appendPart(appendPart(m.key[:0], k.view.RequiredRole), k.view.SubmittedBy)
	for _, c := range capabilities {
		m.key = appendPart(m.key, c)
	}
	d := m.byKey[string(m.key)]
	if d == nil {
		d = &demand{role: k.view.RequiredRole, capabilities: capabilities, submitter: k.view.SubmittedBy, key: string(m.key)}
		m.byKey[d.key] = d
	}
	return d
}

// appendPart appends a text to a key, so that it does not run into the next.
func appendPart(key []byte, text string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(text))), text...)
}

// drop takes a task out of its demand.
func (m *market) drop(k *task) {
	d := k.demand
	k.demand = nil
	d.waiting[k.urgency] = d.waiting[k.urgency].without(k)
	d.size--
	if d.size > 0 {
		return
	}
	last := m.demands[len(m.demands)-1]
	m.demands[d.at], last.at = last, d.at
	m.demands[len(m.demands)-1] = nil
	m.demands = m.demands[:len(m.demands)-1]
	if len(m.byKey) > len(m.demands)+spareDemands {
		delete(m.byKey, d.key)
	}
}

// head is the task whose turn it is.
func (d *demand) head() *task {
	for _, line := range d.waiting {
		if len(line) > 0 {
			return line[0]
		}
	}
	return nil
}

// before says whether a task is to be given out before another.
func (k *task) before(o *task) bool {
	if k.urgency != o.urgency {
		return k.urgency < o.urgency
	}
	return k.created < o.created
}

// withdraw takes an agent from those that are free. It is for before anything
// about it changes, and offer for after.
func (m *market) withdraw(a *agent) {
	if !a.offered {
		return
	}
	a.offered = false
	m.free = without(m.free, a)
	m.freed = without(m.freed, a)
}

// offer puts an agent among those that are free, if it can be given a task.
func (m *market) offer(a *agent) {
	if a.offered || !a.takes() {
		return
	}
	a.offered = true
	m.free = with(m.free, a)
	m.freed = with(m.freed, a)
}

func with(agents []*agent, a *agent) []*agent {
	at, _ := slices.BinarySearchFunc(agents, a, byPatience)
	return slices.Insert(agents, at, a)
}

func without(agents []*agent, a *agent) []*agent {
	if at, there := slices.BinarySearchFunc(agents, a, byPatience); there {
		return slices.Delete(agents, at, at+1)
	}
	return agents
}

// byPatience puts the agent first that has the fewest tasks, of those the one
// that has waited longest, and of those that never had a task the one that was
// known first.
func byPatience(a, b *agent) int {
	if c := cmp.Compare(len(a.holds), len(b.holds)); c != 0 {
		return c
	}
	if c := cmp.Compare(a.given, b.given); c != 0 {
		return c
	}
	return cmp.Compare(a.number, b.number)
}
