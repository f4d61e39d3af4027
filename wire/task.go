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

// TaskStates lists all states, in the order in which a task may pass through them.
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

// TaskStatuses lists the results of Status, by which query-tasks can filter.
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
	// What is to be done.
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
	// The agent that has the task, or had it when it ended; null if there is none.
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
	Type                 string            `json:"type"`
	Name                 string            `json:"name"`
	Description          string            `json:"description,omitzero"`
	Payload              Raw               `json:"payload,omitzero"`
	RequiredRole         string            `json:"requiredRole,omitzero"`
	RequiredCapabilities []string          `json:"requiredCapabilities,omitzero"`
	Dependencies         []hub.Dependency  `json:"dependencies,omitzero"` // tasks that must be done first, and related tasks
	Priority             Raw               `json:"priority,omitzero"`     // a number, 1 is first; or critical, high, normal, low
	Spec                 *hub.Spec         `json:"-"`
	Requirements         *hub.Requirements `json:"-"`
	Observability        *delegation.Trace `json:"observability,omitzero"` // nil if not said
	AssignTo             string            `json:"assignTo,omitzero"`      // the only agent that gets it
	RequirePlan          bool              `json:"requirePlan,omitzero"`   // that agent must submit a plan first
	Details              Details           `json:",embed"`
	Patient              bool              `json:"-"` // its dependents wait if it fails, unless the configuration differs
	Block                *hub.TaskBlock    `json:"-"` // the block of the configuration that the task comes from, or nil
}

func (s *SubmitTask) fields(f *fields) {
	f.need(&s.Type, "type", "The kind of task, in words of the submitter.")
	f.need(&s.Name, "name", "The name of the task.")
	f.text(&s.Description, "description", "What is to be done.")
	f.object(&s.Payload, "payload", "Data for the agent. It is passed on unchanged, digit for digit.")
	f.text(&s.RequiredRole, "requiredRole",
		"The role that the agent must have: worker, planner, reviewer, or one that the file gives an agent. Any other is refused.")
	f.texts(&s.RequiredCapabilities, "requiredCapabilities", "The capabilities that the agent must have.")
	if !f.describe("dependencies", "What the task depends on: ids of tasks that must be done first, or objects that say more.",
		`"type": ["array", "null"], "items": {"$ref": "urn:orchestrator:dependency"}`, false) {
		s.Dependencies = hub.DependenciesIn(f.in, "dependencies")
	}
	f.priority(&s.Priority)
	f.text(&s.AssignTo, "assignTo", "The agent that gets the task: its name, its server_id, or the id of its run. It need not have the role and the capabilities.")
	f.truth(&s.RequirePlan, "requirePlan", "With assignTo, whether that agent must submit a plan first.")
	if !f.describe("observability", "The trace that the task belongs to.", schemaTrace, false) {
		s.Observability = readTrace(f.in, "observability")
	}
	d := &s.Details
	f.text(&d.TargetRepo, "targetRepo", "The repository that the task is about.")
	f.texts(&d.AcceptanceCriteria, "acceptanceCriteria", "The conditions under which the task counts as done.")
	f.text(&d.ProjectID, "projectId", "The project that the task belongs to.")
	f.text(&d.SessionID, "sessionId", "The session that the task came from.")
	f.commands(&d.Verify, "verify", "Commands that must succeed before the task is done, each a list of words. They run as its agent, so only a person may name them.")
	described := f.document("structured_spec", "The specification in a form for programs: a task-spec document.", "task-spec")
	f.document("requirements", "What the task requires of an agent: a requirements document.", "requirements")
	if !described {
		s.documents(f.in)
	}
}

const schemaCommands = `"type": ["array", "null"], "maxItems": 20, "items": {"type": "array", "minItems": 1, "maxItems": 1000, "items": {"type": "string"}}`

// commands declares a list of commands.
func (f *fields) commands(into *[][]string, key, about string) {
	if f.describe(key, about, schemaCommands, false) {
		return
	}
	o := f.in
	items, _ := o.Items(key)
	if len(items) > 20 {
		o.Refuse(key, "must not have more than 20 commands")
		return
	}
	for i, item := range items {
		var argv []string
		if err := json.Unmarshal(item, &argv); err != nil || len(argv) == 0 || len(argv) > 1000 || argv[0] == "" || strings.Contains(strings.Join(argv, ""), "\x00") {
			o.RefuseItem(key, i, "must be a command: a list of words, such as [\"go\", \"test\"]")
			return
		}
		*into = append(*into, argv)
	}
}

