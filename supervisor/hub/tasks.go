package hub

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/handlers"
	"orchestrator/supervisor"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// A requester makes the requests of the orchestrator itself.
type requester struct {
	*supervisor.Supervisor // set before the first request
	log                    hclog.Logger
	guard                  *guard
}

// do performs an operation for an actor.
func (r *requester) do(from handlers.Actor, operation string, body any) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return r.Requests.Do(ctx, from, operation, body)
}

// Follow calls send for each event after one, until ctx ends.
func (r *requester) Follow(ctx context.Context, since int64, send func(wire.Event) error) error {
	return r.Events(ctx, output.EventQuery{Since: since, Follow: true}, send)
}

// workTasks are the tasks of the team for its workspaces.
type workTasks struct{ *requester }

// looksFor is the actor that looks at tasks for merge-task and similar operations, which have a line in the audit.
func looksFor() handlers.Actor { return handlers.Actor{Kind: handlers.Operator, Audited: true} }

// Task returns a task, if there is one with an id.
func (w workTasks) Task(id string) (wire.Task, bool) {
	answer, err := w.do(looksFor(), "get-task", &wire.TaskID{TaskID: id})
	reply, ok := answer.(*wire.TaskReply)
	if err != nil || !ok {
		return wire.Task{}, false
	}
	return reply.Task, true
}

// OpenTask returns the open task of a name that the operator has submitted.
func (w workTasks) OpenTask(name string) (wire.Task, bool) {
	for _, status := range []string{"queued", "running"} {
		answer, err := w.do(looksFor(), "query-tasks", &wire.QueryTasks{Status: status, Limit: object.MaxWhole})
		list, ok := answer.(*wire.TaskList)
		if err != nil || !ok {
			continue
		}
		if i := slices.IndexFunc(list.Tasks, func(t wire.Task) bool { return t.Name == name && t.SubmittedBy == "operator" }); i >= 0 {
			return list.Tasks[i], true
		}
	}
	return wire.Task{}, false
}

// Submit submits a task.
func (w workTasks) Submit(s wire.SubmitTask) (string, error) {
	answer, err := w.do(handlers.Actor{Kind: handlers.Operator}, "submit-task", &s)
	if err != nil {
		return "", err
	}
	return answer.(*wire.TaskReply).Task.ID, nil
}

// Cancel cancels a task.
func (w workTasks) Cancel(id, why string) {
	if _, err := w.do(handlers.Actor{Kind: handlers.Operator}, "cancel-task", &wire.CancelTask{TaskID: id, Reason: why}); err != nil {
		w.log.Error("a task that is no longer needed could not be cancelled", "task", id, "error", err)
	}
}

// Elsewhere returns the host of an agent, and the function that gives it work there.
func (w workTasks) Elsewhere(agent string) (string, func(context.Context, []byte) ([]byte, error)) {
	run := w.FolderOf(agent).Remote
	if run == nil {
		return "", nil
	}
	return run.Host(), run.Work
}

// Hold makes a task wait for another one.
func (w workTasks) Hold(agent, task, on, text string) {
	w.Note(&wire.TaskHeld{Agent: agent, Task: task, On: on, Text: text})
}

// LastMerge returns the text of the record about the latest merge of the branch of a task.
func (w workTasks) LastMerge(task string) (text string, ok bool) {
	q := output.EventQuery{Task: task, Kind: events.TaskMerged}
	err := w.Events(context.Background(), q, func(e wire.Event) error {
		if e.Kind == events.TaskMerged {
			text, ok = e.Text, true
		}
		return nil
	})
	return text, ok && err == nil
}

// Refused reports a forbidden act of an agent.
func (w workTasks) Refused(agent, what string) { w.guard.Report(agent, "", what) }

// Ask makes a person decide about a task, in the name of its agent.
func (w workTasks) Ask(agent, task, question string) error {
	_, err := w.do(handlers.Actor{Kind: handlers.Agent, Name: agent}, "request-help", &wire.RequestHelp{TaskID: task, Question: question})
	if err != nil {
		w.log.Error("a person could not be asked about a task", "task", task, "error", err)
	}
	return err
}
