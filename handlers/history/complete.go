package history

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// Complete returns an answer completed from the log. The given answer is not modified, since other
// callers may share it.
func (l Log) Complete(answer any, pages []Page) (any, error) {
	switch a := answer.(type) {
	case *wire.TaskReply:
		whole := *a
		for _, p := range pages {
			if err := l.complete(&p, &whole.Task); err != nil {
				return nil, err
			}
		}
		return &whole, nil
	case *wire.TaskList:
		whole := *a
		whole.Tasks = append([]wire.Task{}, a.Tasks...)
		for _, p := range pages {
			if p.Archived != nil {
				if err := l.addArchived(&whole, p.Archived); err != nil {
					return nil, err
				}
				continue
			}
			for i := range whole.Tasks {
				if whole.Tasks[i].ID != p.Task {
					continue
				}
				err := l.complete(&p, &whole.Tasks[i])
				if _, removed := errors.AsType[*wire.RemovedError](err); err != nil && !removed { // the list shows the rest
					return nil, err
				}
			}
		}
		return &whole, nil
	case *wire.NoteList:
		return l.completeNotes(pages)
	case *wire.SessionView:
		return l.completeSession(a, pages)
	case *wire.TaskAnswer:
		return l.completeResponse(a, pages)
	case *mail.Status:
		return l.completeStatus(a, pages)
	case *mail.List, *mail.Sent:
		return completeMail(answer, pages, l)
	}
	if len(pages) > 0 {
		return nil, fmt.Errorf("a %T needs pages of the log, and has no case in Log.Complete", answer)
	}
	return answer, nil
}

// complete fills in the missing parts of a task.
func (l Log) complete(p *Page, t *wire.Task) error {
	for _, seq := range p.Parts {
		if err := l.part(p, t, seq); err != nil {
			return err
		}
	}
	if p.Ended != 0 {
		if err := l.part(p, t, p.Ended); err != nil {
			return err
		}
	}
	if p.Output != 0 {
		if err := l.part(p, t, p.Output); err != nil {
			return err
		}
	}
	if err := l.fillResults(p, t); err != nil {
		return err
	}
	if len(p.Inputs) == 0 {
		return nil
	}
	t.ResolvedInputs = append(wire.Inputs(nil), t.ResolvedInputs...)
	return l.fillInputs(p, t.ResolvedInputs)
}

// part applies one record to the parts of a task that are missing.
func (l Log) part(p *Page, t *wire.Task, seq int64) error {
	f, r, err := l.fact(seq)
	if err != nil {
		return err
	}
	if r.Correlation != p.Task {
		return fmt.Errorf("record %d, a %s, is not about task %s", r.Seq, r.Kind, p.Task)
	}
	if part, ok := f.(Part); ok {
		part.FillIn(t, r)
	}
	return nil
}

// result returns the result in the record of a task's end.
func (l Log) result(seq int64) (wire.Raw, error) {
	f, r, err := l.fact(seq)
	if err != nil {
		return nil, err
	}
	done, ok := f.(Success)
	if !ok {
		return nil, fmt.Errorf("record %d, a %s, is not the end of a task that is done", r.Seq, r.Kind)
	}
	return done.Delivers(), nil
}

// fillResults reads the results of dependencies that a task shows.
func (l Log) fillResults(p *Page, t *wire.Task) error {
	if len(p.Results) == 0 {
		return nil
	}
	t.Links = slices.Clone(t.Links)
	read := make(map[int64]wire.Raw) // each record once
	for _, missing := range p.Results {
		if read[missing.Ended] == nil {
			result, err := l.result(missing.Ended)
			if err != nil {
				return err
			}
			read[missing.Ended] = result
		}
		t.Links[missing.Link].Result, t.Links[missing.Link].LeftOut = read[missing.Ended], false
	}
	return nil
}

// fillInputs reads the delivered inputs. Each record is read only once.
func (l Log) fillInputs(p *Page, inputs wire.Inputs) error {
	place := make(map[string]int, len(inputs))
	for i := range inputs {
		place[inputs[i].Key] = i
	}
	results := make(map[int64]map[string]wire.Raw)
	for _, in := range p.Inputs {
		if results[in.Ended] == nil {
			result, err := l.result(in.Ended)
			if err != nil {
				return err
			}
			results[in.Ended] = contracts(result)
		}
		if at, there := place[in.Key]; there {
			inputs[at].Data = results[in.Ended][in.Key]
		}
	}
	return nil
}

