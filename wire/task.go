package wire

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"orchestrator/wire/delegation"
	"orchestrator/wire/hub"
	"orchestrator/wire/object"
)

// TaskState is the state of a task.
type TaskState string

// The states of a task. The last three are final.
const (
	TaskPending    TaskState = "pending"
	TaskAssigned   TaskState = "assigned"
	TaskPlanning   TaskState = "planning"
	TaskPlanReview TaskState = "plan_review"
	TaskRunning    TaskState = "running"
	TaskNeedsHuman TaskState = "needs_human"
	TaskInReview   TaskState = "in_review"
	TaskVerifying  TaskState = "verifying" // its agent has completed it, and its verify commands run
	TaskDone       TaskState = "done"
	TaskFailed     TaskState = "failed"
	TaskCancelled  TaskState = "cancelled"
)

// TaskStates lists all states. A task may pass through them in this order.
var TaskStates = []TaskState{
	TaskPending, TaskAssigned, TaskPlanning, TaskPlanReview, TaskRunning,
	TaskNeedsHuman, TaskInReview, TaskVerifying, TaskDone, TaskFailed, TaskCancelled,
}

// Final reports whether the state is final.
func (s TaskState) Final() bool { return s == TaskDone || s == TaskFailed || s == TaskCancelled }

// Status returns the state as agents see it: one of TaskStatuses.
func (s TaskState) Status() string {
	switch s {
	case TaskPending, TaskAssigned:
		return "queued"
	case TaskDone:
		return "completed"
	case TaskFailed, TaskCancelled:
		return string(s)
	}
	return "running"
}

// TaskStatuses lists the results of Status. query-tasks can filter by them.
var TaskStatuses = []string{"queued", "running", "completed", "failed", "cancelled"}

// A Task is a task as all callers see it. A list leaves out the members that can be large
// (description, payload, result); get-task has them.
type Task struct {
	// The id of the task.
	ID string `json:"id"`
	// The name of the task.
	Name string `json:"name"`
	// The kind of task, in words of the submitter.
	Type string `json:"type"`
	// A summary of the state.
	Status string `json:"status" schema:"enum=wire.TaskStatuses"`
	// The state of the task. The last three are final.
	State TaskState `json:"state"`
	// The work to do.
	Description string `json:"description,omitzero"`
	// The payload as it was submitted, digit for digit.
	Payload Raw `json:"payload,omitzero" schema:"type=object"`
	// The role that the agent must have; null for any role.
	RequiredRole string `json:"requiredRole" schema:"null"`
	// The capabilities that the agent must have.
	RequiredCapabilities []string `json:"requiredCapabilities"`
	// Ids of tasks that must be done first.
	Dependencies []string `json:"dependencies"`
	// The dependencies that are not done yet.
	WaitsFor []string `json:"waitsFor,omitzero"`
	Links    []Link   `json:"typedDependencies,omitzero"` // All dependencies of the task, if one of them does not only block.
	*Details
	// The delivered inputs, by contract key, in the answers to get-task and poll-tasks. An input is
	// null if it has no data.
	ResolvedInputs Inputs `json:"resolved_inputs,omitzero" schema:"type=object"`
	// The priority as it was given: a number or a word. 1 is the most urgent.
	Priority Raw `json:"priority,omitzero" schema:"type=number|string"`
	// The submitter, such as agent:planner.
	SubmittedBy string `json:"submittedBy"`
	// The agent that has the task, or had it when it ended; null without an agent.
	AssignedTo string `json:"assignedTo" schema:"null"`
	// The progress, from 0 to 1; 0 when it is missing.
	Progress float64 `json:"progress,omitzero" schema:"min=0,max=1"`
	// The message of the last progress report.
	Message string `json:"message,omitzero"`
	// How often the task was assigned; 0 when it is missing.
	Attempts int `json:"attempts,omitzero" schema:"min=1"`
	// The result; null before the task is done, and in lists.
	Result Raw `json:"result,omitzero" schema:"required,null"`
	// Why the task failed.
	Error string `json:"error,omitzero"`
	// Why the task was cancelled.
	Reason string `json:"reason,omitzero"`
	// When the task was submitted.
	CreatedAt string `json:"createdAt" schema:"stamp"`
	// When the task was last assigned.
	AssignedAt string `json:"assignedAt,omitzero" schema:"stamp"`
	// When the task was last started.
	StartedAt string `json:"startedAt,omitzero" schema:"stamp"`
	// When the task ended.
	EndedAt string `json:"endedAt,omitzero" schema:"stamp"`
}

// MarshalJSONTo implements the encoder's interface.
func (t *Task) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteValue(t.Append(nil)) }

