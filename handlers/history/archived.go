package history

import (
	"fmt"

	"orchestrator/wire"
)

// An ArchivedPage selects archived tasks that belong into a list of tasks.
type ArchivedPage struct {
	After   int64 // only tasks with a first record behind this one
	Until   int64 // records of archived tasks up to this one
	Takes   func(v *wire.Task, conversation string) bool
	Whole   bool            // it takes all tasks but those in Present
	Present map[string]bool // the ids of archived tasks that it does not take
	Created []int64         // the first records of the tasks in the list
	Limit   int             // of the list; 0: none
	Most    int64           // the limit for counting further tasks
}

// addArchived merges archived tasks into a list, in the order of their creation.
func (l Log) addArchived(list *wire.TaskList, page *ArchivedPage) error {
	m := merged{page: page, rest: list.Tasks, created: page.Created}
	for r, err := range l.Find(wire.Search{Archived: true, After: page.After, Until: page.Until}) {
		if err != nil {
			return err
		}
		if m.full() && page.Whole { // the id of a task tells whether it counts
			if !page.Present[r.Correlation] {
				m.more++
			}
			if m.more > page.Most {
				break
			}
			continue
		}
		f, err := l.Decode(&r)
		if err != nil {
			return err
		}
		archived, ok := f.(Archived)
		if !ok {
			return fmt.Errorf("record %d, a %s, is no archived task", r.Seq, r.Kind)
		}
		v, created, conversation, err := archived.Archived()
		if err != nil {
			return fmt.Errorf("record %d, a %s, cannot be read: %w", r.Seq, r.Kind, err)
		}
		if !page.Takes(v, conversation) {
			continue
		}
		m.take(created)
		v.Details = v.Details.Brief()
		if m.add(*v); m.more > page.Most && page.Limit > 0 {
			break
		}
	}
	m.take(1<<63 - 1)
	if list.Tasks = m.tasks; page.Limit > 0 {
		list.More = min(list.More+m.more, page.Most)
		if list.More > 0 {
			list.Cursor = m.tasks[len(m.tasks)-1].ID
		}
	}
	return nil
}

// merged is a list of tasks that is being made of two lists.
type merged struct {
	page    *ArchivedPage
	tasks   []wire.Task
	rest    []wire.Task // of the list in memory
	created []int64     // their first records
	more    int64       // tasks beyond the limit
}

// full reports whether the list has as many tasks as its limit.
func (m *merged) full() bool { return m.page.Limit > 0 && len(m.tasks) == m.page.Limit }

func (m *merged) add(v wire.Task) {
	if m.full() {
		m.more++
		return
	}
	m.tasks = append(m.tasks, v)
}

// take adds the tasks of the list in memory that were created before a record.
func (m *merged) take(before int64) {
	for len(m.rest) > 0 && m.created[0] < before {
		m.add(m.rest[0])
		m.rest, m.created = m.rest[1:], m.created[1:]
	}
}
