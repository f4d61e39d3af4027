package handlers

import (
	"slices"
	"time"

	"orchestrator/handlers/history"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// heavy is the size above which the texts of a task, or of its end, are kept only in the log, in
// bytes.
const heavy = 16 << 10

// lighten drops the large texts and documents of a task, which are in the log.
func (t *task) lighten() {
	d := t.view.Details
	size := len(t.view.Description) + len(t.view.Payload)
	if d != nil {
		size += len(d.StructuredSpec) + len(d.Requirements) + len(d.Plan)
	}
	if t.stub || size > heavy {
		t.view.Description, t.view.Payload, t.stub = "", nil, true
		t.view.Details = d.Brief()
	}
}

// shrink turns a finished task into a stub.
func (t *task) shrink() {
	t.left = true
	t.view.Description, t.view.Payload, t.view.Result, t.view.Error, t.view.Message = "", nil, nil, "", ""
	t.view.Details = t.view.Details.Brief()
	t.stub = true
	t.leaveDelivered()
	if t.more != nil {
		t.more.wants, t.more.history = nil, nil
		if d := t.delegation(); d != nil {
			d.chain, d.context = nil, delegation.Context{ConversationID: d.context.ConversationID}
		}
	}
}

// page returns the records with the missing part of a task, up to a record. It reports false if
// nothing is missing.
func (t *task) page(shown wire.TaskState, until int64) (history.Page, bool) {
	if !t.stub {
		return history.Page{}, false
	}
	p := history.Page{Task: t.view.ID, Parts: []int64{t.created}}
	if t.more != nil {
		parts := t.more.parts
		if until != 0 {
			later, _ := slices.BinarySearch(parts, until+1)
			parts = parts[:later]
		}
		p.Parts = append(p.Parts, parts...)
	}
	if shown.Final() {
		p.Ended = t.ended
	}
	return p, true
}

// Complete returns an answer completed from the log. The given answer is not modified, since
// others may share it.
func Complete(answer any, pages []history.Page, record history.Archive) (any, error) {
	log := history.Log{Archive: record, Decode: func(r *wire.Record) (any, error) { return decode(r, new([]object.Member)) }}
	return log.Complete(answer, pages)
}

// FillIn implements history.Part, here and below.
func (t *taskCreated) FillIn(v *wire.Task, _ *wire.Record) {
	t.read()
	v.Description, v.Payload = t.Description, t.payload()
	restoreDocuments(v, t)
}

func (t *taskUpdated) FillIn(v *wire.Task, _ *wire.Record) { t.change(v) }

func (t *taskPlanned) FillIn(v *wire.Task, _ *wire.Record) {
	d := v.Details.Copy()
	d.Plan = t.Plan
	v.Details = d
}

func (t *taskProgress) FillIn(v *wire.Task, _ *wire.Record) {
	d := v.Details.Copy()
	d.Output = t.Output
	v.Details = d
}

func (t *taskHelp) FillIn(v *wire.Task, _ *wire.Record) {
	d := v.Details.Copy()
	d.Help = t.help()
	v.Details = d
}

func (q *questionAnswered) FillIn(v *wire.Task, r *wire.Record) {
	v.Details = answered(v.Details, q.Answer, r)
}

func (t *taskDone) FillIn(v *wire.Task, _ *wire.Record) {
	v.Result = t.Result
	v.Details = t.listed(v.Details)
}

func (f *taskFailed) FillIn(v *wire.Task, _ *wire.Record) { v.Error = f.Error }

// Delivers implements history.Success.
func (t *taskDone) Delivers() wire.Raw { return t.Result }

// restoreDocuments restores the details that a stub lacks.
func restoreDocuments(t *wire.Task, f *taskCreated) {
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
func (s *core) Since(at time.Time) (*wire.TaskList, []history.Page) {
	list, pages, created := &wire.TaskList{Tasks: []wire.Task{}}, []history.Page(nil), []int64(nil)
	for _, k := range s.tasks.list {
		if ended, ok := object.ParseTime(k.view.EndedAt); ok && ended.Before(at) {
			continue
		}
		v := k.view.shown()
		v.Description, v.Payload, v.Result, v.Details = "", nil, nil, v.Details.Brief()
		v.WaitsFor = s.tasks.waitsFor(k)
		list.Tasks = append(list.Tasks, v)
		created = append(created, k.created)
		if k.stub && k.view.State == wire.TaskFailed {
			pages = append(pages, history.Page{Task: v.ID, Ended: k.ended})
		}
	}
	page, some := s.tasks.archivedPage(0, s.seq, func(v *wire.Task, _ string) bool {
		ended, ok := object.ParseTime(v.EndedAt)
		return !ok || !ended.Before(at)
	})
	if some {
		page.Archived.Created = created
		pages = append(pages, page)
	}
	return list, pages
}
