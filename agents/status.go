package agents

import (
	"cmp"
	"context"
	"slices"
)

// Status is the answer of a developer or reviewer to a status query.
type Status struct {
	State string       `json:"status"` // idle or busy
	Tasks []TaskStatus `json:"tasks"`
}

// TaskStatus is the status of one task.
type TaskStatus struct {
	TaskID  string  `json:"task_id"`
	Percent float64 `json:"progress_percent"` // from 0 to 100
	Step    string  `json:"current_step"`
}

// tellStatus answers a status query about one task, or about all if task is "".
func (i *inbox) tellStatus(ctx context.Context, query *Said, task string) error {
	status := Status{State: "idle", Tasks: []TaskStatus{}}
	i.mu.Lock()
	for _, e := range i.errands {
		status.State = "busy"
		if task == "" || task == e.task {
			status.Tasks = append(status.Tasks, e.status())
		}
	}
	i.mu.Unlock()
	slices.SortFunc(status.Tasks, func(a, b TaskStatus) int { return cmp.Compare(a.TaskID, b.TaskID) })
	_, err := i.TellStatus(ctx, query, status)
	if gaveUp(ctx, err) {
		return nil
	}
	return err
}
