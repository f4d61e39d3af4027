package wire

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// TaskState is where a task stands.
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
	TaskDone       TaskState = "done"
	TaskFailed     TaskState = "failed"
	TaskCancelled  TaskState = "cancelled"
)

// TaskStates are all states, in the order in which a task may pass them.
var TaskStates = []TaskState{
	TaskPending, TaskAssigned, TaskPlanning, TaskPlanReview, TaskRunning,
	TaskNeedsHuman, TaskInReview, TaskDone, TaskFailed, TaskCancelled,
}

// Final reports whether nothing follows.
func (s TaskState) Final() bool { return s == TaskDone || s == TaskFailed || s == TaskCancelled }

// Status is the state as agents see it, in five words.
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

// TaskStatuses are the words of Status, and so what query-tasks can filter by.
var TaskStatuses = []string{"queued", "running", "completed", "failed", "cancelled"}

// Task is a task as all see it. In a list the parts that can be large
// (description, payload, result) are left out; get-task has them.
type Task struct {
	ID                   string    `json:"id"`
	Name                 string    `json:"name"`
	Type                 string    `json:"type"`
	Status               string    `json:"status"` // one of TaskStatuses
	State                TaskState `json:"state"`
	Description          string    `json:"description,omitzero"`
	Payload              Raw       `json:"payload,omitzero"`
	RequiredRole         string    `json:"requiredRole"` // null: any
	RequiredCapabilities []string  `json:"requiredCapabilities"`
	Dependencies         []string  `json:"dependencies"`               // that must be done first
	Links                []Link    `json:"typedDependencies,omitzero"` // all of them, when some are not just that
	WaitsFor             []string  `json:"waitsFor,omitzero"`          // dependencies that are still open
	*Details
	ResolvedInputs Inputs  `json:"resolved_inputs,omitzero"`
	Priority       Raw     `json:"priority,omitzero"` // as it was given
	SubmittedBy    string  `json:"submittedBy"`       // such as agent:planner
	AssignedTo     string  `json:"assignedTo"`        // an agent; null: none
	Progress       float64 `json:"progress,omitzero"` // from 0 to 1
	Message        string  `json:"message,omitzero"`  // said with the progress
	Attempts       int     `json:"attempts,omitzero"` // how often it was assigned
	Result         Raw     `json:"result,omitzero"`
	Error          string  `json:"error,omitzero"`  // why it failed
	Reason         string  `json:"reason,omitzero"` // why it was cancelled
	CreatedAt      string  `json:"createdAt"`
	AssignedAt     string  `json:"assignedAt,omitzero"`
	StartedAt      string  `json:"startedAt,omitzero"`
	EndedAt        string  `json:"endedAt,omitzero"`
}

// MarshalJSONTo implements the encoder's interface.
func (t *Task) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteValue(t.append(nil)) }

// append spells a task. It is written by hand because tasks are what is asked
// for most.
func (t *Task) append(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = appendText(b, t.ID)
	b = appendMember(b, "name", t.Name)
	b = appendMember(b, "type", t.Type)
	b = appendMember(b, "status", t.Status)
	b = appendMember(b, "state", string(t.State))
	b = appendSome(b, "description", t.Description)
	b = appendRaw(b, "payload", t.Payload)
	b = appendOrNull(b, "requiredRole", t.RequiredRole)
	b = appendTexts(b, "requiredCapabilities", t.RequiredCapabilities)
	b = appendTexts(b, "dependencies", t.Dependencies)
	if len(t.WaitsFor) > 0 {
		b = appendTexts(b, "waitsFor", t.WaitsFor)
	}
	if len(t.Links) > 0 {
		b = appendLinks(appendKey(b, "typedDependencies"), t.Links)
	}
	b = t.Details.append(b)
	if len(t.ResolvedInputs) > 0 {
		b = t.ResolvedInputs.append(appendKey(b, "resolved_inputs"))
	}
	b = appendRaw(b, "priority", t.Priority)
	b = appendMember(b, "submittedBy", t.SubmittedBy)
	b = appendOrNull(b, "assignedTo", t.AssignedTo)
	if t.Progress != 0 {
		b = append(b, `,"progress":`...)
		b = strconv.AppendFloat(b, t.Progress, 'g', -1, 64)
	}
	b = appendSome(b, "message", t.Message)
	if t.Attempts != 0 {
		b = append(b, `,"attempts":`...)
		b = strconv.AppendInt(b, int64(t.Attempts), 10)
	}
	if t.Result != nil {
		b = appendRaw(b, "result", t.Result)
	} else {
		b = append(b, `,"result":null`...)
	}
	b = appendSome(b, "error", t.Error)
	b = appendSome(b, "reason", t.Reason)
	b = appendMember(b, "createdAt", t.CreatedAt)
	b = appendSome(b, "assignedAt", t.AssignedAt)
	b = appendSome(b, "startedAt", t.StartedAt)
	b = appendSome(b, "endedAt", t.EndedAt)
	return append(b, '}')
}

// The roles of agents: what each is there for.
const (
	RoleWorker   = "worker"
	RolePlanner  = "planner"
	RoleReviewer = "reviewer"
)

// Roles are the roles that every team has. The file of a team may name more.
var Roles = []string{RoleWorker, RolePlanner, RoleReviewer}