// contracts returns the contracts that a result delivers.
func contracts(result wire.Raw) map[string]wire.Raw {
	data := make(map[string]wire.Raw)
	if read := hub.ReadResult(result); read != nil && read.Structured {
		for _, c := range read.Contracts {
			data[c.Key] = c.Data
		}
	}
	return data
}

// completeNotes reads notes.
func (l Log) completeNotes(pages []Page) (*wire.NoteList, error) {
	list := &wire.NoteList{Notes: []wire.Note{}}
	for _, p := range pages {
		for _, seq := range p.Notes {
			f, r, err := l.fact(seq)
			if err != nil {
				return nil, err
			}
			note, ok := f.(Note)
			if !ok {
				return nil, fmt.Errorf("record %d, a %s, is no note", r.Seq, r.Kind)
			}
			list.Notes = append(list.Notes, note.Note(r))
		}
	}
	return list, nil
}

// Deepest is the maximum nesting of a message that was accepted before, independent of the
// current rules.
const Deepest = 10_000

// completeResponse completes an answer with a response.
func (l Log) completeResponse(a *wire.TaskAnswer, pages []Page) (*wire.TaskAnswer, error) {
	if len(pages) == 0 {
		return a, nil
	}
	p := pages[0]
	if p.Response != 0 {
		f, r, err := l.fact(p.Response)
		if err != nil {
			return nil, err
		}
		document, err := LineOf(f, r)
		if err != nil {
			return nil, err
		}
		return &wire.TaskAnswer{Document: p.Metadata.FillIn(document), Trace: a.Trace}, nil
	}
	r, refusal := wire.ReadTaskResponse(a.Document, Deepest)
	if refusal != nil {
		return nil, refusal
	}
	var v wire.Task
	if err := l.part(&p, &v, p.Ended); err != nil {
		return nil, err
	}
	f, _, err := l.fact(p.Ended)
	if err != nil {
		return nil, err
	}
	if done, ok := f.(Success); ok {
		r.Artifacts = done.Made()
	}
	if r.Result = v.Result; r.Fault != nil {
		r.Fault.Message = v.Error
	}
	return &wire.TaskAnswer{Document: bytes.TrimSuffix(delegation.AppendResponse(nil, r), []byte("\n")), Trace: a.Trace}, nil
}

// A SessionPage selects a page of the log of a session.
type SessionPage struct {
	Session string // the recipient of its records
	After   int64  // messages behind this number
	Until   int64  // messages up to this number
	Limit   int
	Chain   string // only messages of this chain; "": all
	Task    string // likewise
	To      string // likewise
}

// sessionPageBytes is the maximum size of a page. A larger message is a page by itself.
const sessionPageBytes = 4 << 20

// completeSession reads a page of the log of a session.
func (l Log) completeSession(answer *wire.SessionView, pages []Page) (any, error) {
	whole := *answer
	for _, p := range pages {
		var err error
		if whole.Messages, whole.Next, whole.More, err = l.readSession(p.Session); err != nil {
			return nil, err
		}
	}
	return &whole, nil
}

// maxScanned is the maximum number of log entries that one page reads, even if few match.
const maxScanned = 20_000

// readSession reads a page of the log of a session.
func (l Log) readSession(page *SessionPage) (entries []session.Entry, next int64, more bool, err error) {
	entries, next = []session.Entry{}, page.After
	size, scanned := 0, 0
	search := wire.Search{To: []string{page.Session}, After: page.After, Until: page.Until}
	for r, err := range l.Find(search) {
		if err != nil {
			return nil, 0, false, err
		}
		f, err := l.Decode(&r)
		if err != nil {
			return nil, 0, false, err
		}
		if scanned++; scanned > maxScanned {
			return entries, next, true, nil
		}
		if e, wanted := page.entry(f, &r); wanted {
			if size += len(e.Document); len(entries) == page.Limit || size > sessionPageBytes && len(entries) > 0 {
				return entries, next, true, nil
			}
			entries = append(entries, e)
		}
		next = r.Seq
	}
	return entries, next, false, nil
}

// entry returns a record as an entry of the session's log, and whether it matches.
func (p *SessionPage) entry(f any, r *wire.Record) (session.Entry, bool) {
	e := session.Entry{Seq: r.Seq, LoggedAt: object.Timestamp(r.At)}
	entry, ok := f.(Entry)
	if !ok {
		return e, false
	}
	to := entry.Entry(&e)
	return e, (p.Task == "" || p.Task == r.Correlation) && (p.Chain == "" || p.Chain == e.Chain) && (p.To == "" || p.To == to)
}
