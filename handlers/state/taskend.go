package state

// Waiting returns the open tasks that wait for a task, without duplicates.
func (ts *tasks) Waiting(t *Task) []*Task {
	var waiting []*Task
	for e := range ts.Graph.Waiting(t.Node) {
		v := ts.Graph.Edge(e)
		if down := ts.Nodes[v.Down]; Gates(v.Kind) && !v.Resolved && !down.View.State.Final() {
			waiting = append(waiting, down)
		}
	}
	return Distinct(waiting)
}

// Distinct removes repeated tasks, in place.
func Distinct(all []*Task) []*Task {
	kept := all[:0]
	for _, t := range all {
		if !t.counted {
			t.counted = true
			kept = append(kept, t)
		}
	}
	for _, t := range kept {
		t.counted = false
	}
	return kept
}
