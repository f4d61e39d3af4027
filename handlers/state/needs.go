package state

import (
	"orchestrator/wire"
)

// Needs returns which records open work still needs: those from a number on, and those from the
// first that each search finds. Older ones can be removed, once a snapshot includes them.
//
// An open task needs its own records, and the records of the tasks that it depends on or belongs
// to. An open session needs its messages. An actor needs the mail that it has not acked, if it is
// an agent here or has ever acked mail: people may never do that.
func (s *State) Needs() (from int64, searches []wire.Search) {
	from = s.LastSeq + 1
	for _, k := range s.Tasks.List {
		if d := k.Delegation(); !k.View.State.Final() || d != nil && d.Owed {
			from = min(from, s.Tasks.oldest(k))
		}
	}
	for _, x := range s.Sessions.Order {
		if !x.Closed() {
			searches = append(searches, wire.Search{To: []string{x.Key()}})
		}
	}
	for _, c := range s.Bus.All() {
		if c.Latest > c.Cursor && (c.Agent != nil || c.Cursor > 0) {
			searches = append(searches, wire.Search{To: []string{c.ID}, After: c.Cursor})
		}
	}
	return from, searches
}

// oldest returns the first record that a task needs.
func (t *tasks) oldest(k *Task) int64 {
	first := k.Number
	for e := range t.Graph.Needs(k.Node) {
		first = min(first, t.Nodes[t.Graph.Edge(e).Up].Number)
	}
	if k.Extra != nil {
		for _, n := range k.Extra.Needs {
			if n.Ended > 0 {
				first = min(first, n.Ended)
			}
		}
	}
	for up := k.parent; up != nil; up = up.parent {
		first = min(first, up.Number)
	}
	return first
}
