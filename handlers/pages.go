package handlers

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// heavy is the size above which the texts of a task, or of its end, are kept only in the log, in
// bytes.
const heavy = 16 << 10

// A Page names the records that hold the missing part of an answer.
type Page struct {
	Task   string  // the task
	Parts  []int64 // records of its words and documents, in order
	Ended  int64   // record of its end; 0: not shown as ended
	Inputs []PageInput
	Notes  []int64

	Results []PageResult

	Mail *MailPage // messages of an actor
	Sent int64     // record of a message

	Reply bool // a message answers a record, which should be a message

	Session *SessionPage // the log of a session

	Response int64               // record of a task response
	Metadata delegation.Metadata // of the task: fills in members that the response lacks
}

// A PageInput is a contract to read from the record of a task's end.
type PageInput struct {
	Key   string
	Ended int64
}

// A PageResult is a dependency whose result must be read from the record of a task's end.
type PageResult struct {
	Link  int // its place
	Ended int64
}

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
func (t *task) page(shown wire.TaskState, until int64) (Page, bool) {
	if !t.stub {
		return Page{}, false
	}
	p := Page{Task: t.view.ID, Parts: []int64{t.created}}
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

// An Archive reads the log.
type Archive interface {
	Record(seq int64) (wire.Record, error)
	Find(wire.Search) iter.Seq2[wire.Record, error] // the records that match
}

// readFact reads the fact in a record.
func readFact(record Archive, seq int64) (fact, *wire.Record, error) {
	r, err := record.Record(seq)
	if err != nil {
		return nil, nil, err
	}
	f, err := decode(&r)
	return f, &r, err
}

// Complete returns an answer completed from the log. The given answer is not modified, since
// others may share it.
func Complete(answer any, pages []Page, record Archive) (any, error) {
	switch a := answer.(type) {
	case *wire.TaskReply:
		whole := *a
		for _, p := range pages {
			if err := p.complete(&whole.Task, record); err != nil {
				return nil, err
			}
		}
		return &whole, nil
	case *wire.TaskList:
		whole := wire.TaskList{Tasks: append([]wire.Task(nil), a.Tasks...)}
		for _, p := range pages {
			for i := range whole.Tasks {
				if whole.Tasks[i].ID != p.Task {
					continue
				}
				if err := p.complete(&whole.Tasks[i], record); err != nil {
					return nil, err
				}
			}
		}
		return &whole, nil
	case *wire.NoteList:
		return completeNotes(pages, record)
	case *wire.SessionView:
		return completeSession(a, pages, record)
	case *wire.TaskAnswer:
		return completeResponse(a, pages, record)
	case *wire.MailList, *wire.Sent:
		return completeMail(answer, pages, record)
	}
	return answer, nil
}

// complete fills in the missing parts of a task.
func (p *Page) complete(t *wire.Task, record Archive) error {
	for _, seq := range p.Parts {
		if err := p.part(t, seq, record); err != nil {
			return err
		}
	}
	if p.Ended != 0 {
		if err := p.part(t, p.Ended, record); err != nil {
			return err
		}
	}
	if err := p.fillResults(t, record); err != nil {
		return err
	}
	if len(p.Inputs) == 0 {
		return nil
	}
	t.ResolvedInputs = append(wire.Inputs(nil), t.ResolvedInputs...)
	return p.fill(t.ResolvedInputs, record)
}

// part applies one record to the parts of a task that a stub lacks.
func (p *Page) part(t *wire.Task, seq int64, record Archive) error {
	f, r, err := readFact(record, seq)
	if err != nil {
		return err
	}
	if r.Correlation != p.Task {
		return fmt.Errorf("record %d, a %s, is not about task %s", r.Seq, r.Kind, p.Task)
	}
	switch f := f.(type) {
	case *taskCreated:
		f.read()
		t.Description, t.Payload = f.Description, f.payload()
		restoreDocuments(t, f)
	case *taskUpdated:
		f.change(t)
	case *taskPlanned:
		d := t.Details.Copy()
		d.Plan = f.Plan
		t.Details = d
	case *taskHelp:
		d := t.Details.Copy()
		d.Help = f.help()
		t.Details = d
	case *questionAnswered:
		t.Details = answered(t.Details, f.Answer, r)
	case *taskDone:
		t.Result = f.Result
	case *taskFailed:
		t.Error = f.Error
	}
	return nil
}

// restoreDocuments restores the details that a stub lacks.
func restoreDocuments(t *wire.Task, f *taskCreated) {
	before := f.details()
	if before == nil {
		return
	}
	d := t.Details.Copy()
	d.StructuredSpec, d.Requirements = before.StructuredSpec, before.Requirements
	d.Context, d.Routing, d.Observability = before.Context, before.Routing, before.Observability
	t.Details = d
	direct(t)
}

// fillResults reads the results of dependencies that a task shows.
func (p *Page) fillResults(t *wire.Task, record Archive) error {
	if len(p.Results) == 0 {
		return nil
	}
	t.Links = slices.Clone(t.Links)
	read := make(map[int64]wire.Raw) // each record once
	for _, missing := range p.Results {
		if read[missing.Ended] == nil {
			f, r, err := readFact(record, missing.Ended)
			if err != nil {
				return err
			}
			done, ok := f.(*taskDone)
			if !ok {
				return fmt.Errorf("record %d, a %s, is not the end of a task that is done", r.Seq, r.Kind)
			}
			read[missing.Ended] = done.Result
		}
		t.Links[missing.Link].Result, t.Links[missing.Link].LeftOut = read[missing.Ended], false
	}
	return nil
}

// fill reads the delivered inputs. Each record is read only once.
func (p *Page) fill(inputs wire.Inputs, record Archive) error {
	place := make(map[string]int, len(inputs))
	for i := range inputs {
		place[inputs[i].Key] = i
	}
	results := make(map[int64]map[string]wire.Raw)
	for _, in := range p.Inputs {
		if results[in.Ended] == nil {
			var err error
			if results[in.Ended], err = readDeliveries(in.Ended, record); err != nil {
				return err
			}
		}
		if at, there := place[in.Key]; there {
			inputs[at].Data = results[in.Ended][in.Key]
		}
	}
	return nil
}

// readDeliveries reads the deliveries of a task from the record of its end.
func readDeliveries(seq int64, record Archive) (map[string]wire.Raw, error) {
	f, r, err := readFact(record, seq)
	if err != nil {
		return nil, err
	}
	done, ok := f.(*taskDone)
	if !ok {
		return nil, fmt.Errorf("record %d, a %s, delivers nothing", r.Seq, r.Kind)
	}
	data := make(map[string]wire.Raw)
	for _, d := range deliveries(done.Result) {
		data[d.key] = d.data
	}
	return data, nil
}

// completeNotes reads notes.
func completeNotes(pages []Page, record Archive) (*wire.NoteList, error) {
	list := &wire.NoteList{Notes: []wire.Note{}}
	for _, p := range pages {
		for _, seq := range p.Notes {
			f, r, err := readFact(record, seq)
			if err != nil {
				return nil, err
			}
			noted, ok := f.(*taskNoted)
			if !ok {
				return nil, fmt.Errorf("record %d, a %s, is no note", r.Seq, r.Kind)
			}
			list.Notes = append(list.Notes, noted.note(r))
		}
	}
	return list, nil
}

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
		v.WaitsFor = s.tasks.waitsFor(k)
		list.Tasks = append(list.Tasks, v)
		if k.stub && k.view.State == wire.TaskFailed {
			pages = append(pages, Page{Task: v.ID, Ended: k.ended})
		}
	}
	return list, pages
}
