package handlers

import (
	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// report handles an event of an agent. An event has no answer; the returned error is for the
// audit.
func (t *decision) report(r *wire.AgentEvent) *wire.Error {
	switch body := r.Body.(type) {
	case *wire.Progress:
		return t.progress(body)
	case *wire.Trouble:
		return t.trouble(body)
	case *delegation.Response:
		return t.respond(body)
	case *wire.OpenQuestion:
		if err := t.tooMany(); err != nil {
			return err
		}
		t.fact("", "", &questionAsked{ID: t.state.questions.questionID(), Agent: t.from.Name, Question: body.Question, Context: body.Context})
		return nil
	}
	return &wire.Error{Code: wire.CodeUnknownType, Message: "there is no event:" + r.Name}
}

func (t *decision) progress(p *wire.Progress) *wire.Error {
	k, err := t.reportableTask(p.TaskID, "worked on")
	if err != nil {
		return err
	}
	t.begin(k)
	t.fact("", k.view.ID, &taskProgress{ID: k.view.ID, Name: k.view.Name, Agent: t.from.Name, Progress: p.Progress, Message: p.Message})
	return nil
}

// trouble records an error, and fails the task if the agent cannot continue.
func (t *decision) trouble(e *wire.Trouble) *wire.Error {
	if e.TaskID == "" || e.Recoverable && t.state.tasks.byID[e.TaskID] == nil {
		t.fact("", "", &taskTrouble{Agent: t.from.Name, Error: e.Error, Stack: e.Stack})
		return nil
	}
	k, err := t.reportableTask(e.TaskID, "failed")
	if err != nil {
		return err
	}
	if w := k.work(); w != nil && w.active() && !e.Recoverable {
		t.breakWork(w, e.Error)
		return nil
	}
	t.begin(k)
	if !e.Recoverable {
		t.fail(k, failure{why: e.Error, stack: e.Stack})
		return nil
	}
	t.fact("", k.view.ID, &taskTrouble{ID: k.view.ID, Agent: t.from.Name, Error: e.Error, Stack: e.Stack})
	return nil
}