// priority declares the priority of a task.
func (f *fields) priority(p *Raw) {
	const kinds = `"type": ["number", "string", "null"], "minimum": -1.7976931348623157e+308, "maximum": 1.7976931348623157e+308, ` + wordsPattern
	if !f.describe("priority", "A number or a word. 1 is the most urgent; the default is 3, and all above 3 are equal. "+
		"The words are critical, high, normal and low; any other counts as normal.", kinds, false) {
		*p = hub.PriorityIn(f.in, "priority")
	}
}

// documents reads the optional documents of a new task.
func (s *SubmitTask) documents(o *object.Reader) {
	if s.Spec = hub.SpecIn(o, "structured_spec"); s.Spec != nil {
		s.Details.StructuredSpec = s.Spec.Document
	}
	if s.Requirements = hub.RequirementsIn(o, "requirements"); s.Requirements != nil {
		s.Details.Requirements = s.Requirements.Document
	}
}

// QueryTasks is the payload of query-tasks.
type QueryTasks struct {
	Status         string `json:"status,omitzero"` // one of TaskStatuses, or a TaskState
	RequiredRole   string `json:"requiredRole,omitzero"`
	Limit          int64  `json:"limit,omitzero"`  // 100 when it is missing
	Cursor         string `json:"cursor,omitzero"` // only tasks after this one
	Uncounted      bool   `json:"-"`               // TaskList.More is 1 for any number
	State          string `json:"-"`               // as the hub calls it
	ProjectID      string `json:"projectId,omitzero"`
	ConversationID string `json:"conversationId,omitzero"`
}

func (q *QueryTasks) fields(f *fields) {
	f.oneOf(&q.Status, "status", "Only tasks with this status or in this state. queued is pending or assigned, completed is done, "+
		"and running is everything between.", statusWords...)
	f.text(&q.RequiredRole, "requiredRole", "Only tasks that require this role.")
	f.whole(&q.Limit, "limit", "The maximum number of tasks; 100 when it is missing. The response has the number of further tasks.", 1, object.MaxWhole)
	f.text(&q.Cursor, "cursor", "Only tasks that were created after this one: the cursor of the previous response.")
	f.text(&q.ProjectID, "projectId", "Only tasks of this project.")
	f.text(&q.ConversationID, "conversationId", "Only tasks of this conversation: see task-request.")
}

// statusWords lists the words by which tasks can be filtered.
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
	TaskID string `json:"taskId"`
}

const theTask = "The id of the task."

func (t *TaskID) fields(f *fields) { f.need(&t.TaskID, "taskId", theTask) }

// CompleteTask is the payload of complete-task.
type CompleteTask struct {
	TaskID string      `json:"taskId"`
	Result *hub.Result `json:"result,omitzero"` // any value; {"success":true} when it is missing

	Artifacts []hub.Artifact `json:"artifacts,omitzero"`
}

const schemaArtifacts = `"type": ["array", "null"], "maxItems": 100, "items": {"type": "object", "properties": {` +
	`"name": {"type": ["string", "null"], ` + wordsPattern + `, "description": "The name, such as a file name. The path is the name of one without."}, ` +
	`"type": {"type": ["string", "null"], "description": "The MIME type, such as text/markdown; text/plain when it is missing."}, ` +
	`"content": {"type": ["string", "null"], "description": "The content, as text."}, ` +
	`"path": {"type": ["string", "null"], ` + wordsPattern + `, "description": "The path of a text file in your working folder, which is read now. Only for a run that the orchestrator has started."}, ` +
	`"ref": {"type": ["string", "null"], ` + wordsPattern + `, "description": "The place of content that is stored elsewhere."}}, ` +
	`"anyOf": [{"required": ["name"], "properties": {"name": {"type": "string"}}}, {"required": ["path"], "properties": {"path": {"type": "string"}}}], ` +
	`"oneOf": [{"required": ["content"], "properties": {"content": {"type": "string"}}}, {"required": ["path"], "properties": {"path": {"type": "string"}}}, ` +
	`{"required": ["ref"], "properties": {"ref": {"type": "string"}}}]}`