// Append appends a task as JSON. It is written by hand because tasks are the most frequent
// answer.
func (t *Task) Append(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = object.AppendText(b, t.ID)
	b = object.AppendMember(b, "name", t.Name)
	b = object.AppendMember(b, "type", t.Type)
	b = object.AppendMember(b, "status", t.Status)
	b = object.AppendMember(b, "state", string(t.State))
	b = object.AppendOptional(b, "description", t.Description)
	b = object.AppendRaw(b, "payload", t.Payload)
	b = object.AppendOrNull(b, "requiredRole", t.RequiredRole)
	b = object.AppendTexts(b, "requiredCapabilities", t.RequiredCapabilities)
	b = object.AppendTexts(b, "dependencies", t.Dependencies)
	if len(t.WaitsFor) > 0 {
		b = object.AppendTexts(b, "waitsFor", t.WaitsFor)
	}
	if len(t.Links) > 0 {
		b = appendLinks(object.AppendKey(b, "typedDependencies"), t.Links)
	}
	b = t.Details.append(b)
	if len(t.ResolvedInputs) > 0 {
		b = t.ResolvedInputs.append(object.AppendKey(b, "resolved_inputs"))
	}
	b = object.AppendRaw(b, "priority", t.Priority)
	b = object.AppendMember(b, "submittedBy", t.SubmittedBy)
	b = object.AppendOrNull(b, "assignedTo", t.AssignedTo)
	if t.Progress != 0 {
		b = append(b, `,"progress":`...)
		b = strconv.AppendFloat(b, t.Progress, 'g', -1, 64)
	}
	b = object.AppendOptional(b, "message", t.Message)
	if t.Attempts != 0 {
		b = append(b, `,"attempts":`...)
		b = strconv.AppendInt(b, int64(t.Attempts), 10)
	}
	if t.Result != nil {
		b = object.AppendRaw(b, "result", t.Result)
	} else {
		b = append(b, `,"result":null`...)
	}
	b = object.AppendOptional(b, "error", t.Error)
	b = object.AppendOptional(b, "reason", t.Reason)
	b = object.AppendMember(b, "createdAt", t.CreatedAt)
	b = object.AppendOptional(b, "assignedAt", t.AssignedAt)
	b = object.AppendOptional(b, "startedAt", t.StartedAt)
	b = object.AppendOptional(b, "endedAt", t.EndedAt)
	return append(b, '}')
}

// The roles of agents.
const (
	RoleWorker   = "worker"
	RolePlanner  = "planner"
	roleReviewer = "reviewer"
)

// Roles lists the roles that every team has. The configuration may add more.
var Roles = []string{RoleWorker, RolePlanner, roleReviewer}

// SubmitTask is the payload of submit-task.
type SubmitTask struct {
	// The kind of task, in words of the submitter.
	Type string `json:"type" schema:"nonblank"`
	// The name of the task.
	Name string `json:"name" schema:"nonblank"`
	// The work to do.
	Description string `json:"description,omitzero"`
	// Data for the agent. It is passed on unchanged, digit for digit.
	Payload Raw `json:"payload,omitzero" schema:"type=object"`
	// The role that the agent must have: worker, planner, reviewer, or a role from the configuration.
	// Any other is refused.
	RequiredRole string `json:"requiredRole,omitzero"`
	// The capabilities that the agent must have.
	RequiredCapabilities []string `json:"requiredCapabilities,omitzero" schema:"each:nonblank"`
	// The dependencies of the task: ids of tasks that must be done first, or objects with more
	// members.
	Dependencies []hub.Dependency `json:"dependencies,omitzero"`
	// A number or a word. 1 is the most urgent; the default is 3, and all above 3 are equal. The words
	// are critical, high, normal and low; any other counts as normal.
	Priority Raw `json:"priority,omitzero" schema:"type=number|string,priority"`
	// The agent that gets the task: its name, its server_id, or the id of its run. It need not have
	// the role and the capabilities.
	AssignTo string `json:"assignTo,omitzero"`
	// With assignTo, whether that agent must submit a plan first.
	RequirePlan bool `json:"requirePlan,omitzero"`
	// The trace that the task belongs to.
	Observability *delegation.Trace `json:"observability,omitzero"`
	// The repository that the task is about.
	TargetRepo string `json:"targetRepo,omitzero"`
	// The conditions under which the task counts as done.
	AcceptanceCriteria []string `json:"acceptanceCriteria,omitzero" schema:"each:nonblank"`
	// The project that the task belongs to.
	ProjectID string `json:"projectId,omitzero"`
	// The session that the task came from.
	SessionID string `json:"sessionId,omitzero"`
	// Commands that must succeed before the task is done, each a list of words. They run as its agent,
	// so only a person may name them.
	Verify [][]string `json:"verify,omitzero" schema:"maxitems=20,each:minitems=1,each:maxitems=1000"`
	// The specification in a form for programs: a task-spec document.
	Spec *hub.Spec `json:"structured_spec,omitzero" schema:"type=object,ref=task-spec"`
	// The demands of the task on an agent: a requirements document.
	Requirements *hub.Requirements `json:"requirements,omitzero" schema:"type=object,ref=requirements"`

	Patient bool           `json:"-"` // its dependents wait if it fails, unless the configuration differs
	Block   *hub.TaskBlock `json:"-"` // the block of the configuration that the task comes from, or nil
}

