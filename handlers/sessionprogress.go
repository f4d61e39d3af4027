package handlers

import (
	"fmt"

	"orchestrator/handlers/graph"
	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// considerAck handles an acknowledgment of a developer, which starts its task.
func (t *decision) considerAck(x *messageContext) {
	for _, w := range t.state.sessions.worksOf(x.from.AgentID) {
		if w.of == x.of && (x.ReplyTo == w.message || x.ReplyTo == "" && x.CorrelationID == w.chain && w.phase == wire.PhaseAssigned) {
			x.task, x.chain = w.task.view.ID, w.chain
			x.after = func() { t.beginWork(w) }
			if x.to.AgentID != w.architect {
				x.notes = append(x.notes, fmt.Sprintf("/to_agent: it is for %s, which has assigned the task", w.architect))
				x.after = func() {
					t.beginWork(w)
					t.tellArchitect(w, x.from.AgentID+" has acknowledged the task")
				}
			}
			return
		}
	}
	x.notes = append(x.notes, "it acknowledges nothing that its sender has been given and not begun")
}

// beginWork records that a developer works on its task.
func (t *decision) beginWork(w *work) {
	switch {
	case w.phase != wire.PhaseAssigned:
	case w.task.view.State.Final(): // a revision of what is done
		t.moveWork(w, wire.PhaseWorking, "")
	default:
		defer func(from Actor) { t.from = from }(t.from)
		t.from = Actor{Kind: Agent, Name: w.developer}
		t.cancelQuestions(w.task)
		t.start(w.task, nil)
	}
}

// activeWork returns the work that a message of a developer is about.
func (t *tasks) activeWork(x *messageContext, id string) (*work, *wire.Error) {
	w := t.workOn(x.of, id)
	switch {
	case w == nil:
		return nil, &wire.Error{
			Code: wire.CodeNotFound, Message: fmt.Sprintf("no task of this session is called %.80q", id),
			Details: map[string]any{"pointer": "/payload/task_id", "task_id": id},
		}
	case w.developer != x.from.AgentID:
		return nil, rejected("/payload/task_id", fmt.Sprintf("the task %.80q is not yours", id))
	case !w.active():
		return nil, &wire.Error{
			Code: wire.CodeConflict, Message: fmt.Sprintf("the task %.80q is not being worked on: it is %s", id, w.how()),
			Details: map[string]any{"pointer": "/payload/task_id", "reason": "not_active", "task_id": id, "state": w.phase},
		}
	}
	x.task, x.chain = id, w.chain
	return w, nil
}

func (t *decision) considerProgress(x *messageContext, p *session.Progress) *wire.Error {
	w, err := t.state.tasks.activeWork(x, p.TaskID)
	if err != nil {
		return err
	}
	outside, n := outside(w.scope, p.Files)
	for _, file := range outside {
		x.notes = append(x.notes, fmt.Sprintf("/payload/files_modified_so_far: %.80q is outside of the scope", file))
	}
	if n > len(outside) {
		x.notes = append(x.notes, fmt.Sprintf("/payload/files_modified_so_far: %s outside of the scope in all", counted(n, "file")))
	}
	x.after = func() {
		t.beginWork(w)
		if w.task.view.State != wire.TaskRunning { // a revision of what is done
			t.moveWork(w, wire.PhaseWorking, p.Step)
			return
		}
		t.factOf(agentPrefix+w.developer, "", p.TaskID, &taskProgress{
			ID: p.TaskID, Name: w.task.view.Name, Agent: w.developer, Progress: p.Percent / 100, Message: p.Step,
		})
	}
	return nil
}

// passed reports whether a moment is over.
func (t *decision) passed(moment string) bool {
	at, ok := object.ParseTime(moment)
	return ok && at.Before(t.at)
}

// maxOffered is the maximum size of a result in a notice, in bytes.
const maxOffered = 4096

// offerSoft notifies the developer of a task with a soft dependency that the other task has
// ended.
func (t *decision) offerSoft(up, down *task) {
	w := down.work()
	if w == nil || !w.active() {
		return
	}
	message := fmt.Sprintf("Task %s, whose result you may need, is %s", up.label(), up.view.State)
	e, depends := t.state.tasks.graph.Find(down.node, up.node, graph.Soft, "")
	if result := up.view.Result; depends && !t.state.tasks.graph.Edge(e).Private && len(result) > 0 && len(result) <= maxOffered && string(result) != "null" { // as a snapshot has none
		message += ": " + string(result)
	}
	t.tell(t.state.agents.byID[w.developer], down, wire.NoticeUpdated, message)
}
