package state

// Waiting returns the open tasks that wait for a task, without duplicates.
func (t *tasks) Waiting(k *Task) []*Task {
	var waiting []*Task
	for e := range t.Graph.Waiting(k.Node) {
		v := t.Graph.Edge(e)
		if down := t.Nodes[v.Down]; Gates(v.Kind) && !v.Resolved && !down.View.State.Final() {
			waiting = append(waiting, down)
		}
	}
	return Distinct(waiting)
}

// Distinct removes repeated tasks, in place.
func Distinct(all []*Task) []*Task {
	kept := all[:0]
	for _, k := range all {
		if !k.counted {
			k.counted = true
			kept = append(kept, k)
		}
	}
	for _, k := range kept {
		k.counted = false
	}
	return kept
}
