package adapter

import (
	"slices"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/object"
	"orchestrator/wire/tools"
)

// A planState is how far the plan of a task is.
type planState int

const (
	unplanned    planState = iota // no plan is wanted, or it was approved
	planWanted                    // the client has to make one
	planSent                      // the orchestrator has not answered
	planInReview                  // a person or a planner decides about it
)

// planning is the part of a Machine for plans.
type planning struct {
	*Machine
	on bool // the client is in its mode for plans
}

// wanted reports whether the client works on a task without its approved plan.
func (m *planning) wanted() bool {
	return m.task != nil && !m.task.ended && m.task.plan != unplanned
}

// switchMode keeps the client from changes while it plans, and lets it work as configured otherwise.
func (m *planning) switchMode() {
	planning := m.wanted()
	if planning == m.on || m.o.Permission == PermissionPlan {
		return
	}
	m.on = planning
	effects := m.client.Plan(planning)
	if effects == nil && planning {
		m.log("the client has no plan mode: only its prompt forbids changes before the plan is approved")
	}
	m.handle(effects)
}

// editors are the tools that change files, as clients name them.
var editors = []string{"Edit", "MultiEdit", "Write", "NotebookEdit", "Delete", "Move"}

// asked handles a request for permission that presents a plan, or that would change files although changes are
// forbidden. It reports false for other requests.
func (m *planning) asked(p *Permission) bool {
	t, planOnly := m.task, m.o.Permission == PermissionPlan
	switch {
	case p.Plan != "" && m.wanted() && t.plan == planWanted:
		m.granting[p.ID] = *p
		m.turn(activity.Waiting, "the approval of its plan")
		m.submit(t, p.Plan)
		t.presented = p.ID
	case p.Plan != "" && m.wanted():
		m.decide(p, Decision{Message: "Your plan is not judged yet. End your turn: you will be told."}, "")
	case p.Plan != "" && planOnly:
		m.decide(p, Decision{Message: "You may only plan: report the plan as the result of your task."}, "")
	case slices.Contains(editors, p.Tool) && m.wanted():
		m.decide(p, Decision{Message: "Nothing may be changed before your plan is approved."}, "")
	case slices.Contains(editors, p.Tool) && planOnly:
		m.decide(p, Decision{Message: "You may change nothing."}, "")
	default:
		return false
	}
	return true
}

// offered takes a plan from a client that does not wait for approval in its turn.
func (m *planning) offered(plan string) {
	switch t := m.task; {
	case m.wanted() && t.plan == planWanted:
		m.submit(t, plan)
	case m.wanted(): // it gets a prompt when the plan is judged
	case m.o.Permission == PermissionPlan:
		m.later("You may only plan: report the plan as the result of your task.")
	default:
		m.on = true // the client has switched by itself
		m.later("Your plan needs no approval. Do the task now.")
	}
}

// later adds a prompt for the next turn.
func (m *planning) later(words string) {
	m.halted = m.busy
	m.prompts = append(m.prompts, text{words: words})
}

// submit submits a plan.
func (m *planning) submit(t *task, plan string) {
	t.plan, t.presented = planSent, ""
	m.ask(wire.SubmitPlan{TaskID: t.id, Plan: object.Quote(tools.Clip(plan, tools.MaxText))}, pending{kind: "submit-plan", task: t})
}

// submitted takes the answer to a submitted plan.
func (m *planning) submitted(t *task, err *orderError) {
	if t.ended {
		return
	}
	t.plan = planInReview
	if err == nil || err.Details.State == wire.TaskPlanReview { // or another one was submitted for it
		return
	}
	m.log("submit-plan was refused: %s", err.Message)
	m.end(pending{kind: "fail-task", task: t}, wire.FailTask{TaskID: t.id, Error: tools.Clip("its plan was refused: "+err.Message, 2000)})
	if m.busy {
		m.interrupt()
	}
}

// judged goes on with a task in planning that has changed.
func (m *planning) judged(t *task, news string) {
	switch {
	case t.view.State == wire.TaskRunning:
		m.approved(t)
	case t.view.State == wire.TaskPlanning && t.plan == planInReview:
		t.plan, t.reminded = planWanted, false
		words := "Your plan was rejected: " + orElse(tools.Clip(t.view.PlanFeedback, tools.MaxText), "no reason was given") +
			"\nChange nothing yet, and present another plan."
		if p, waits := m.presentation(t); waits {
			m.decide(&p, Decision{Message: words}, words)
			return
		}
		m.prompts = append(m.prompts, text{words: words})
	default:
		m.prompts = append(m.prompts, text{words: t.view.update(news)})
	}
}

// approved lets the client begin the task. A turn that waits for the approval goes on; otherwise
// a new one begins, because not every client can change its mode in the middle of a turn.
func (m *planning) approved(t *task) {
	t.plan, t.started, t.reminded = unplanned, true, false
	words := "Your plan is approved. Do the task now, and call task_complete with a summary when it is done."
	p, waits := m.presentation(t)
	switch planOnly := m.o.Permission == PermissionPlan; {
	case waits && planOnly:
		words = "Your plan is approved, and you may change nothing: report it as the result of your task with task_complete."
		m.decide(&p, Decision{Message: words}, words)
	case waits:
		m.on = false
		m.decide(&p, Decision{Allow: true}, "")
	default:
		m.later(words)
	}
}

// presentation returns the permission that presented the plan of a task, if the client waits for its answer. A later
// request without a plan may have the same id.
func (m *planning) presentation(t *task) (p Permission, waits bool) {
	p = m.granting[t.presented]
	return p, p.Plan != ""
}

// settle decides about a task after its turn has ended without an approved plan. The last words of the turn are the
// plan, if the client has not presented one.
func (m *planning) settle(t *task, e *Ended) {
	switch {
	case t.plan != planWanted:
	case e.Failure == FailLimit: // a task that is returned could be given out again without a plan
		m.prompts = withGoOn(m.prompts)
	case e.Failure != "":
		m.end(pending{kind: "fail-task", task: t}, wire.FailTask{TaskID: t.id, Error: e.failure(), Class: e.Failure})
	case strings.TrimSpace(e.Text) != "" && !e.Stopped:
		m.submit(t, e.Text)
	case len(m.prompts)+len(m.sent) > 0: // the next texts go on with the plan
	case !t.reminded:
		t.reminded = true
		m.prompts = append(m.prompts, text{words: "You ended your turn without a plan. " + planFirst})
	default:
		m.end(pending{kind: "fail-task", task: t}, wire.FailTask{TaskID: t.id, Class: "stuck", Error: "its agent ended the turn and presented no plan"})
	}
}

// planFirst tells a client to plan.
const planFirst = "Make a plan first, and change nothing yet. " +
	"Present the plan with your tool for plans, or else as the last words of your turn. You will be told whether it is approved."

// afterLimit lets a client go on when the limit of its vendor has ended.
const afterLimit = "The limit of your vendor has ended. Go on with your task."

// plan adds the approved plan to a prompt. The conversation that made it may be gone.
func (v *taskView) plan(b *strings.Builder) {
	if v.State == wire.TaskPlanning || len(v.Plan) == 0 {
		return
	}
	words, ok := object.Text(v.Plan)
	if !ok {
		words = string(v.Plan)
	}
	b.WriteString("\nThe approved plan:\n" + tools.Clip(words, tools.MaxText) + "\n")
}
