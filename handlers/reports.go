package handlers

import (
	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// report handles an event of an agent. An event has no answer; the returned error is for the
// audit.
func (td taskDecision) report(r *wire.AgentEvent) *wire.Error {
	switch body := r.Body.(type) {
	case *wire.Progress:
		return td.progress(body)
	case *wire.Trouble:
		return td.trouble(body)
	case *delegation.Response:
		return td.delegations().respond(body)
	case *wire.OpenQuestion:
		if err := td.questions().tooMany(); err != nil {
			return err
		}
		td.fact("", "", &questionAsked{ID: td.state.questions.questionID(), Agent: td.from.Name, Question: body.Question, Context: body.Context})
		return nil
	}
	if td.agents().activity(r.Body) {
		return nil
	}
	return &wire.Error{Code: wire.CodeUnknownType, Message: "there is no event:" + r.Name}
}

func (td taskDecision) progress(p *wire.Progress) *wire.Error {
	k, err := td.reportableTask(p.TaskID, "worked on")
	if err != nil {
		return err
	}
	td.begin(k)
	td.fact("", k.view.ID, &taskProgress{ID: k.view.ID, Name: k.view.Name, Agent: td.from.Name, Progress: p.Progress, Message: p.Message})
	return nil
}

// trouble records an error, and fails the task if the agent cannot continue.
func (td taskDecision) trouble(e *wire.Trouble) *wire.Error {
	if e.TaskID == "" || e.Recoverable && td.state.tasks.byID[e.TaskID] == nil {
		td.fact("", "", &taskTrouble{Agent: td.from.Name, Error: e.Error, Stack: e.Stack})
		return nil
	}
	k, err := td.reportableTask(e.TaskID, "failed")
	if err != nil {
		return err
	}
	if w := k.work(); w != nil && w.active() && !e.Recoverable {
		td.works().breakWork(w, e.Error)
		return nil
	}
	td.begin(k)
	if !e.Recoverable {
		td.fail(k, failure{why: e.Error, stack: e.Stack})
		return nil
	}
	td.fact("", k.view.ID, &taskTrouble{ID: k.view.ID, Agent: td.from.Name, Error: e.Error, Stack: e.Stack})
	return nil
}
