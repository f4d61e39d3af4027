package dispatch

import (
	"slices"

	"orchestrator/handlers"
	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/session"
)

// A Workshop does what has to be done before a message of an agent is decided. It runs on the goroutine of the
// agent, whose further messages wait.
type Workshop interface {
	// Wants reports whether there is something to do before a message that completes a task, or another one.
	Wants(agent string, completes bool) bool
	// Enter makes the workspace of a task that an agent reads or starts.
	Enter(agent, task string) *wire.Error
	// Verify verifies what an agent completes, with a result or nil. It returns a report.
	Verify(agent, task string, result []byte) (*hub.Artifact, *wire.Error)
}

// subject returns the task for which the Workshop may have something to do, and whether the message completes it.
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
		case *wire.SaySession:
			if body.Message != nil {
				if c, ok := body.Message.Body.(*session.Completion); ok && c.Status != session.OutcomeFailed {
					return c.TaskID, true
				}
			}
		}
	case *wire.AgentEvent:
		if r, ok := m.Body.(*delegation.Response); ok && r.Status == delegation.Completed {
			return r.ID, true
		}
	}
	return "", false
}

// wanted reports whether there is work before the decision about a message, and for which task.
func wanted(d *Dispatcher, from handlers.Actor, m wire.Message) (task string, completes, work bool) {
	if d.options.Workshop == nil || from.Kind != handlers.Agent {
		return "", false, false
	}
	task, completes = subject(m)
	return task, completes, task != "" && d.options.Workshop.Wants(from.Name, completes)
}

// prepare does the work before the decision about a message of an agent, and returns why the message must be
// refused. before is called if there is any: what the agent has said earlier must have been decided.
func prepare(d *Dispatcher, from handlers.Actor, m wire.Message, before func()) *wire.Error {
	shop := d.options.Workshop
	task, completes, work := wanted(d, from, m)
	if !work {
		return nil
	}
	before()
	if !completes {
		return shop.Enter(from.Name, task)
	}
	report, refused := shop.Verify(from.Name, task, resultOf(m))
	if r, ok := m.(*wire.Request); ok && report != nil {
		if c, ok := r.Body.(*wire.CompleteTask); ok {
			c.Artifacts = append(slices.DeleteFunc(c.Artifacts, func(a hub.Artifact) bool { return a.Name == report.Name }), *report)
		}
	}
	return refused
}

// resultOf returns the result in a message that completes a task, or nil.
func resultOf(m wire.Message) []byte {
	switch m := m.(type) {
	case *wire.Request:
		if c, ok := m.Body.(*wire.CompleteTask); ok && c.Result != nil {
			return c.Result.Document
		}
	case *wire.AgentEvent:
		if r, ok := m.Body.(*delegation.Response); ok {
			return r.Result
		}
	}
	return nil
}
