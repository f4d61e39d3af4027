package handlers

import (
	"time"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Since returns the tasks that had not ended at a time, in the order of their creation and
// without large members. The pages name the errors that are only in the log; Complete reads
// them.
func (s *State) Since(at time.Time) (*wire.TaskList, []Page) {
	list, pages := &wire.TaskList{Tasks: []wire.Task{}}, []Page(nil)
	for _, k := range s.tasks.list {
		if ended, ok := object.ParseTime(k.view.EndedAt); ok && ended.Before(at) {
			continue
		}
		v := k.view
		v.Description, v.Payload, v.Result, v.Details = "", nil, nil, v.Details.Brief()
		v.WaitsFor = s.waitsFor(k)
		list.Tasks = append(list.Tasks, v)
		if k.stub && k.view.State == wire.TaskFailed {
			pages = append(pages, Page{Task: v.ID, Ended: k.ended})
		}
	}
	return list, pages
}
