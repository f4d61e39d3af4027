package state

import (
	"reflect"
	"time"

	"orchestrator/handlers/match"
	"orchestrator/handlers/queue"
	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

type SnapshotTask struct {
	View    wire.Task `json:"view"`
	Run     string    `json:"run,omitzero"`
	Deaths  int       `json:"deaths,omitzero"`
	Created int64     `json:"created"`
	Ended   int64     `json:"ended,omitzero"`
	Result  int       `json:"result,omitzero"` // its length
	Stub    bool      `json:"stub,omitzero"`
	Way     Way       `json:"way,omitzero"`

	StoredExtra
	Wants     *match.Demand      `json:"wants,omitzero"`
	Delivered []snapshotDelivery `json:"delivered,omitzero"` // without the data, which are in the result
	Links     []Need             `json:"links,omitzero"`     // its dependencies in the graph
	Handed    *snapshotHandedOn  `json:"handed,omitzero"`

	plain bool // it has none of the parts that few tasks have
}

// A snapshotHandedOn is the delegation of a task.
type snapshotHandedOn struct {
	StoredDelegation
	Given   string `json:"given,omitzero"`
	Next    string `json:"next,omitzero"`
	Asked   string `json:"asked,omitzero"`
	Awaited string `json:"awaited,omitzero"`
}

type snapshotDelivery struct {
	Key    string `json:"key"`
	Status string `json:"status"`
	Logged bool   `json:"logged,omitzero"`
}

func Ids(tasks []*Task) []string {
	list := make([]string, 0, len(tasks))
	for _, t := range tasks {
		list = append(list, t.View.ID)
	}
	return list
}

func (t *Task) Snapshot() SnapshotTask {
	kept := SnapshotTask{View: t.View.Shown(), Run: t.Run, Deaths: t.Deaths, Created: t.Number, Ended: t.Ended, Stub: t.Stub, Way: t.Way, Result: t.result}
	m := t.Extra
	if m == nil {
		return kept
	}
	kept.StoredExtra, kept.Handed = m.StoredExtra, m.Delegation.Snapshot()
	if m.wants != nil {
		kept.Wants = &m.wants.Demand
	}
	for _, d := range m.delivered {
		kept.Delivered = append(kept.Delivered, snapshotDelivery{Key: d.key, Status: d.status, Logged: d.logged})
	}
	return kept
}

func (d *DelegatedWork) Snapshot() *snapshotHandedOn {
	if d == nil {
		return nil
	}
	kept := &snapshotHandedOn{StoredDelegation: d.StoredDelegation, Given: Stamped(d.Given), Next: Stamped(d.Next), Asked: Stamped(d.Asked)}
	if d.Awaited != nil {
		kept.Awaited = d.Awaited.View.ID
	}
	return kept
}

// Stamped formats a time, or returns "" for the zero time.
func Stamped(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return object.Timestamp(at)
}

// A spread calls do for parts of the numbers below n, until each was in one part. It may make these
// calls at the same time. A nil spread makes one call.
type Spread func(n int, do func(from, to int))

func (s Spread) Over(n int, do func(from, to int)) {
	if s == nil {
		do(0, n)
		return
	}
	s(n, do)
}

// Together is how many tasks or facts are read before they are applied.
const Together = 2048

// Reserve makes room for n tasks at once, before the first of them.
func (ts *tasks) Reserve(n int) {
	if n > 0 && len(ts.List) == 0 {
		ts.ByID, ts.List, ts.Nodes = make(map[string]*Task, n), make(queue.List[*Task], 0, n), make([]*Task, 0, n)
	}
}

// Restore returns a task without its place in the State.
func (s *SnapshotTask) Restore() *Task {
	t := &Task{
		View: stored(&s.View), urgency: hub.Urgency(s.View.Priority), Run: s.Run, Deaths: s.Deaths,
		Number: s.Created, Ended: s.Ended, result: s.Result, Stub: s.Stub, Way: s.Way,
	}
	if s.plain {
		return t
	}
	t.View.Details = t.View.Details.Filled()
	if s.Block != nil { // the view of an earlier version did not have it
		t.View.Details = t.View.Details.InBlock(s.Block.Name)
	}
	if string(t.View.Result) == "null" {
		t.View.Result = nil // the encoding of a missing result
	}
	m := Extra{StoredExtra: s.StoredExtra}
	if d := t.View.Details; d != nil {
		m.After, _ = object.ParseTime(d.After)
	}
	if s.Handed != nil {
		m.Delegation = s.Handed.Restore(t)
	}
	if s.Wants != nil {
		m.wants = wantsOf(s.Wants)
	}
	if s.Delivered != nil {
		m.delivered = deliveries(s.View.Result)
	}
	if m.delivered == nil {
		for _, d := range s.Delivered {
			m.delivered = append(m.delivered, delivery{key: d.Key, status: d.Status, logged: d.Logged})
		}
	}
	if !m.empty() {
		t.Extra = &m
	}
	return t
}

func (s *snapshotHandedOn) Restore(t *Task) *DelegatedWork {
	d := &DelegatedWork{StoredDelegation: s.StoredDelegation, Task: t}
	d.Given, _ = object.ParseTime(s.Given)
	d.Next, _ = object.ParseTime(s.Next)
	d.Asked, _ = object.ParseTime(s.Asked)
	return d
}

// empty reports whether t has no members.
func (t *Extra) empty() bool {
	return reflect.ValueOf(&t.StoredExtra).Elem().IsZero() && t.wants == nil && t.delivered == nil && t.Delegation == nil && t.After.IsZero()
}
