package state

import (
	"slices"
	"time"

	"orchestrator/handlers/history"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// Heavy is the size above which the texts of a task, or of its end, are kept only in the log, in
// bytes.
const Heavy = 16 << 10

// lighten drops the large texts and documents of a task, which are in the log.
func (t *Task) lighten() {
	d := t.View.Details
	size := len(t.View.Description) + len(t.View.Payload)
	if d != nil {
		size += len(d.StructuredSpec) + len(d.Requirements) + len(d.Plan)
	}
	if t.Stub || size > Heavy {
		t.View.Description, t.View.Payload, t.Stub = "", nil, true
		t.View.Details = d.Brief()
	}
}

// shrink turns a finished task into a stub.
func (t *Task) shrink() {
	t.Left = true
	t.View.Description, t.View.Payload, t.View.Result, t.View.Error, t.View.Message = "", nil, nil, "", ""
	t.View.Details = t.View.Details.Brief()
	t.Stub = true
	t.leaveDelivered()
	if t.Extra != nil {
		t.Extra.wants, t.Extra.History = nil, nil
		if d := t.Delegation(); d != nil {
			d.Chain, d.Context = nil, delegation.Context{ConversationID: d.Context.ConversationID}
		}
	}
}

// Page returns the records with the missing part of a task, up to a record. It reports false if the
// task is complete.
func (t *Task) Page(shown wire.TaskState, until int64) (history.Page, bool) {
	if !t.Stub {
		return history.Page{}, false
	}
	p := history.Page{Task: t.View.ID, Parts: []int64{t.Number}}
	if t.Extra != nil {
		parts := t.Extra.Parts
		if until != 0 {
			later, _ := slices.BinarySearch(parts, until+1)
			parts = parts[:later]
		}
		p.Parts = append(p.Parts, parts...)
	}
	if shown.Final() {
		p.Ended = t.Ended
	}
	return p, true
}

// Complete returns an answer completed from the log. The given answer is not modified, since other
// callers may share it.
func Complete(answer any, pages []history.Page, record history.Archive) (any, error) {
	log := history.Log{Archive: record, Decode: func(r *wire.Record) (any, error) { return Decode(r, new([]object.Member)) }}
	return log.Complete(answer, pages)
}

// FillIn implements history.Part, here and below.
func (t *TaskCreated) FillIn(v *wire.Task, _ *wire.Record) {
	t.Read()
	v.Description, v.Payload = t.Description, t.payload()
	restoreDocuments(v, t)
}

func (t *TaskUpdated) FillIn(v *wire.Task, _ *wire.Record) { t.change(v) }

func (t *TaskPlanned) FillIn(v *wire.Task, _ *wire.Record) {
	d := v.Details.Copy()
	d.Plan = t.Plan
	v.Details = d
}

func (t *TaskProgress) FillIn(v *wire.Task, _ *wire.Record) {
	d := v.Details.Copy()
	d.Output = t.Output
	v.Details = d
}

func (t *TaskHelp) FillIn(v *wire.Task, _ *wire.Record) {
	d := v.Details.Copy()
	d.Help = t.help()
	v.Details = d
}

func (q *QuestionAnswered) FillIn(v *wire.Task, r *wire.Record) {
	v.Details = answered(v.Details, q.Answer, r)
}

func (t *TaskDone) FillIn(v *wire.Task, _ *wire.Record) {
	v.Result = t.Result
	v.Details = t.listed(v.Details)
}

func (f *TaskFailed) FillIn(v *wire.Task, _ *wire.Record) { v.Error = f.Error }

// Delivers implements history.Success.
func (t *TaskDone) Delivers() wire.Raw { return t.Result }

// restoreDocuments restores the details that a stub lacks.
func restoreDocuments(t *wire.Task, f *TaskCreated) {
	before := f.details()
	if before == nil {
		return
	}
	d := t.Details.Copy()
	d.StructuredSpec, d.Requirements = before.StructuredSpec, before.Requirements
	d.Context, d.Routing, d.Observability = before.Context, before.Routing, before.Observability
	t.Details = directed(d, t.AssignedTo)
}

// Since returns the tasks that had not ended at a time, in the order of their creation and
// without large members. The pages name the errors that are only in the log; Complete reads
// them.
func (s *State) Since(at time.Time) (*wire.TaskList, []history.Page) {
	list, pages, created := &wire.TaskList{Tasks: []wire.Task{}}, []history.Page(nil), []int64(nil)
	for _, t := range s.Tasks.List {
		if ended, ok := object.ParseTime(t.View.EndedAt); ok && ended.Before(at) {
			continue
		}
		v := t.View.Shown()
		v.Description, v.Payload, v.Result, v.Details = "", nil, nil, v.Details.Brief()
		v.WaitsFor = s.Tasks.WaitsFor(t)
		list.Tasks = append(list.Tasks, v)
		created = append(created, t.Number)
		if t.Stub && t.View.State == wire.TaskFailed {
			pages = append(pages, history.Page{Task: v.ID, Ended: t.Ended})
		}
	}
	page, some := s.Tasks.archivedPage(0, s.LastSeq, func(v *wire.Task, _ string) bool {
		ended, ok := object.ParseTime(v.EndedAt)
		return !ok || !ended.Before(at)
	})
	if some {
		page.Archived.Created = created
		pages = append(pages, page)
	}
	return list, pages
}