// readArtifacts reads the artifacts that an agent hands in with a result.
func readArtifacts(o *object.Reader) []hub.Artifact {
	all := hub.ArtifactsIn(o, "artifacts")
	for i := range all {
		if delegation.IsArtifactRef(all[i].Ref) {
			o.RefuseItem("artifacts", i, "has a ref of content that is kept here, which only the orchestrator may give")
		}
	}
	return all
}

func (c *CompleteTask) fields(f *fields) {
	f.need(&c.TaskID, "taskId", theTask)
	if !f.describe("result", "The result for the submitter: any value; {\"success\":true} when it is missing. "+
		"An object with a $schema must be a task-result document: its contracts go to the tasks that need them.",
		"", false) {
		c.Result = hub.ResultIn(f.in, "result")
	}
	if !f.describe("artifacts", "Other products: each has a name, and one of content, path and ref.", schemaArtifacts, false) {
		c.Artifacts = readArtifacts(f.in)
	}
}

// FailTask is the payload of fail-task.
type FailTask struct {
	TaskID    string `json:"taskId"`
	Error     string `json:"error"`
	Class     string `json:"class,omitzero"`
	Retryable bool   `json:"retryable,omitzero"`
}

// FailureClasses lists the classes of failures of coding agents.
var FailureClasses = []string{"refused", "context", "limit", "budget", "login", "stuck", "tool"}

func (t *FailTask) fields(f *fields) {
	f.need(&t.TaskID, "taskId", theTask)
	f.need(&t.Error, "error", "The reason.")
	f.oneOf(&t.Class, "class", "The kind of failure: the model refused; its context is too long; a limit of its vendor; the budget is used up; "+
		"its program is not logged in; it made no progress; a tool or the program failed.", FailureClasses...)
	f.truth(&t.Retryable, "retryable", "Whether another attempt may succeed. The task then waits for an agent again, up to max_attempts. "+
		"A task that was assigned by hand, is part of a session, or was handed on fails anyway.")
}

// CancelTask is the payload of cancel-task.
type CancelTask struct {
	TaskID string `json:"taskId"`
	Reason string `json:"reason,omitzero"`
}

func (c *CancelTask) fields(f *fields) {
	f.need(&c.TaskID, "taskId", theTask)
	f.text(&c.Reason, "reason", "The reason, for the agent of the task.")
}

// RetryTask is the payload of retry-task.
type RetryTask struct {
	TaskID string `json:"taskId"`
	Agent  string `json:"agent,omitzero"` // that gets it; "": as before
	Keep   bool   `json:"keep,omitzero"`  // its workspace stays as it is
	// Dependents brings back the tasks that were cancelled because of this one; nil: true.
	Dependents *bool `json:"dependents,omitzero"`
}

