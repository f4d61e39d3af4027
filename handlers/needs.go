package handlers

import "orchestrator/wire"

// Needs returns which records open work still needs: those from a number on, and those from the
// first that each search finds. Older ones can be removed, once a snapshot includes them.
//
// An open task needs its own records and those of the tasks that it depends on or belongs to. An
// open session needs its messages. An actor needs the mail that it has not acked, if it is an
// agent here or has ever acked mail: people may never do that.
func (s *core) Needs() (from int64, searches []wire.Search) {
	from = s.seq + 1
	for _, k := range s.tasks.list {
		if d := k.delegation(); !k.view.State.Final() || d != nil && d.owed {
			from = min(from, s.tasks.oldest(k))
		}
	}
	for _, x := range s.sessions.order {
		if !x.closed() {
			searches = append(searches, wire.Search{To: []string{x.key()}})
		}
	}
	for _, c := range s.bus.All() {
		if c.Latest > c.Cursor && (c.Agent != nil || c.Cursor > 0) {
			searches = append(searches, wire.Search{To: []string{c.ID}, After: c.Cursor})
		}
	}
	return from, searches
}

// oldest returns the first record that a task needs.
func (t *tasks) oldest(k *task) int64 {
	first := k.created
	for e := range t.graph.Needs(k.node) {
		first = min(first, t.nodes[t.graph.Edge(e).Up].created)
	}
	if k.more != nil {
		for _, n := range k.more.needs {
			if n.Ended > 0 {
				first = min(first, n.Ended)
			}
		}
	}
	for up := k.parent; up != nil; up = up.parent {
		first = min(first, up.created)
	}
	return first
}
