package dispatch

import (
	"slices"

	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/session"
)

// A Workshop does the work that a message of an agent needs before its decision. It runs on the goroutine of the agent,
// so further messages of the agent wait.
type Workshop interface {
	// Wants reports whether a message of an agent needs work before its decision. completes tells messages that complete a
	// task from other ones.
	Wants(agent string, completes bool) bool
	// Enter makes the workspace of a task that an agent reads or starts.
	Enter(agent, task string) *wire.Error
	// Verify verifies the work for a task that an agent completes, with a result or nil. tested reports whether the agent
	// claims that its tests passed. Verify returns a report, and the files that have changed in the workspace of the task.
	Verify(agent, task string, result []byte, tested bool) (report *hub.Artifact, changed []string, refused *wire.Error)
}

// subject returns the task that the Workshop may have to work on, and whether the message completes it.
func subject(m wire.Message) (task string, completes bool) {
	switch m := m.(type) {
	case *wire.Request:
		switch body := m.Body.(type) {
		case *wire.CompleteTask:
			return body.TaskID, true
		case *wire.TaskID:
			if m.Operation == "get-task" || m.Operation == "start-task" {
				return body.TaskID, false
			}
		case *wire.SendMessage:
			task, _ = body.Completes()
			return task, task != ""
		case *wire.SaySession:
			if c := completionIn(m); c != nil && c.Status != session.OutcomeFailed {
				return c.TaskID, true
			}
		}
	case *wire.AgentEvent:
		if r, ok := m.Body.(*delegation.Response); ok && r.Status == delegation.Completed {
			return r.ID, true
		}
	}
	return "", false
}

// wanted reports whether the decision about a message needs work before it, and returns the task.
func (d *Dispatcher) wanted(from handlers.Actor, m wire.Message) (task string, completes, work bool) {
	if d.options.Workshop == nil || from.Kind != handlers.Agent {
		return "", false, false
	}
	task, completes = subject(m)
	return task, completes, task != "" && (d.options.Workshop.Wants(from.Name, completes) || completes && d.state.Verifies.Load())
}

// prepare does the work before the decision about a message of an agent, and returns why the message must be refused.
// before is called if work is needed: earlier messages of the agent must be decided first.
func (d *Dispatcher) prepare(from handlers.Actor, m wire.Message, before func()) *wire.Error {
	shop := d.options.Workshop
	task, completes, work := d.wanted(from, m)
	if !work {
		return nil
	}
	before()
	if !completes {
		return shop.Enter(from.Name, task)
	}
	said := completionIn(m)
	report, changed, refused := shop.Verify(from.Name, task, resultOf(m), said != nil && said.SelfReview.TestsRun && said.SelfReview.TestsPassed)
	if said != nil { // the decision refuses it, so that it is in the log of its session
		said.Changed, said.Refused = changed, refused
		return nil
	}
	if r, ok := m.(*wire.Request); ok {
		if c, ok := r.Body.(*wire.CompleteTask); ok {
			if report != nil {
				c.Artifacts = append(slices.DeleteFunc(c.Artifacts, func(a hub.Artifact) bool { return a.Name == report.Name }), *report)
			}
			if c.Result != nil {
				c.Result.Files = max(c.Result.Files, len(changed))
			}
		}
	}
	return refused
}

// completionIn returns the completion in a message of a session, or nil.
func completionIn(m wire.Message) *session.Completion {
	if r, ok := m.(*wire.Request); ok {
		if body, ok := r.Body.(*wire.SaySession); ok && body.Message != nil {
			c, _ := body.Message.Body.(*session.Completion)
			return c
		}
	}
	return nil
}

// resultOf returns the result in a message that completes a task, or nil.
func resultOf(m wire.Message) []byte {
	switch m := m.(type) {
	case *wire.Request:
		switch body := m.Body.(type) {
		case *wire.CompleteTask:
			if body.Result != nil {
				return body.Result.Document
			}
		case *wire.SendMessage:
			_, result := body.Completes()
			return result
		}
	case *wire.AgentEvent:
		if r, ok := m.Body.(*delegation.Response); ok {
			return r.Result
		}
	}
	return nil
}
