package api

import (
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Readers of hub requests.
var (
	readChanges    = bodyOf("hub.changes", true, wire.ReadHubUpdate)
	readCompletion = bodyOf("hub.completion", true, wire.ReadHubComplete)
	readFailure    = bodyOf("hub.failure", false, wire.ReadHubFail)
	readDismissal  = bodyOf("hub.cancellation", false, wire.ReadHubCancel)
	readHelp       = bodyOf("hub.call-for-help", false, wire.ReadHubHelp)
	readNote       = bodyOf("hub.new-note", true, wire.ReadHubNote)
	readPlan       = bodyOf("hub.plan", true, wire.ReadHubPlan)
	readFeedback   = bodyOf("hub.feedback", true, wire.ReadHubRevise)
	readAssignee   = bodyOf("hub.assignee", true, wire.ReadHubAssign)
	readLink       = bodyOf("hub.new-dependency", true, wire.ReadHubDependency)
	readNewcomer   = bodyOf("hub.registration", true, func(o *object.Reader, _ string) *wire.Register { return wire.ReadPayload[wire.Register](o) })
	readHeartbeat  = &reading{schema: "hub.heartbeat", read: func(a *params) any { return wire.ReadHubHeartbeat(&a.body, a.text) }}
)

// Readers of requests that only have a path or a query. A body is ignored.
var (
	readTaskID  = &reading{read: func(a *params) any { return &wire.TaskID{TaskID: a.task} }}
	readNothing = &reading{read: func(*params) any { return new(wire.Nothing) }}
	readSession = &reading{read: func(a *params) any { return &wire.CheckTasks{SessionID: a.word(bySession)} }}
	readLinkID  = &reading{read: func(a *params) any {
		return &wire.RemoveDependency{TaskID: a.task, DependencyID: a.dependency}
	}}
	readFilter = &reading{read: func(a *params) any {
		return &wire.QueryTasks{State: a.word(byState), ProjectID: a.word(byProject), Limit: a.limit(), Cursor: a.word(byTask)}
	}}
)

// Query parameters.
var (
	bySession = parameter{name: "session_id", words: "A session: the name of an agent, its server id or the id of its run; the caller itself when it is missing."}
	byTask    = parameter{name: "cursor", words: "Only tasks after this one: see the header Link of the page before."}
	byProject = parameter{name: "project_id", words: "Only tasks of this project."}
	byState   = parameter{name: "status", words: "Only tasks that stand there.", of: hubStates()}
)

// hubStates returns the task states that the hub distinguishes.
func hubStates() (words []string) {
	for _, state := range wire.TaskStates {
		if word := state.Hub(); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}
