package wire

import (
	"orchestrator/wire/object"
)

// A TaskResponse reports the status of delegated work, intermediate or final.
type TaskResponse struct {
	ID        string     // of the task
	Status    string     // Response… below
	Result    Raw        // of a completed task: any value, digit for digit; nil if there is none
	Fault     *TaskFault // why it failed or was cancelled; never nil if it failed
	Metadata  TaskMetadata
	Artifacts []Artifact
	Question  string   // the question if input is required; then never ""
	Options   []Option // the allowed answers; none: any text is allowed

	Document Raw      // the whole response on one line; nil if the orchestrator made it
	Notes    []string // warnings, each with its place
}

// The statuses of delegated work.
const (
	ResponsePending       = "pending"     // it was received, and not begun
	ResponseInProgress    = "in_progress" // the agent works on it
	ResponseCompleted     = "completed"
	ResponseFailed        = "failed"
	ResponseCancelled     = "cancelled"
	ResponseInputRequired = "input_required" // it goes on with an ActUpdate
)

// ResponseStatuses lists all statuses of delegated work.
var ResponseStatuses = []string{
	ResponsePending, ResponseInProgress, ResponseCompleted, ResponseFailed, ResponseCancelled, ResponseInputRequired,
}

// Response returns the state as the source of the work sees it: one of ResponseStatuses.
func (s TaskState) Response() string {
	switch s {
	case TaskPending, TaskAssigned:
		return ResponsePending
	case TaskNeedsHuman:
		return ResponseInputRequired
	case TaskDone:
		return ResponseCompleted
	case TaskFailed:
		return ResponseFailed
	case TaskCancelled:
		return ResponseCancelled
	}
	return ResponseInProgress
}

// TaskMetadata describes the execution of a task. The spelling of its keys is not uniform.
type TaskMetadata struct {
	StartedAt   string `json:"startedAt,omitzero"`
	CompletedAt string `json:"completedAt,omitzero"`
	DurationMS  *int64 `json:"duration_ms,omitzero"` // nil if not said
	Agent       string `json:"agent,omitzero"`       // who did it
	RetryCount  *int64 `json:"retryCount,omitzero"`  // number of retries; nil if unknown
}

// An Artifact is a product of a task. One that is stored elsewhere has a Ref, and its Content
// may be empty; this is an extension.
type Artifact struct {
	Name    string `json:"name"`
	Type    string `json:"type"` // a MIME type
	Content string `json:"content"`
	Ref     string `json:"ref,omitzero"`
}

// AppendTaskResponse appends a response that the orchestrator made as one line. Members that do
// not fit the status are left out. A failed response without a fault gets one. The response of
// an agent is its Document.
func AppendTaskResponse(b []byte, r *TaskResponse) []byte {
	b = object.AppendText(append(b, `{"id":`...), r.ID)
	b = object.AppendMember(b, "status", r.Status)
	switch r.Status {
	case ResponseCompleted:
		b = object.AppendRaw(b, "result", r.Result)
	case ResponseFailed:
		b = orUnexplained(r.Fault).append(object.AppendKey(b, "error"))
	case ResponseCancelled:
		b = object.AppendOptional(b, "message", r.Question)
	case ResponseInputRequired:
		b = r.appendQuestion(b)
	}
	b = appendBlock(b, "metadata", r.Metadata)
	if len(r.Artifacts) > 0 {
		b = appendBlock(b, "artifacts", r.Artifacts)
	}
	return append(b, '}', '\n')
}

// appendUndone appends the failed response to work that was refused. The id is given as it was
// written.
func appendUndone(b, id []byte, why *Error) []byte {
	b = append(append(b, `{"id":`...), id...)
	b = object.AppendMember(b, "status", ResponseFailed)
	return append(FaultOf(why).append(object.AppendKey(b, "error")), '}', '\n')
}

// appendQuestion appends a question in both forms that programs read.
func (r *TaskResponse) appendQuestion(b []byte) []byte {
	question := r.Question
	if object.IsBlank(question) {
		question = unasked
	}
	b = object.AppendMember(b, "message", question)
	if len(r.Options) == 0 {
		return b
	}
	return appendBlock(b, "input", struct {
		Question string   `json:"question"`
		Options  []Option `json:"options"`
	}{Question: question, Options: r.Options})
}
