package handlers

import (
	"reflect"

	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Tasks that have ended long ago are archived: they leave the State, and a record of the kind
// task.archived holds them. When an input names such a task, Handle makes no decision and returns
// its id in Outcome.Missing. The caller reads the record and repeats the input with it. The task is
// then a guest of the State for this turn. If the turn writes a record, the task is recalled: a
// record of the kind task.recalled puts it back, and it is archived again later.
//
// So the State depends only on the records, as before, and its memory of ended tasks is bounded.

// maxArchived is the maximum number of tasks that one turn archives.
const maxArchived = 8

// A missedTask is the panic of a turn that needs archived tasks before it can record anything.
type missedTask struct{}

// touch looks up the tasks that a request names, before anything is recorded.
func (d *decision) touch(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		d.state.Tasks.Find(object.CanonicalID(v.String()))
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			d.touch(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			d.touch(v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			d.touch(v.Index(i))
		}
	}
}

// recallGuests keeps the guests of the turn. It must be called before the first record of the turn.
func (d *decision) recallGuests() {
	a := &d.state.Tasks.Archive
	if len(a.Missing) > 0 && len(d.out.Records) == 0 {
		panic(missedTask{})
	}
	for _, g := range a.TakeGuests() {
		d.own.fact("", g.View.ID, &state.TaskRecalled{ID: g.View.ID, Name: g.View.Name, Task: g.Kept, Guest: g.Task})
	}
}

// archive archives tasks in a turn with records.
func (td taskDecision) archive() {
	td.state.LeaveReleased()
	if len(td.out.Records) == 0 {
		return
	}
	for range maxArchived {
		t := td.state.Tasks.NextToArchive()
		if t == nil {
			return
		}
		text, err := object.Encode(td.state.Tasks.Archived(t))
		if err != nil {
			panic("an ended task cannot be encoded: " + err.Error())
		}
		td.own.fact("", t.View.ID, &state.TaskArchived{ID: t.View.ID, Name: t.View.Name, Created: t.Number, Task: text})
	}
}

func (td taskDecision) filter(q *wire.QueryTasks) state.TaskFilter {
	f := state.TaskFilter{QueryTasks: q, From: td.from, All: td.from.Kind != Agent}
	if td.from.ActsForOthers && td.state.Agents.ByID[td.from.Name] != nil {
		f.All, f.Loose = f.All || td.managesAll(), true
	}
	return f
}
