package api

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// The hub is protocol A: servers that work on tasks. Its routes are the same operations with
// their own paths, documents and errors.

// hubTrees are the path prefixes of the hub.
var hubTrees = []string{"/api/v1/tasks", "/api/v1/server", "/api/v1/servers"}

// ofHub reports whether a path belongs to the hub, even if it does not exist.
func ofHub(path string) bool { return below(path, hubTrees) }

// hubRoutes returns all routes of the hub.
var hubRoutes = sync.OnceValue(func() []route { return declaredRoutes(ofHub, hubForms()) })

// hubForms returns the forms by operation.
func hubForms() map[string]form {
	return map[string]form{
		"submit-task":         {body: "hub.new-task", need: true, read: readTask, write: writeCreated, query: []parameter{byTrace}},
		"get-task":            {write: writeDetail},
		"query-tasks":         {read: readFilter, write: writeLines, answer: (*API).tasks, query: []parameter{byProject, byState, byLimit, byTask}},
		"complete-task":       {body: "hub.completion", need: true, read: onTask(wire.ReadHubComplete), write: writeDone},
		"fail-task":           {body: "hub.failure", read: onTask(wire.ReadHubFail)},
		"cancel-task":         {body: "hub.cancellation"},
		"update-task":         {body: "hub.changes", need: true, read: onTask(wire.ReadHubUpdate), write: writeDetail},
		"assign-task":         {body: "hub.assignee", need: true, read: onTask(wire.ReadHubAssign), write: writeAssigned},
		"auto-assign":         {write: writeMatched},
		"match-agents":        {write: writeMatches},
		"poll-tasks":          {write: writePolled},
		"check-tasks":         {read: readSession, write: writeChecked, query: []parameter{bySession}},
		"request-help":        {body: "hub.call-for-help", read: onTask(wire.ReadHubHelp), write: writeHelp},
		"submit-plan":         {body: "hub.plan"},
		"revise-plan":         {body: "hub.feedback"},
		"add-dependency":      {body: "hub.new-dependency", need: true, read: onTask(wire.ReadHubDependency), write: writeLinked},
		"remove-dependency":   {write: writeUnlinked},
		"add-note":            {body: "hub.new-note", write: writeNoted},
		"list-notes":          {write: writeNotes},
		"register-agent":      {body: "hub.registration", write: writeRegistered},
		"update-capabilities": {body: "hub.heartbeat", read: readHeartbeat, write: writeAlive},
		"query-servers":       {write: writeServers},
	}
}

// Readers of requests that the operation does not declare.
func readHeartbeat(a *params) any { return wire.ReadHubHeartbeat(&a.body, a.text) }
func readSession(a *params) any   { return &wire.CheckTasks{SessionID: a.word(bySession)} }
func readFilter(a *params) any {
	return &wire.QueryTasks{State: a.word(byState), ProjectID: a.word(byProject), Limit: a.limit(), Cursor: a.word(byTask)}
}

