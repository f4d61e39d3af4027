package handlers

import (
	"fmt"

	"orchestrator/wire"
	"orchestrator/wire/events"
)

// taskPlanned records the plan of an agent for its task.
type taskPlanned struct {
	ID      string      `json:"task"`
	Name    string      `json:"name"`
	Agent   string      `json:"agent"`
	Plan    wire.Raw    `json:"plan"`
	Request *requestKey `json:"request,omitzero"`
}

func (*taskPlanned) kind() string { return events.TaskPlanned }

func (t *taskPlanned) apply(s *State, r *wire.Record) {
	k := s.tasks.byID[t.ID]
	d := k.view.Details.Copy()
	d.Plan, d.PlanFeedback = t.Plan, ""
	s.rewrite(k, r, func() { k.view.Details = d })
	s.move(k, wire.TaskPlanReview)
	s.saveReply(agentOf(r.From), t.Request, s.tasks.reply(k), nil)
}

// rewrite changes texts or documents of a task, and remembers the record.
func (s *State) rewrite(k *task, r *wire.Record, change func()) {
	m := k.needsMore()
	m.parts = append(m.parts, r.Seq)
	change()
	k.lighten()
}

// taskRevise records the feedback on a plan.
type taskRevise struct {
	ID       string      `json:"task"`
	Name     string      `json:"name"`
	Agent    string      `json:"agent"`
	Feedback string      `json:"feedback"`
	Request  *requestKey `json:"request,omitzero"`
}

func (*taskRevise) kind() string { return events.TaskPlanReturned }

func (t *taskRevise) apply(s *State, r *wire.Record) {
	k := s.tasks.byID[t.ID]
	d := k.view.Details.Copy()
	d.PlanFeedback = t.Feedback
	k.view.Details = d
	s.move(k, wire.TaskPlanning)
	s.saveReply(agentOf(r.From), t.Request, s.tasks.reply(k), nil)
}

func submitPlan(td taskDecision, r *wire.SubmitPlan) (*wire.TaskReply, *wire.Error) {
	k, err := td.held(r.TaskID, "planned")
	switch {
	case err != nil:
		return nil, err
	case k.view.State != wire.TaskPlanning:
		return nil, wrongState(k, "planned")
	}
	td.fact("", k.view.ID, &taskPlanned{ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Plan: r.Plan, Request: td.mark()})
	return td.state.tasks.reply(k), nil
}

// review returns a task whose plan the caller may approve or return.
func (td taskDecision) review(id, verb string) (*task, *wire.Error) {
	k, err := td.manageableTask(id)
	switch {
	case err != nil:
		return nil, err
	case td.from.Kind == Agent && k.view.AssignedTo == td.from.Name:
		return nil, &wire.Error{
			Code: wire.CodeDenied, Message: "who wrote a plan does not judge it", Details: map[string]any{"taskId": k.view.ID},
		}
	case k.view.State != wire.TaskPlanReview:
		return nil, wrongState(k, verb)
	}
	return k, nil
}

func approvePlan(td taskDecision, r *wire.TaskID) (*wire.TaskReply, *wire.Error) {
	k, err := td.review(r.TaskID, "begun: there is no plan to approve")
	switch {
	case err != nil:
		return nil, err
	case td.state.tasks.graph.Open(k.node) > 0:
		return nil, td.state.tasks.waits(k)
	}
	td.start(k, td.mark())
	td.tell(td.state.agents.byID[k.view.AssignedTo], k, wire.NoticeUpdated, "Plan approved. The task is yours to do.")
	return td.state.tasks.reply(k), nil
}

func revisePlan(td taskDecision, r *wire.RevisePlan) (*wire.TaskReply, *wire.Error) {
	k, err := td.review(r.TaskID, "sent back: there is no plan to revise")
	if err != nil {
		return nil, err
	}
	td.fact(agentPrefix+k.view.AssignedTo, k.view.ID, &taskRevise{
		ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Feedback: r.Feedback, Request: td.mark(),
	})
	td.tell(td.state.agents.byID[k.view.AssignedTo], k, wire.NoticeUpdated, fmt.Sprintf("Plan to be revised: %s", r.Feedback))
	return td.state.tasks.reply(k), nil
}
