package state

// address sets the addressee of a task.
func (ts *tasks) address(t *Task, agent string) {
	if d := t.View.Details; d == nil && agent == "" || d != nil && d.Addressee == agent {
		return
	}
	ts.beforeChange(t)
	d := t.View.Details.Copy()
	d.Addressee = agent
	t.View.Details = d.Filled()
}
