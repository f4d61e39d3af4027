package api

// The hub is protocol A: servers that work on tasks. Its routes are the same operations with
// their own paths, documents and errors.

// hubTrees are the path prefixes of the hub.
var hubTrees = []string{"/api/v1/tasks", "/api/v1/server", "/api/v1/servers"}

// ofHub reports whether a path belongs to the hub, even if it does not exist.
func ofHub(path string) bool { return below(path, hubTrees) }

// hubRoutes lists all routes of the hub. Operators use /tasks, agents use /servers for their
// own tasks and /server for tasks that they manage.
var hubRoutes = []route{
	{pattern: "POST /api/v1/tasks", access: Operators, operation: "submit-task", read: readTask, write: writeCreated,
		query: []parameter{byTrace}},
	{pattern: "GET /api/v1/tasks/{id}", access: Operators, operation: "get-task", read: readTaskID, write: writeDetail},
	{pattern: "PUT /api/v1/tasks/{id}", access: Operators, operation: "update-task", read: readChanges, write: writeDetail},
	{pattern: "POST /api/v1/tasks/{id}/notes", access: Operators, operation: "add-note", read: readNote, write: writeNoted},
	{pattern: "GET /api/v1/tasks/{id}/notes", access: Operators, operation: "list-notes", read: readTaskID, write: writeNotes},
	{pattern: "POST /api/v1/tasks/{id}/approve-plan", access: Operators, operation: "approve-plan", read: readTaskID, write: writeMoved},
	{pattern: "POST /api/v1/tasks/{id}/revise-plan", access: Operators, operation: "revise-plan", read: readFeedback, write: writeMoved},
	{pattern: "POST /api/v1/tasks/{id}/auto-assign", access: Operators, operation: "auto-assign", read: readTaskID, write: writeMatched},
	{pattern: "GET /api/v1/tasks/{id}/matching-agents", access: Operators, operation: "match-agents", read: readTaskID, write: writeMatches},

	{pattern: "GET /api/v1/servers/tasks/poll", access: Agents, operation: "poll-tasks", read: readNothing, write: writePolled},
	{pattern: "POST /api/v1/servers/tasks/{id}/start", access: Agents, operation: "start-task", read: readTaskID, write: writeMoved},
	{pattern: "POST /api/v1/servers/tasks/{id}/complete", access: Agents, operation: "complete-task", read: readCompletion, write: writeDone},
	{pattern: "POST /api/v1/servers/tasks/{id}/fail", access: Agents, operation: "fail-task", read: readFailure, write: writeMoved},
	{pattern: "POST /api/v1/servers/tasks/{id}/help", access: Agents, operation: "request-help", read: readHelp, write: writeHelp},
	{pattern: "POST /api/v1/servers/register", access: Public, operation: "register-agent", read: readNewcomer, write: writeRegistered},
	{pattern: "POST /api/v1/servers/heartbeat", access: Agents, operation: "update-capabilities", read: readHeartbeat, write: writeAlive},

	{pattern: "POST /api/v1/server/tasks", access: Agents, wide: true, operation: "submit-task", read: readTask, write: writeCreated,
		query: []parameter{byTrace}},
	{pattern: "GET /api/v1/server/tasks", access: Agents, wide: true, operation: "query-tasks", read: readFilter, write: writeLines, answer: (*API).tasks,
		query: []parameter{byProject, byState, byLimit, byTask}},
	{pattern: "GET /api/v1/server/tasks/check", access: Agents, wide: true, operation: "check-tasks", read: readSession, write: writeChecked,
		query: []parameter{bySession}},
	{pattern: "GET /api/v1/server/tasks/{id}", access: Agents, wide: true, operation: "get-task", read: readTaskID, write: writeDetail},
	{pattern: "PUT /api/v1/server/tasks/{id}", access: Agents, wide: true, operation: "update-task", read: readChanges, write: writeDetail},
	{pattern: "DELETE /api/v1/server/tasks/{id}", access: Agents, wide: true, operation: "cancel-task", read: readDismissal, write: writeMoved},
	{pattern: "POST /api/v1/server/tasks/{id}/start", access: Agents, wide: true, operation: "start-task", read: readTaskID, write: writeMoved},
	{pattern: "POST /api/v1/server/tasks/{id}/complete", access: Agents, wide: true, operation: "complete-task", read: readCompletion, write: writeDone},
	{pattern: "POST /api/v1/server/tasks/{id}/fail", access: Agents, wide: true, operation: "fail-task", read: readFailure, write: writeMoved},
	{pattern: "POST /api/v1/server/tasks/{id}/help", access: Agents, wide: true, operation: "request-help", read: readHelp, write: writeHelp},
	{pattern: "POST /api/v1/server/tasks/{id}/assign", access: Agents, wide: true, operation: "assign-task", read: readAssignee, write: writeAssigned},
	{pattern: "POST /api/v1/server/tasks/{id}/dependencies", access: Agents, wide: true, operation: "add-dependency", read: readLink, write: writeLinked},
	{pattern: "DELETE /api/v1/server/tasks/{id}/dependencies/{dep_id}", access: Agents, wide: true, operation: "remove-dependency",
		read: readLinkID, write: writeUnlinked},
	{pattern: "POST /api/v1/server/tasks/{id}/notes", access: Agents, wide: true, operation: "add-note", read: readNote, write: writeNoted},
	{pattern: "POST /api/v1/server/tasks/{id}/plan", access: Agents, wide: true, operation: "submit-plan", read: readPlan, write: writeMoved},
	{pattern: "GET /api/v1/server/servers", access: Agents, wide: true, operation: "query-servers", read: readNothing, write: writeServers},
}
