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
	k, err := td.manageableTask(r.TaskID)
	switch {
	case err != nil:
		return nil, err
	case k.View.State.Final():
		return nil, wrongState(k, "changed")
	}
	if err := td.mayManage(k, "change"); err != nil {
		return nil, err
	}
	if err := k.Changeable(); err != nil {
		return nil, err
	}
	f := &state.TaskUpdated{
		ID: k.View.ID, Name: k.View.Name, Description: r.Description, Type: r.Type, Priority: r.Priority, Payload: r.Payload,
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
	if f.ChangesText(k) {
		f.By = td.from.String()
	}
	td.fact("", k.View.ID, f)
	if o := hub.OddPriority(r.Priority); o != nil {
		oddities = append(oddities, *o)
	}
	for _, o := range oddities {
		td.odd(k, o)
	}
	answer := td.state.Tasks.Reply(k)
	if f.Request == nil { // a stored answer must not contain the inputs
		answer.Task.WaitsFor = td.state.Tasks.WaitsFor(k)
		td.state.Tasks.ShowInputs(k, &answer.Task)
		td.state.Tasks.ShowResults(k, &answer.Task)
	}
	return answer, nil
}

// maxNotes is the maximum number of notes of a task.
const maxNotes = 10_000

func (td taskDecision) addNote(r *wire.AddNote) (*wire.NoteReply, *wire.Error) {
	k, err := td.readableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if k.Extra != nil && len(k.Extra.Notes) >= maxNotes {
		return nil, state.Errorf(wire.CodeConflict, state.Details{"taskId": k.View.ID, "reason": "too_many_notes"},
			"task %s has %d notes, and takes no more", k.Label(), maxNotes)
	}
	f := &state.TaskNoted{ID: k.View.ID, Name: k.View.Name, Content: r.Content, Urgent: r.Urgent, Request: td.mark()}
	td.fact("", k.View.ID, f)
	if holder := k.View.AssignedTo; r.Urgent && !k.View.State.Final() && holder != td.from.Name {
		td.tell(td.state.Agents.ByID[holder], k, wire.NoticeUpdated, "Note: "+r.Content)
	}
	records := td.out.Records
	return &wire.NoteReply{Note: f.Note(&records[len(records)-1])}, nil
}

func (td taskDecision) listNotes(r *wire.TaskID) (*wire.NoteList, *wire.Error) {
	k, err := td.readableTask(r.TaskID)
	if err != nil {
		return nil, err
	}
	if k.Extra != nil {
		td.pages = append(td.pages, history.Page{Task: k.View.ID, Notes: k.Extra.Notes})
	}
	return &wire.NoteList{Notes: []wire.Note{}}, nil
}

func (td taskDecision) submitPlan(r *wire.SubmitPlan) (*wire.TaskReply, *wire.Error) {
	k, err := td.held(r.TaskID, "planned")
	switch {
	case err != nil:
		return nil, err
	case k.View.State != wire.TaskPlanning:
		return nil, wrongState(k, "planned")
	}
	if err := k.Changeable(); err != nil {
		return nil, err
	}
	td.fact("", k.View.ID, &state.TaskPlanned{ID: k.View.ID, Name: k.View.Name, Agent: k.View.AssignedTo, Plan: r.Plan, Request: td.mark()})
	return td.replyWith(k), nil
}

// review returns a task with a plan that the caller may approve or return.
func (td taskDecision) review(id, verb string) (*state.Task, *wire.Error) {
	k, err := td.manageableTask(id)
	switch {
	case err != nil:
		return nil, err
	case td.from.Kind == Agent && k.View.AssignedTo == td.from.Name:
		return nil, state.Errorf(wire.CodeDenied, state.Details{"taskId": k.View.ID}, "the author of a plan cannot approve or reject it")
	case k.View.State != wire.TaskPlanReview:
		return nil, wrongState(k, verb)
	}
	return k, nil
}

func (td taskDecision) approvePlan(r *wire.TaskID) (*wire.TaskReply, *wire.Error) {
	k, err := td.review(r.TaskID, "begun: it has no plan to approve")
	switch {
	case err != nil:
		return nil, err
	case td.state.Tasks.Graph.Open(k.Node) > 0:
		return nil, td.state.Tasks.Waits(k)
	}
	td.start(k, td.mark())
	td.tell(td.state.Agents.ByID[k.View.AssignedTo], k, wire.NoticeUpdated, "Plan approved. The task is yours to do.")
	return td.replyWith(k), nil
}

func (td taskDecision) revisePlan(r *wire.RevisePlan) (*wire.TaskReply, *wire.Error) {
	k, err := td.review(r.TaskID, "sent back: it has no plan to revise")
	if err != nil {
		return nil, err
	}
	td.fact(state.AgentPrefix+k.View.AssignedTo, k.View.ID, &state.TaskRevise{
		ID: k.View.ID, Name: k.View.Name, Agent: k.View.AssignedTo, Feedback: r.Feedback, Request: td.mark(),
	})
	td.tell(td.state.Agents.ByID[k.View.AssignedTo], k, wire.NoticeUpdated, fmt.Sprintf("Plan to be revised: %s", r.Feedback))
	return td.replyWith(k), nil
}
