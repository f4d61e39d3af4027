package api

// Some call all this a hub, with servers that work on its tasks. What they ask
// for are the same operations, by paths of their own, in documents of their own
// and with refusals of their own.

// hubTrees are the paths below which they are.
var hubTrees = []string{"/api/v1/tasks", "/api/v1/server", "/api/v1/servers"}

// ofHub reports whether a path belongs to the hub, whether or not there is
// something.
func ofHub(path string) bool { return below(path, hubTrees) }

// hubRoutes are all routes of the hub. People see to tasks below /tasks, agents
// to their own below /servers, and to those that they look after below /server.
var hubRoutes = []route{
	{pattern: "POST /api/v1/tasks", access: Operators, operation: "submit-task", read: readTask, write: writeCreated,
		query: []parameter{byTrace}, summary: "Create a task"},
	{pattern: "GET /api/v1/tasks/{id}", access: Operators, operation: "get-task", read: readTaskID, write: writeDetail,
		summary: "Show a task in full"},
	{pattern: "PUT /api/v1/tasks/{id}", access: Operators, operation: "update-task", read: readChanges, write: writeDetail,
		summary: "Change a task; what is left out stays as it is"},
	{pattern: "POST /api/v1/tasks/{id}/notes", access: Operators, operation: "add-note", read: readNote, write: writeNoted,
		summary: "Add a note to a task"},
	{pattern: "GET /api/v1/tasks/{id}/notes", access: Operators, operation: "list-notes", read: readTaskID, write: writeNotes,
		summary: "List the notes of a task, oldest first"},
	{pattern: "POST /api/v1/tasks/{id}/approve-plan", access: Operators, operation: "approve-plan", read: readTaskID, write: writeMoved,
		summary: "Let an agent go about its task as it planned"},
	{pattern: "POST /api/v1/tasks/{id}/revise-plan", access: Operators, operation: "revise-plan", read: readFeedback, write: writeMoved,
		summary: "Reject the plan of a task with feedback"},
	{pattern: "POST /api/v1/tasks/{id}/auto-assign", access: Operators, operation: "auto-assign", read: readTaskID, write: writeMatched,
		summary: "Assign a task to the agent that fits its requirements best"},
	{pattern: "GET /api/v1/tasks/{id}/matching-agents", access: Operators, operation: "match-agents", read: readTaskID, write: writeMatches,
		summary: "How each agent fits the requirements of a task, and why; nothing changes"},

	{pattern: "GET /api/v1/servers/tasks/poll", access: Agents, operation: "poll-tasks", read: readNothing, write: writePolled,
		summary: "What you have been given and have not begun"},
	{pattern: "POST /api/v1/servers/tasks/{id}/start", access: Agents, operation: "start-task", read: readTaskID, write: writeMoved,
		summary: "Start a task of yours; it must not wait for others"},
	{pattern: "POST /api/v1/servers/tasks/{id}/complete", access: Agents, operation: "complete-task", read: readCompletion, write: writeDone,
		summary: "Say that a task of yours is done, with its result"},
	{pattern: "POST /api/v1/servers/tasks/{id}/fail", access: Agents, operation: "fail-task", read: readFailure, write: writeMoved,
		summary: "Say that a task of yours cannot be done, and why"},
	{pattern: "POST /api/v1/servers/tasks/{id}/help", access: Agents, operation: "request-help", read: readHelp, write: writeHelp,
		summary: "Say that a task of yours needs a person, with a question"},
	{pattern: "POST /api/v1/servers/register", access: Public, operation: "register-agent", read: readNewcomer, write: writeRegistered,
		summary: "Become one of the agents; the registration token in the body is spent"},
	{pattern: "POST /api/v1/servers/heartbeat", access: Agents, operation: "update-capabilities", read: readHeartbeat, write: writeAlive,
		summary: "Say that you are there, and what you can do now"},

	{pattern: "POST /api/v1/server/tasks", access: Agents, wide: true, operation: "submit-task", read: readTask, write: writeCreated,
		query: []parameter{byTrace}, summary: "Create a task; it is a part of the one that you work on"},
	{pattern: "GET /api/v1/server/tasks", access: Agents, wide: true, operation: "query-tasks", read: readFilter, write: writeLines, answer: (*API).tasks,
		query: []parameter{byProject, byState, byLimit, byTask}, summary: "List tasks, oldest first, without what can be large"},
	{pattern: "GET /api/v1/server/tasks/check", access: Agents, wide: true, operation: "check-tasks", read: readSession, write: writeChecked,
		query: []parameter{bySession}, summary: "What a session has been given and has not begun"},
	{pattern: "GET /api/v1/server/tasks/{id}", access: Agents, wide: true, operation: "get-task", read: readTaskID, write: writeDetail,
		summary: "Show a task in full"},
	{pattern: "PUT /api/v1/server/tasks/{id}", access: Agents, wide: true, operation: "update-task", read: readChanges, write: writeDetail,
		summary: "Change a task; what is left out stays as it is"},
	{pattern: "DELETE /api/v1/server/tasks/{id}", access: Agents, wide: true, operation: "cancel-task", read: readDismissal, write: writeMoved,
		summary: "Cancel a task; it can still be read"},
	{pattern: "POST /api/v1/server/tasks/{id}/start", access: Agents, wide: true, operation: "start-task", read: readTaskID, write: writeMoved,
		summary: "Start a task; it must not wait for others"},
	{pattern: "POST /api/v1/server/tasks/{id}/complete", access: Agents, wide: true, operation: "complete-task", read: readCompletion, write: writeDone,
		summary: "Complete a task with its result"},
	{pattern: "POST /api/v1/server/tasks/{id}/fail", access: Agents, wide: true, operation: "fail-task", read: readFailure, write: writeMoved,
		summary: "Fail a task with the reason"},
	{pattern: "POST /api/v1/server/tasks/{id}/help", access: Agents, wide: true, operation: "request-help", read: readHelp, write: writeHelp,
		summary: "Ask a person for help with a task"},
	{pattern: "POST /api/v1/server/tasks/{id}/assign", access: Agents, wide: true, operation: "assign-task", read: readAssignee, write: writeAssigned,
		summary: "Give a task to a session; perhaps it is to submit a plan first"},
	{pattern: "POST /api/v1/server/tasks/{id}/dependencies", access: Agents, wide: true, operation: "add-dependency", read: readLink, write: writeLinked,
		summary: "Add a dependency to a task"},
	{pattern: "DELETE /api/v1/server/tasks/{id}/dependencies/{dep_id}", access: Agents, wide: true, operation: "remove-dependency",
		read: readLinkID, write: writeUnlinked, summary: "Take a dependency away, by its own id or that of the task depended on"},
	{pattern: "POST /api/v1/server/tasks/{id}/notes", access: Agents, wide: true, operation: "add-note", read: readNote, write: writeNoted,
		summary: "Add a note to a task"},
	{pattern: "POST /api/v1/server/tasks/{id}/plan", access: Agents, wide: true, operation: "submit-plan", read: readPlan, write: writeMoved,
		summary: "Submit the plan that a task requires"},
	{pattern: "GET /api/v1/server/servers", access: Agents, wide: true, operation: "query-servers", read: readNothing, write: writeServers,
		summary: "List all servers with their capabilities, and whether they are online"},
}
