package handlers

import (
	"fmt"

	"orchestrator/handlers/graph"
	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// considerAck handles an acknowledgment of a developer, which starts its task.
func (wd workDecision) considerAck(x *messageContext) {
	for _, w := range wd.state.sessions.worksOf(x.from.AgentID) {
		if w.of == x.of && (x.ReplyTo == w.message || x.ReplyTo == "" && x.CorrelationID == w.chain && w.phase == wire.PhaseAssigned) {
			x.task, x.chain = w.task.view.ID, w.chain
			x.effect, x.work = effectBegin, w
			if x.to.AgentID != w.architect {
				x.notes = append(x.notes, fmt.Sprintf("/to_agent: it is for %s, which has assigned the task", w.architect))
			}
			return
		}
	}
	x.notes = append(x.notes, "it acknowledges nothing that its sender has been given and not begun")
}

// acknowledged applies an acknowledgment. The architect is notified if it is for another member.
func (wd workDecision) acknowledged(x *messageContext) {
	wd.beginWork(x.work)
	if x.to.AgentID != x.work.architect {
		wd.tellArchitect(x.work, x.from.AgentID+" has acknowledged the task")
	}
}

// beginWork records that a developer works on its task.
func (wd workDecision) beginWork(w *work) {
	switch {
	case w.phase != wire.PhaseAssigned:
	case w.task.view.State.Final(): // a revision of what is done
		wd.moveWork(w, wire.PhaseWorking, "")
	default:
		defer func(from Actor) { wd.from = from }(wd.from)
		wd.from = Actor{Kind: Agent, Name: w.developer}
		wd.questions().cancelQuestions(w.task)
		wd.tasks().start(w.task, nil)
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

func (wd workDecision) considerProgress(x *messageContext, p *session.Progress) *wire.Error {
	w, err := wd.state.tasks.activeWork(x, p.TaskID)
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
	x.effect, x.work = effectProgress, w
	return nil
}

// progressed applies a report of progress.
func (wd workDecision) progressed(x *messageContext, p *session.Progress) {
	w := x.work
	wd.beginWork(w)
	if w.task.view.State != wire.TaskRunning { // a revision of what is done
		wd.moveWork(w, wire.PhaseWorking, p.Step)
		return
	}
	wd.factOf(agentPrefix+w.developer, "", p.TaskID, &taskProgress{
		ID: p.TaskID, Name: w.task.view.Name, Agent: w.developer, Progress: p.Percent / 100, Message: p.Step,
	})
}

// passed reports whether a moment is over.
func (wd workDecision) passed(moment string) bool {
	at, ok := object.ParseTime(moment)
	return ok && at.Before(wd.at)
}

// maxOffered is the maximum size of a result in a notice, in bytes.
const maxOffered = 4096

// offerSoft notifies the developer of a task with a soft dependency that the other task has
// ended.
func (wd workDecision) offerSoft(up, down *task) {
	w := down.work()
	if w == nil || !w.active() {
		return
	}
	message := fmt.Sprintf("Task %s, whose result you may need, is %s", up.label(), up.view.State)
	e, depends := wd.state.tasks.graph.Find(down.node, up.node, graph.Soft, "")
	if result := up.view.Result; depends && !wd.state.tasks.graph.Edge(e).Private && len(result) > 0 && len(result) <= maxOffered && string(result) != "null" { // as a snapshot has none
		message += ": " + string(result)
	}
	wd.tasks().tell(wd.state.agents.byID[w.developer], down, wire.NoticeUpdated, message)
}
