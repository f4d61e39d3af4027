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
	for _, t := range s.Tasks.List {
		if d := t.Delegation(); !t.View.State.Final() || d != nil && d.Owed {
			from = min(from, s.Tasks.oldest(t))
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
func (ts *tasks) oldest(t *Task) int64 {
	first := t.Number
	for e := range ts.Graph.Needs(t.Node) {
		first = min(first, ts.Nodes[ts.Graph.Edge(e).Up].Number)
	}
	if t.Extra != nil {
		for _, n := range t.Extra.Needs {
			if n.Ended > 0 {
				first = min(first, n.Ended)
			}
		}
	}
	for up := t.parent; up != nil; up = up.parent {
		first = min(first, up.Number)
	}
	return first
}