// Query parameters.
var (
	bySession = parameter{name: "session_id", words: "A session: the name of an agent, its server_id, or the id of its run; the caller when it is missing."}
	byTask    = parameter{name: "cursor", words: "Only tasks after this one. The header Link of the previous page has it."}
	byProject = parameter{name: "project_id", words: "Only tasks of this project."}
	byState   = parameter{name: "status", words: "Only tasks in this state.", of: hubStates()}
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

// Writers of hub answers.
var (
	writeCreated    = placed(answered(http.StatusCreated, "hub.task-brief", func(r *wire.TaskReply) any { return briefly(&r.Task) }))
	writeMoved      = placed(answered(http.StatusOK, "hub.task-brief", func(r *wire.TaskReply) any { return briefly(&r.Task) }))
	writeDetail     = placed(answered(http.StatusOK, "hub-task", func(r *wire.TaskReply) any { return r.Task.Hub() }))
	writeDone       = answered(http.StatusOK, "hub.ok", func(*wire.TaskReply) any { return okReply{Status: "ok"} })
	writeHelp       = placed(answered(http.StatusOK, "hub.help", helpReply))
	writeAssigned   = placed(answered(http.StatusOK, "hub.assigned", assignedReply))
	writeMatched    = answered(http.StatusOK, "hub.matched", as[wire.Assignment])
	writeMatches    = answered(http.StatusOK, "hub.matches", as[hub.Matches])
	writeLines      = &writing{status: http.StatusOK, schema: "hub.task-lines", headings: []heading{nextPage}}
	writePolled     = answered(http.StatusOK, "hub.tasks", func(l *wire.TaskList) any { return hubTasks(l) })
	writeChecked    = answered(http.StatusOK, "hub.checked", checkedReply)
	writeNoted      = answered(http.StatusCreated, "note", func(r *wire.NoteReply) any { return &r.Note })
	writeNotes      = answered(http.StatusOK, "hub.notes", func(l *wire.NoteList) any { return l.Notes })
	writeLinked     = answered(http.StatusCreated, "link", func(r *wire.LinkReply) any { return &r.Dependency })
	writeUnlinked   = answered(http.StatusOK, "link", func(r *wire.LinkReply) any { return &r.Dependency })
	writeServers    = answered(http.StatusOK, "hub.servers", as[hub.ServerList])
	writeRegistered = answered(http.StatusCreated, "hub.registered", as[hub.Registered])
	writeAlive      = answered(http.StatusOK, "hub.alive", func(s *hub.Server) any { return &aliveReply{Status: "ok", Server: s} })
)

type okReply struct {
	Status string `json:"status" schema:"const=ok"`
}

type aliveReply struct {
	Status string      `json:"status" schema:"const=ok"`
	Server *hub.Server `json:"server"`
}

// taskBrief is the short answer to a change of a task.
type taskBrief struct {
	// The id of the task.
	ID string `json:"id" schema:"minlen=1"`
	// The title of the task.
	Title  string `json:"title"`
	Status string `json:"status" schema:"ref=hub.state"`
	// The kind of task.
	Type string `json:"type"`
	// The priority as it was given, or the word for its number.
	Priority  string `json:"priority"`
	CreatedAt string `json:"created_at" schema:"ref=hub.time"`
}

func briefly(t *wire.Task) taskBrief {
	return taskBrief{
		ID: t.ID, Title: t.Name, Status: t.State.Hub(), Type: t.Type, Priority: hub.PriorityWord(t.Priority), CreatedAt: t.CreatedAt,
	}
}

// helpShown is a task that waits, because its agent has asked a person.
type helpShown struct {
	taskBrief
	// The id of the question.
	Intervention string `json:"intervention_id" schema:"minlen=1"`
}

// assignedShown is a task that is assigned to an agent.
type assignedShown struct {
	taskBrief
	// The server_id of the agent.
	ServerID string `json:"assigned_server_id" schema:"minlen=1"`
	// The name of the agent.
	ServerName string `json:"assigned_server_name" schema:"minlen=1"`
}

// helpReply returns the answer to a call for help, with the id of the question.
func helpReply(r *wire.TaskReply) any {
	question := ""
	if d := r.Task.Details; d != nil && d.Help != nil {
		question = d.Help.QuestionID
	}
	return &helpShown{taskBrief: briefly(&r.Task), Intervention: question}
}

// assignedReply returns the answer to an assignment, with the agent.
func assignedReply(r *wire.TaskReply) any {
	return &assignedShown{taskBrief: briefly(&r.Task), ServerID: hub.ServerID(r.Task.AssignedTo), ServerName: r.Task.AssignedTo}
}

// taskLine is a task in a list, without large members, which are not loaded.
type taskLine struct {
	taskBrief
	// The repository that the task is about.
	TargetRepo *string `json:"target_repo" schema:"null"`
	// The project that the task belongs to.
	ProjectID *string `json:"project_id" schema:"null"`
	// The session that the task came from.
	SessionID *string `json:"session_id" schema:"null"`
	// The task that the submitter was working on.
	ParentTaskID *string `json:"parent_task_id" schema:"null"`
	// The dependencies of the task.
	Dependencies []wire.Link `json:"dependencies"`
	// The progress, from 0 to 1; 0 when it is missing.
	Progress float64 `json:"progress,omitzero" schema:"min=0,max=1"`
	// Why the task failed.
	Error *string `json:"error" schema:"null"`
	// The submitter, such as agent:planner or operator.
	CreatedBy string `json:"created_by"`
	// The server_id of the agent that has the task, or had it when it ended; null without an agent.
	AssignedServerID *string `json:"assigned_server_id" schema:"null"`
	// The name of that agent.
	AssignedServerName *string `json:"assigned_server_name" schema:"null"`
	AssignedAt         *string `json:"assigned_at" schema:"ref=hub.time-or-null"`
	StartedAt          *string `json:"started_at" schema:"ref=hub.time-or-null"`
	CompletedAt        *string `json:"completed_at" schema:"ref=hub.time-or-null"`
}

// taskPage is a page of a list of tasks.
type taskPage struct {
	Tasks []taskLine `json:"tasks"`
	// The number of tasks after this page, counted up to 10000; missing after the last page.
	More int64 `json:"more,omitzero" schema:"min=1"`
	// The last task of the page, if more follow. Use it as the cursor of the next request.
	Cursor string `json:"cursor,omitzero"`
}

func taskLines(l *wire.TaskList) *taskPage {
	found := make([]taskLine, 0, len(l.Tasks))
	for i := range l.Tasks {
		h := l.Tasks[i].Hub()
		found = append(found, taskLine{
			taskBrief: briefly(&l.Tasks[i]), TargetRepo: h.TargetRepo, ProjectID: h.ProjectID, SessionID: h.SessionID,
			ParentTaskID: h.ParentTaskID, Dependencies: h.Dependencies, Progress: h.Progress, Error: h.Error,
			CreatedBy: h.CreatedBy, AssignedServerID: h.AssignedServerID, AssignedServerName: h.AssignedServerName,
			AssignedAt: h.AssignedAt, StartedAt: h.StartedAt, CompletedAt: h.CompletedAt,
		})
	}
	return &taskPage{Tasks: found, More: l.More, Cursor: l.Cursor}
}

func hubTasks(l *wire.TaskList) []*wire.HubTask {
	found := make([]*wire.HubTask, 0, len(l.Tasks))
	for i := range l.Tasks {
		found = append(found, l.Tasks[i].Hub())
	}
	return found
}

func checkedReply(l *wire.TaskList) any {
	return map[string]any{"count": len(l.Tasks), "tasks": hubTasks(l)}
}

// codeMethod is the code for an existing path without the requested method. Only the hub, the
// bus and MCP distinguish it.
const codeMethod wire.Code = "method"

// hubRefusal is an error document of the hub and the bus. Older clients read only detail.
type hubRefusal struct {
	Error hubError `json:"error"`
	// The message again, for older programs.
	Detail string `json:"detail" schema:"minlen=1"`
}

type hubError struct {
	// The kind of refusal, for programs.
	Code wire.Code `json:"code" schema:"enum=api.codes"`
	// The error, for people.
	Message string `json:"message" schema:"minlen=1"`
	// Details, which depend on the error.
	Details map[string]any `json:"details"`
	// Whether the same request may succeed later.
	Recoverable bool `json:"recoverable"`
	// A suggestion for the next step.
	Hint string `json:"hint,omitzero"`
}

func toHub(e *wire.Error) *hubRefusal {
	return &hubRefusal{Detail: e.Message, Error: hubError{
		Code: e.Code, Message: e.Message, Details: hubDetails(e.Details), Hint: hubHints.Replace(e.Hint), Recoverable: recoverable(e),
	}}
}

// hubHints replaces operations in hints by routes of the hub.
var hubHints = strings.NewReplacer(
	"with start-task", "with POST /api/v1/servers/tasks/{id}/start",
	"with fail-task", "with POST /api/v1/servers/tasks/{id}/fail",
	"with cancel-task", "with DELETE /api/v1/server/tasks/{id}",
	"with get-task", "with GET /api/v1/server/tasks/{id}",
)

// hubDetails converts the keys and states in details to the forms of the hub.
func hubDetails(details map[string]any) map[string]any {
	if details == nil {
		return nil
	}
	spelled := make(map[string]any, len(details))
	for key, value := range details {
		spelled[object.SnakeCase(key)] = value
	}
	if state, ok := details["state"].(string); ok && details["status"] != nil {
		spelled["status"] = wire.TaskState(state).Hub()
	}
	return spelled
}

func recoverable(e *wire.Error) bool {
	switch e.Code {
	case wire.CodeLimited, wire.CodeTimeout, wire.CodeInternal:
		return true
	case wire.CodeConflict:
		return e.Details["reason"] == "blocked"
	}
	return false
}

// hubStatus returns the HTTP status of a code. It distinguishes malformed JSON from an invalid
// document.
func hubStatus(code wire.Code) int {
	if code == wire.CodeInvalid {
		return http.StatusUnprocessableEntity
	}
	return status(code)
}

// unreadable returns the error for an unreadable body: the reader's own, or a general one if
// the body is not JSON.
func unreadable(text []byte, depth int, why *wire.Error) *wire.Error {
	if utf8.Valid(text) && (json.Valid(text) || deeper(text, depth)) {
		return why
	}
	return &wire.Error{Code: wire.CodeMalformed, Message: "the request is not JSON", Details: map[string]any{"pointer": ""}}
}

// deeper reports whether a text nests deeper than depth. It stops there, so that a text of
// brackets costs little.
func deeper(text []byte, depth int) bool {
	level, quoted := 0, false
	for i := 0; i < len(text) && level <= depth; i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
		case c == '}' || c == ']':
			level--
		}
	}
	return level > depth
}