// SubmitTask is the payload of submit-task.
type SubmitTask struct {
	Type                 string        `json:"type"`
	Name                 string        `json:"name"`
	Description          string        `json:"description,omitzero"`
	Payload              Raw           `json:"payload,omitzero"`
	RequiredRole         string        `json:"requiredRole,omitzero"`
	RequiredCapabilities []string      `json:"requiredCapabilities,omitzero"`
	Dependencies         []Dependency  `json:"dependencies,omitzero"` // what must be done first, and what else there is to know
	Priority             Raw           `json:"priority,omitzero"`     // a number, 1 is first; or critical, high, normal, low
	Spec                 *Spec         `json:"-"`
	Requirements         *Requirements `json:"-"`
	Observability        *TaskTrace    `json:"observability,omitzero"` // nil if not said
	Details              Details       `json:",embed"`
	Patient              bool          `json:"-"` // what depends on it waits when it comes to nothing, unless the file says otherwise
}

// readSubmitTask reads a SubmitTask.
func readSubmitTask(o *Object) *SubmitTask {
	s := &SubmitTask{
		Type:                 o.NeedText("type"),
		Name:                 o.NeedText("name"),
		Description:          o.Text("description"),
		Payload:              o.Document("payload"),
		RequiredRole:         o.Text("requiredRole"),
		RequiredCapabilities: o.Texts("requiredCapabilities"),
		Dependencies:         o.Dependencies("dependencies"),
		Priority:             o.Priority("priority"),
		Observability:        o.trace("observability"),
	}
	s.Details.TargetRepo = o.Text("targetRepo")
	s.Details.AcceptanceCriteria = o.Texts("acceptanceCriteria")
	s.Details.ProjectID = o.Text("projectId")
	s.Details.SessionID = o.Text("sessionId")
	s.documents(o)
	return s
}

// documents reads the documents that a new task may bring.
func (s *SubmitTask) documents(o *Object) {
	if s.Spec = o.Spec("structured_spec"); s.Spec != nil {
		s.Details.StructuredSpec = s.Spec.Document
	}
	if s.Requirements = o.Requirements("requirements"); s.Requirements != nil {
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

// readQueryTasks reads a QueryTasks.
func readQueryTasks(o *Object) *QueryTasks {
	return &QueryTasks{
		Status:         o.OneOf("status", statusWords...),
		RequiredRole:   o.Text("requiredRole"),
		Limit:          o.Whole("limit", 1),
		Cursor:         o.Text("cursor"),
		ProjectID:      o.Text("projectId"),
		ConversationID: o.Text("conversationId"),
	}
}

// statusWords are what tasks can be chosen by.
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

// TaskID is the payload of every operation that needs nothing but a task.
type TaskID struct {
	TaskID string `json:"taskId"`
}

// readTaskID reads a TaskID.
func readTaskID(o *Object) *TaskID { return &TaskID{TaskID: o.NeedText("taskId")} }

// CompleteTask is the payload of complete-task.
type CompleteTask struct {
	TaskID string  `json:"taskId"`
	Result *Result `json:"result,omitzero"` // an object or a text; {"success":true} when it is missing
}

// readCompleteTask reads a CompleteTask.
func readCompleteTask(o *Object) *CompleteTask {
	return &CompleteTask{TaskID: o.NeedText("taskId"), Result: o.Result("result")}
}

// FailTask is the payload of fail-task.
type FailTask struct {
	TaskID string `json:"taskId"`
	Error  string `json:"error"`
}

// readFailTask reads a FailTask.
func readFailTask(o *Object) *FailTask {
	return &FailTask{TaskID: o.NeedText("taskId"), Error: o.NeedText("error")}
}

// CancelTask is the payload of cancel-task.
type CancelTask struct {
	TaskID string `json:"taskId"`
	Reason string `json:"reason,omitzero"`
}

// readCancelTask reads a CancelTask.
func readCancelTask(o *Object) *CancelTask {
	return &CancelTask{TaskID: o.NeedText("taskId"), Reason: o.Text("reason")}
}

// TaskReply answers with one task.
type TaskReply struct {
	Task Task `json:"task"`
}

// TaskList answers query-tasks, oldest first.
type TaskList struct {
	Tasks  []Task `json:"tasks"`
	More   int64  `json:"more,omitzero"`   // how many tasks follow, counted up to MostCounted
	Cursor string `json:"cursor,omitzero"` // the last task of the list, if others follow
}

// MostCounted bounds the count of what is beyond the limit of a list.
const MostCounted = 10_000

// TaskNotice is the payload of notify:task-assigned and notify:task-cancelled.
type TaskNotice struct {
	TaskID  string `json:"taskId"`
	Message string `json:"message,omitzero"`
	Reason  string `json:"reason,omitzero"`
}

// Names of notifications, without their prefix.
const (
	NoticeAssigned  = "task-assigned"
	NoticeCancelled = "task-cancelled"
	NoticeUpdated   = "task-updated" // something is new about the agent's task
	NoticeShutdown  = "shutdown"
)

// AssignedMessage is what notify:task-assigned says.
const AssignedMessage = "Task assigned. Use TaskGet to view details."

// PlanFirstMessage is what it says when a plan is wanted.
const PlanFirstMessage = "Task assigned. Submit a plan for it first, with submit-plan."

// DependencyFailed is why a task is cancelled when one that it needs comes to
// nothing.
const DependencyFailed = "Dependency failed"