func (r *RetryTask) fields(f *fields) {
	f.need(&r.TaskID, "taskId", theTask)
	f.text(&r.Agent, "agent", "The agent that gets it. Without it, the task is given out as before.")
	f.truth(&r.Keep, "keep", "Continue in its workspace as it is, with the commits and files of the last attempt. Otherwise it begins on a fresh branch, and the earlier one is kept under another name.")
	f.truthOrNil(&r.Dependents, "dependents", "Whether the tasks that were cancelled because of this one come back, too; true if it is missing.")
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
		Name: "query-tasks", Answer: answerTasks, Published: true,
		Summary: "List the tasks that you submitted or that are assigned to you",
		About:   "The list is sorted by age and leaves out what can be large: description, payload and result; get-task has them.",
		Examples: []string{
			`{"status": "queued", "requiredRole": "worker", "limit": 10, "projectId": "spring", "conversationId": "breakfast-12"}`,
			"",
		},
	}),
	request[SubmitTask](Operation{
		Name: "submit-task", Answer: answerTask, Published: true, Writes: true, OfTask: true,
		Summary: "Submit a task for an idle agent with the role and the capabilities that it requires",
		About:   "The task waits until every task that it depends on is done, and until an agent that fits is idle.",
		Examples: []string{
			`{"type": "implementation", "name": "Fix the login form", "description": "It forgets the name after a wrong password.", "payload": {"file": "src/login.ts"}, "requiredRole": "worker", "requiredCapabilities": ["typescript"], "dependencies": ["task-7"], "priority": 2}`,
			`{"type": "review", "name": "Read the changes"}`,
			`{"type": "implementation", "name": "Show the fields", "priority": "high", "dependencies": ["task-7", {"depends_on_task_id": "task-8", "dependency_type": "input", "contract_key": "form_fields"}], "structured_spec": {"$schema": "orchestratia/task-spec/v1", "requirements": [{"description": "All fields are shown", "priority": "must"}]}, "requirements": {"repo": "shop", "languages": ["typescript"]}, "targetRepo": "shop", "acceptanceCriteria": ["The tests pass"], "projectId": "spring", "sessionId": "s-1", "observability": {"traceId": "5b8aa5a2d2c872e8321cf37308d69df2", "spanId": "051581bf3cb55c13", "baggage": {"house": "12"}}}`,
		},
	}),
	request[TaskID](Operation{
		Name: "get-task", Answer: answerTask, Published: true, OfTask: true,
		Summary:  "Show a task in full",
		About:    "The answer has the description, the payload, the progress and, when the task is done, the result.",
		Examples: []string{`{"taskId": "task-123"}`},
	}),
	request[AskUser](Operation{
		Name: "ask-user", Answer: answerAnswer, Published: true, Audience: ForAgents, Writes: true,
		Summary: "Ask a person a question and wait for the answer",
		About:   "The response arrives when the person answers, or with TIMEOUT. Other requests are answered meanwhile.",
		Examples: []string{
			`{"question": "Which database shall I write for?", "options": [{"label": "PostgreSQL", "value": "postgres"}, {"label": "SQLite", "value": "sqlite"}], "timeout": 300000}`,
			`{"question": "What shall the branch be called?"}`,
		},
	}),
	request[TaskID](Operation{
		Name: "start-task", Answer: answerTask, Writes: true, OfTask: true,
		Summary:  "Start a task that is assigned to you, or take one of yours that has no agent",
		About:    "The request is optional: a task starts by itself when its agent has been notified.",
		Examples: []string{`{"taskId": "task-123"}`},
	}),
	request[CompleteTask](Operation{
		Name: "complete-task", Answer: answerTask, Writes: true, OfTask: true,
		Summary: "Complete a task with its result",
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
		Examples: []string{`{"taskId": "task-123", "error": "The repository is empty."}`, `{"taskId": "task-123", "error": "The compiler crashed.", "class": "tool", "retryable": true}`},
	}),
	request[CancelTask](Operation{
		Name: "cancel-task", Answer: answerTask, Writes: true, OfTask: true,
		Summary:  "Cancel a task that you submitted and tell its agent",
		About:    "The task must not have ended.",
		Examples: []string{`{"taskId": "task-123", "reason": "It is not needed any more."}`, `{"taskId": "task-123"}`},
	}),
	request[RetryTask](Operation{
		Name: "retry-task", Answer: answerTask, Writes: true, OfTask: true,
		Summary:  "Try a task again that has failed or was cancelled",
		About:    "The task is pending again, with its history. Tasks that were cancelled because of it come back, too.",
		Examples: []string{`{"taskId": "task-123"}`, `{"taskId": "task-123", "agent": "coder", "keep": true, "dependents": false}`},
	}),
}

// MarshalJSONTo implements json.MarshalerTo. The documents come from the details or from the
// decoded fields.
func (s SubmitTask) MarshalJSONTo(e *jsontext.Encoder) error {
	type plain SubmitTask // without this method
	if s.Details.StructuredSpec == nil && s.Spec != nil {
		s.Details.StructuredSpec = s.Spec.Document
	}
	if s.Details.Requirements == nil && s.Requirements != nil {
		text, err := object.Encode(s.Requirements)
		if err != nil {
			return err
		}
		s.Details.Requirements = text
	}
	return json.MarshalEncode(e, plain(s))
}
