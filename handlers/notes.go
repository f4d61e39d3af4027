package handlers

import (
	"fmt"

	"orchestrator/handlers/history"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// maxNotes is the maximum number of notes of a task.
const maxNotes = 10_000

// taskNoted records a note on a task. The note itself is only in the log.
type taskNoted struct {
	ID      string      `json:"task"`
	Name    string      `json:"name"`
	Content string      `json:"content"`
	Urgent  bool        `json:"urgent,omitzero"`
	Request *requestKey `json:"request,omitzero"`
}

func (*taskNoted) kind() string { return events.TaskNoted }

func (t *taskNoted) apply(s *State, r *wire.Record) {
	m := s.tasks.byID[t.ID].needsMore()
	m.notes = append(m.notes, r.Seq)
	s.saveReply(agentOf(r.From), t.Request, &wire.NoteReply{Note: t.Note(r)}, nil)
}

func (t *taskNoted) Note(r *wire.Record) wire.Note {
	return wire.Note{
		ID: fmt.Sprintf("n%d", r.Seq), TaskID: t.ID, Author: r.From, Content: t.Content, Urgent: t.Urgent, CreatedAt: object.Timestamp(r.At),
	}
}

func addNote(td taskDecision, r *wire.AddNote) (*wire.NoteReply, *wire.Error) {
	k, err := td.manageableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if k.more != nil && len(k.more.notes) >= maxNotes {
		return nil, &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("task %s has %d notes, and takes no more", k.label(), maxNotes),
			Details: map[string]any{"taskId": k.view.ID, "reason": "too_many_notes"},
		}
	}
	f := &taskNoted{ID: k.view.ID, Name: k.view.Name, Content: r.Content, Urgent: r.Urgent, Request: td.mark()}
	td.fact("", k.view.ID, f)
	if holder := k.view.AssignedTo; r.Urgent && !k.view.State.Final() && holder != td.from.Name {
		td.tell(td.state.agents.byID[holder], k, wire.NoticeUpdated, "Note: "+r.Content)
	}
	records := td.out.Records
	return &wire.NoteReply{Note: f.Note(&records[len(records)-1])}, nil
}

func listNotes(td taskDecision, r *wire.TaskID) (*wire.NoteList, *wire.Error) {
	k, err := td.manageableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if k.more != nil {
		td.pages = append(td.pages, history.Page{Task: k.view.ID, Notes: k.more.notes})
	}
	return &wire.NoteList{Notes: []wire.Note{}}, nil
}