// aimed changes the pointer of a refusal from names of the operation to names of the route.
func (a *params) aimed(err error) error {
	refusal, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return err
	}
	pointer, ok := refusal.Details["pointer"].(string)
	if !ok {
		return err
	}
	theirs := *refusal
	theirs.Details = maps.Clone(refusal.Details)
	theirs.Details["pointer"] = a.pointer(pointer)
	return &theirs
}

// hubPointers maps pointers of operations to different names in the hub.
var hubPointers = map[string]string{
	"/dependsOnTaskId": "/depends_on_task_id",
	"/contractKey":     "/contract_key",
}

func (a *params) pointer(theirs string) string {
	theirs = strings.TrimPrefix(theirs, "/payload")
	if ours := hubPointers[theirs]; ours != "" {
		return ours
	}
	if index, ok := strings.CutPrefix(theirs, "/dependencies/"); ok {
		if at, err := strconv.Atoi(index); err == nil {
			return a.dependencyAt(at)
		}
	}
	return theirs
}

// dependencyAt returns the pointer of a dependency of a new task. A task has two lists of
// dependencies, which are merged for the operation.
func (a *params) dependencyAt(index int) string {
	typed := len(hub.DependenciesIn(&a.body, "dependencies"))
	if task, ok := a.said.(*wire.SubmitTask); ok && index >= typed && index < len(task.Dependencies) {
		bare := a.body.Texts("dependency_ids")
		return "/dependency_ids/" + strconv.Itoa(slices.Index(bare, task.Dependencies[index].On))
	}
	return "/dependencies/" + strconv.Itoa(index)
}
