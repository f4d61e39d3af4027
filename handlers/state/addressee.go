package state

// address sets the addressee of a task.
func (t *tasks) address(k *Task, agent string) {
	if d := k.View.Details; d == nil && agent == "" || d != nil && d.Addressee == agent {
		return
	}
	t.beforeChange(k)
	d := k.View.Details.Copy()
	d.Addressee = agent
	k.View.Details = d.Filled()
}