// readCommands reads a list of commands.
func readCommands(o *object.Reader, key string) (all [][]string) {
	items, _ := o.Items(key)
	if len(items) > 20 {
		o.Refuse(key, "must not have more than 20 commands")
		return nil
	}
	for i, item := range items {
		var argv []string
		if err := json.Unmarshal(item, &argv); err != nil || len(argv) == 0 || len(argv) > 1000 || argv[0] == "" || strings.Contains(strings.Join(argv, ""), "\x00") {
			o.RefuseItem(key, i, "must be a command: a list of words, such as [\"go\", \"test\"]")
			return nil
		}
		all = append(all, argv)
	}
	return all
}

// QueryTasks is the payload of query-tasks.
type QueryTasks struct {
	// Only tasks with this status or in this state. queued is pending or assigned, completed is done,
	// and running is every state in between.
	Status string `json:"status,omitzero" schema:"enum=wire.statusWords"`
	// Only tasks that require this role.
	RequiredRole string `json:"requiredRole,omitzero"`
	// The maximum number of tasks; 100 when it is missing. The response has the number of further
	// tasks.
	Limit int64 `json:"limit,omitzero" schema:"whole=1"`
	// Only tasks that were created after this one: the cursor of the previous response.
	Cursor string `json:"cursor,omitzero"`
	// Only tasks of this project.
	ProjectID string `json:"projectId,omitzero"`
	// Only tasks of this conversation: see task-request.
	ConversationID string `json:"conversationId,omitzero"`
	Uncounted      bool   `json:"-"` // TaskList.More is 1 for any number
	State          string `json:"-"` // as the hub calls it
}

// statusWords lists the words for filtering tasks.
var statusWords = func() []string {
	words := append([]string(nil), TaskStatuses...)
	for _, state := range TaskStates {
		switch state {
		case TaskRunning, TaskFailed, TaskCancelled: // a status of the same name
		default:
			words = append(words, string(state))
		}
	}
	return words
}()

// TaskID is the payload of every operation that needs only a task.
type TaskID struct {
	// The id of the task.
	TaskID string `json:"taskId" schema:"nonblank"`
}

// CompleteTask is the payload of complete-task.
type CompleteTask struct {
	// The id of the task.
	TaskID string `json:"taskId" schema:"nonblank"`
	// The result for the submitter: any value; {"success":true} when it is missing. An object with a
	// $schema must be a task-result document: its contracts go to the tasks that need them.
	Result *hub.Result `json:"result,omitzero" schema:"any"`
	// Other products: each has a name, and one of content, path and ref.
	Artifacts []hub.Artifact `json:"artifacts,omitzero" schema:"maxitems=100"`
}

// readArtifacts reads the artifacts that an agent hands in with a result.
func readArtifacts(o *object.Reader) []hub.Artifact {
	all := hub.ArtifactsIn(o, "artifacts")
	for i := range all {
		if delegation.IsArtifactRef(all[i].Ref) {
			o.RefuseItem("artifacts", i, "has a ref to stored content, which only the orchestrator may set")
		}
	}
	return all
}

// FailTask is the payload of fail-task.
type FailTask struct {
	// The id of the task.
	TaskID string `json:"taskId" schema:"nonblank"`
	// The reason.
	Error string `json:"error" schema:"nonblank"`
	// The kind of failure: the model refused; its context is too long; a limit of its vendor; the
	// budget is used up; its program is not logged in; it made no progress; a tool or the program
	// failed.
	Class string `json:"class,omitzero" schema:"enum=wire.FailureClasses"`
	// Whether another attempt may succeed. The task then waits for an agent again, up to max_attempts.
	// A task that was assigned by hand, is part of a session, or was handed on fails anyway.
	Retryable bool `json:"retryable,omitzero"`
}

// FailureClasses lists the classes of failures of coding agents.
var FailureClasses = []string{"refused", "context", "limit", "budget", "login", "stuck", "tool"}

