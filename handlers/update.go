package handlers

import (
	"fmt"

	"orchestrator/handlers/history"
	"orchestrator/handlers/state"
	"orchestrator/wire"
	"orchestrator/wire/hub"
)

var updateOperations = []Operation{
	bind("update-task", (*decision).tasks, taskDecision.updateTask),
	bind("submit-plan", (*decision).tasks, taskDecision.submitPlan),
	bind("approve-plan", (*decision).tasks, taskDecision.approvePlan),
	bind("revise-plan", (*decision).tasks, taskDecision.revisePlan),
	bind("add-note", (*decision).tasks, taskDecision.addNote),
	bind("list-notes", (*decision).tasks, taskDecision.listNotes),
}

func (td taskDecision) updateTask(r *wire.UpdateTask) (*wire.TaskReply, *wire.Error) {
	t, err := td.manageableTask(r.TaskID)
	switch {
	case err != nil:
		return nil, err
	case t.View.State.Final():
		return nil, wrongState(t, "changed")
	}
	if err := td.mayManage(t, "change"); err != nil {
		return nil, err
	}
	if err := t.Changeable(); err != nil {
		return nil, err
	}
	f := &state.TaskUpdated{
		ID: t.View.ID, Name: t.View.Name, Description: r.Description, Type: r.Type, Priority: r.Priority, Payload: r.Payload,
		TargetRepo: r.TargetRepo, ProjectID: r.ProjectID, AcceptanceCriteria: r.AcceptanceCriteria, Without: r.Without,
		Request: td.mark(),
	}
	state.Set(&f.Name, r.Name)
	var oddities []hub.Oddity
	if r.Spec != nil {
		f.StructuredSpec, oddities = r.Spec.Document, r.Spec.Oddities
	}
	if r.Requirements != nil {
		f.Requirements, oddities = r.Requirements.Document, append(oddities, r.Requirements.Oddities...)
	}
	if f.ChangesText(t) {
		f.By = td.from.String()
	}
	td.fact("", t.View.ID, f)
	if o := hub.OddPriority(r.Priority); o != nil {
		oddities = append(oddities, *o)
	}
	for _, o := range oddities {
		td.odd(t, o)
	}
	answer := td.state.Tasks.Reply(t)
	if f.Request == nil { // a stored answer must not contain the inputs
		answer.Task.WaitsFor = td.state.Tasks.WaitsFor(t)
		td.state.Tasks.ShowInputs(t, &answer.Task)
		td.state.Tasks.ShowResults(t, &answer.Task)
	}
	return answer, nil
}

// maxNotes is the maximum number of notes of a task.
const maxNotes = 10_000

func (td taskDecision) addNote(r *wire.AddNote) (*wire.NoteReply, *wire.Error) {
	t, err := td.readableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if t.Extra != nil && len(t.Extra.Notes) >= maxNotes {
		return nil, state.Errorf(wire.CodeConflict, state.Details{"taskId": t.View.ID, "reason": "too_many_notes"},
			"task %s has %d notes, and takes no more", t.Label(), maxNotes)
	}
	f := &state.TaskNoted{ID: t.View.ID, Name: t.View.Name, Content: r.Content, Urgent: r.Urgent, Request: td.mark()}
	td.fact("", t.View.ID, f)
	if holder := t.View.AssignedTo; r.Urgent && !t.View.State.Final() && holder != td.from.Name {
		td.tell(td.state.Agents.ByID[holder], t, wire.NoticeUpdated, "Note: "+r.Content)
	}
	records := td.out.Records
	return &wire.NoteReply{Note: f.Note(&records[len(records)-1])}, nil
}

func (td taskDecision) listNotes(r *wire.TaskID) (*wire.NoteList, *wire.Error) {
	t, err := td.readableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if t.Extra != nil {
		td.pages = append(td.pages, history.Page{Task: t.View.ID, Notes: t.Extra.Notes})
	}
	return &wire.NoteList{Notes: []wire.Note{}}, nil
}

func (td taskDecision) submitPlan(r *wire.SubmitPlan) (*wire.TaskReply, *wire.Error) {
	t, err := td.held(r.TaskID, "planned")
	switch {
	case err != nil:
		return nil, err
	case t.View.State != wire.TaskPlanning:
		return nil, wrongState(t, "planned")
	}
	if err := t.Changeable(); err != nil {
		return nil, err
	}
	td.fact("", t.View.ID, &state.TaskPlanned{ID: t.View.ID, Name: t.View.Name, Agent: t.View.AssignedTo, Plan: r.Plan, Request: td.mark()})
	return td.replyWith(t), nil
}

// review returns a task with a plan that the caller may approve or return.
func (td taskDecision) review(id, verb string) (*state.Task, *wire.Error) {
	t, err := td.manageableTask(id)
	switch {
	case err != nil:
		return nil, err
	case td.from.Kind == Agent && t.View.AssignedTo == td.from.Name:
		return nil, state.Errorf(wire.CodeDenied, state.Details{"taskId": t.View.ID}, "the author of a plan cannot approve or reject it")
	case t.View.State != wire.TaskPlanReview:
		return nil, wrongState(t, verb)
	}
	return t, nil
}

func (td taskDecision) approvePlan(r *wire.TaskID) (*wire.TaskReply, *wire.Error) {
	t, err := td.review(r.TaskID, "begun: it has no plan to approve")
	switch {
	case err != nil:
		return nil, err
	case td.state.Tasks.Graph.Open(t.Node) > 0:
		return nil, td.state.Tasks.Waits(t)
	}
	td.start(t, td.mark())
	td.tell(td.state.Agents.ByID[t.View.AssignedTo], t, wire.NoticeUpdated, "Plan approved. The task is yours to do.")
	return td.replyWith(t), nil
}

func (td taskDecision) revisePlan(r *wire.RevisePlan) (*wire.TaskReply, *wire.Error) {
	t, err := td.review(r.TaskID, "sent back: it has no plan to revise")
	if err != nil {
		return nil, err
	}
	td.fact(state.AgentPrefix+t.View.AssignedTo, t.View.ID, &state.TaskRevise{
		ID: t.View.ID, Name: t.View.Name, Agent: t.View.AssignedTo, Feedback: r.Feedback, Request: td.mark(),
	})
	td.tell(td.state.Agents.ByID[t.View.AssignedTo], t, wire.NoticeUpdated, fmt.Sprintf("Plan to be revised: %s", r.Feedback))
	return td.replyWith(t), nil
}
