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

func submitPlan(t *decision, r *wire.SubmitPlan) (*wire.TaskReply, *wire.Error) {
	k, err := t.held(r.TaskID, "planned")
	switch {
	case err != nil:
		return nil, err
	case k.view.State != wire.TaskPlanning:
		return nil, wrongState(k, "planned")
	}
	t.fact("", k.view.ID, &taskPlanned{ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Plan: r.Plan, Request: t.mark()})
	return t.state.tasks.reply(k), nil
}

// review returns a task whose plan the caller may approve or return.
func (t *decision) review(id, verb string) (*task, *wire.Error) {
	k, err := t.manageableTask(id)
	switch {
	case err != nil:
		return nil, err
	case t.from.Kind == Agent && k.view.AssignedTo == t.from.Name:
		return nil, &wire.Error{
			Code: wire.CodeDenied, Message: "who wrote a plan does not judge it", Details: map[string]any{"taskId": k.view.ID},
		}
	case k.view.State != wire.TaskPlanReview:
		return nil, wrongState(k, verb)
	}
	return k, nil
}

func approvePlan(t *decision, r *wire.TaskID) (*wire.TaskReply, *wire.Error) {
	k, err := t.review(r.TaskID, "begun: there is no plan to approve")
	switch {
	case err != nil:
		return nil, err
	case t.state.tasks.graph.Open(k.node) > 0:
		return nil, t.state.tasks.waits(k)
	}
	t.start(k, t.mark())
	t.tell(t.state.agents.byID[k.view.AssignedTo], k, wire.NoticeUpdated, "Plan approved. The task is yours to do.")
	return t.state.tasks.reply(k), nil
}

func revisePlan(t *decision, r *wire.RevisePlan) (*wire.TaskReply, *wire.Error) {
	k, err := t.review(r.TaskID, "sent back: there is no plan to revise")
	if err != nil {
		return nil, err
	}
	t.fact(agentPrefix+k.view.AssignedTo, k.view.ID, &taskRevise{
		ID: k.view.ID, Name: k.view.Name, Agent: k.view.AssignedTo, Feedback: r.Feedback, Request: t.mark(),
	})
	t.tell(t.state.agents.byID[k.view.AssignedTo], k, wire.NoticeUpdated, fmt.Sprintf("Plan to be revised: %s", r.Feedback))
	return t.state.tasks.reply(k), nil
}