// CancelTask is the payload of cancel-task.
type CancelTask struct {
	// The id of the task.
	TaskID string `json:"taskId" schema:"nonblank"`
	// The reason, for the agent of the task.
	Reason string `json:"reason,omitzero"`
}

// RetryTask is the payload of retry-task.
type RetryTask struct {
	// The id of the task.
	TaskID string `json:"taskId" schema:"nonblank"`
	// The agent for the task. Without it, the task is assigned as before.
	Agent string `json:"agent,omitzero"`
	// Whether to continue in the present workspace, with the commits and files of the last attempt.
	// Otherwise the task begins on a fresh branch, and the earlier branch is kept under another name.
	Keep bool `json:"keep,omitzero"`
	// Whether the tasks that were cancelled because of this one are pending again as well; true if it
	// is missing.
	Dependents *bool `json:"dependents,omitzero"`
}

// TaskReply answers with one task.
type TaskReply struct {
	Task Task `json:"task"`
}

// TaskList answers query-tasks, oldest first.
type TaskList struct {
	Tasks []Task `json:"tasks"`
	// The number of tasks beyond the limit of query-tasks, counted up to 10000; missing if there are
	// none.
	More int64 `json:"more,omitzero" schema:"min=1"`
	// The last task of the list, if more follow. Use it as the cursor of the next request.
	Cursor string `json:"cursor,omitzero"`
}

// MaxCounted is the maximum of TaskList.More.
const MaxCounted = 10_000

// TaskNotice is the payload of the notifications about tasks, and of notify:interrupt.
type TaskNotice struct {
	TaskID  string `json:"taskId,omitzero"`
	Message string `json:"message,omitzero"`
	Reason  string `json:"reason,omitzero"`
}

// Names of notifications, without their prefix.
const (
	NoticeAssigned  = "task-assigned"
	NoticeCancelled = "task-cancelled"
	NoticeUpdated   = "task-updated" // the agent's task has changed
	NoticeShutdown  = "shutdown"
)

// AssignedMessage is the message of notify:task-assigned.
const AssignedMessage = "Task assigned. Use TaskGet to view details."

// PlanFirstMessage is the message of notify:task-assigned if a plan is required.
const PlanFirstMessage = "Task assigned. Submit a plan for it first, with submit-plan."

// DependencyFailed is the reason of a task that is cancelled because a dependency failed.
const DependencyFailed = "Dependency failed"

// The answers.
var (
	answerAgents = &Answer{Name: "agents", Of: AgentList{}}
	answerTasks  = &Answer{Name: "tasks", Of: TaskList{}, About: ", oldest first"}
	answerTask   = &Answer{Name: "task", Of: TaskReply{}, Asked: "get-task and every operation that changes a task", About: ", with its current state"}
	answerAnswer = &Answer{Name: "answer", Of: UserAnswer{}}
)

// taskOperations are the operations of the published protocol and the steps of a task.
var taskOperations = []Operation{
	request[QueryAgents](Operation{
		Name: "query-agents", Answer: answerAgents, Published: true,
		Summary:  "List agents, by role, status or capabilities",
		About:    "You are one of them. Without a payload the answer lists all agents.",
		Examples: []string{`{"role": "worker", "status": "idle", "capabilities": ["typescript"]}`, ""},
	}),
	request[QueryTasks](Operation{
		Name: "query-tasks", Answer: answerTasks, Published: true, Stable: true,
		Summary: "List the tasks that you submitted or that are assigned to you",
		About:   "The oldest task comes first. The list leaves out description, payload and result, which can be large; get-task has them.",
		HTTP:    []string{"GET /api/v1/server/tasks"},
		Examples: []string{
			`{"status": "queued", "requiredRole": "worker", "limit": 10, "projectId": "spring", "conversationId": "breakfast-12"}`,
			"",
		},
	}),
	request[SubmitTask](Operation{
		Name: "submit-task", Answer: answerTask, Published: true, Writes: true, OfTask: true,
		Summary: "Submit a task for an idle agent with the role and the capabilities that it requires",
		About:   "The task waits until every task that it depends on is done, and until an agent that fits is idle.",
		HTTP:    []string{"POST /api/v1/tasks", "POST /api/v1/server/tasks"},
		Examples: []string{
			`{"type": "implementation", "name": "Fix the login form", "description": "It forgets the name after a wrong password.", "payload": {"file": "src/login.ts"}, "requiredRole": "worker", "requiredCapabilities": ["typescript"], "dependencies": ["task-7"], "priority": 2}`,
			`{"type": "review", "name": "Read the changes"}`,
			`{"type": "implementation", "name": "Show the fields", "priority": "high", "dependencies": ["task-7", {"depends_on_task_id": "task-8", "dependency_type": "input", "contract_key": "form_fields"}], "structured_spec": {"$schema": "orchestratia/task-spec/v1", "requirements": [{"description": "All fields are shown", "priority": "must"}]}, "requirements": {"repo": "shop", "languages": ["typescript"]}, "targetRepo": "shop", "acceptanceCriteria": ["The tests pass"], "projectId": "spring", "sessionId": "s-1", "observability": {"traceId": "5b8aa5a2d2c872e8321cf37308d69df2", "spanId": "051581bf3cb55c13", "baggage": {"house": "12"}}}`,
		},
	}),
	request[TaskID](Operation{
		Name: "get-task", Answer: answerTask, Published: true, Stable: true, OfTask: true,
		Summary:  "Show a task in full",
		About:    "The answer has the description, the payload, the progress and, when the task is done, the result.",
		HTTP:     []string{"GET /api/v1/tasks/{id}", "GET /api/v1/server/tasks/{id}"},
		Examples: []string{`{"taskId": "task-123"}`},
	}),
	request[AskUser](Operation{
		Name: "ask-user", Answer: answerAnswer, Published: true, Audience: ForAgents, Writes: true,
		Summary: "Ask a person a question and wait for the answer",
		About:   "The response arrives when the person answers, or with TIMEOUT. You can send other requests while you wait.",
		Examples: []string{
			`{"question": "Which database shall I write for?", "options": [{"label": "PostgreSQL", "value": "postgres"}, {"label": "SQLite", "value": "sqlite"}], "timeout": 300000}`,
			`{"question": "What shall the branch be called?"}`,
		},
	}),
	request[TaskID](Operation{
		Name: "start-task", Answer: answerTask, Writes: true, OfTask: true,
		Summary:  "Start a task that is assigned to you, or take one of yours that has no agent",
		About:    "The request is optional: a task starts by itself when its agent has been notified.",
		HTTP:     []string{"POST /api/v1/servers/tasks/{id}/start", "POST /api/v1/server/tasks/{id}/start"},
		Examples: []string{`{"taskId": "task-123"}`},
	}),
	request[CompleteTask](Operation{
		Name: "complete-task", Answer: answerTask, Writes: true, OfTask: true,
		Summary: "Complete a task with its result",
		HTTP:    []string{"POST /api/v1/servers/tasks/{id}/complete", "POST /api/v1/server/tasks/{id}/complete"},
		Examples: []string{
			`{"taskId": "task-123", "result": {"success": true, "files": ["src/login.ts"]}}`,
			`{"taskId": "task-123", "result": {"$schema": "orchestratia/task-result/v1", "summary": "The form keeps the name", "contracts": {"form_fields": {"status": "fulfilled", "data": {"fields": ["name"]}}}}}`,
			`{"taskId": "task-123", "result": "All tests pass.", "artifacts": [{"name": "log", "content": "ok"}, {"name": "shot", "type": "image/png", "ref": "https://example.com/shot.png"}, {"path": "report.md"}]}`,
			`{"taskId": "task-123"}`,
		},
	}),
	request[FailTask](Operation{
		Name: "fail-task", Answer: answerTask, Writes: true, OfTask: true,
		Summary:  "Fail a task with the reason",
		About:    "Tasks that depend on it are cancelled, unless the configuration keeps them.",
		HTTP:     []string{"POST /api/v1/servers/tasks/{id}/fail", "POST /api/v1/server/tasks/{id}/fail"},
		Examples: []string{`{"taskId": "task-123", "error": "The repository is empty."}`, `{"taskId": "task-123", "error": "The compiler crashed.", "class": "tool", "retryable": true}`},
	}),
	request[CancelTask](Operation{
		Name: "cancel-task", Answer: answerTask, Writes: true, OfTask: true,
		Summary:  "Cancel a task that you submitted and tell its agent",
		About:    "The task must not have ended.",
		HTTP:     []string{"DELETE /api/v1/server/tasks/{id}"},
		Examples: []string{`{"taskId": "task-123", "reason": "It is no longer needed."}`, `{"taskId": "task-123"}`},
	}),
	request[RetryTask](Operation{
		Name: "retry-task", Answer: answerTask, Writes: true, OfTask: true,
		Summary:  "Retry a failed or cancelled task",
		About:    "The task is pending again, with its history. Tasks that were cancelled because of it are pending again as well.",
		Examples: []string{`{"taskId": "task-123"}`, `{"taskId": "task-123", "agent": "coder", "keep": true, "dependents": false}`},
	}),
}
