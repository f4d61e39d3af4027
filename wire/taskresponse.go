package wire

import (
	"orchestrator/wire/object"
)

// TaskResponse is what became of work that was handed to an agent: so far, or in the
// end.
type TaskResponse struct {
	ID        string     // of the task
	Status    string     // Response… below
	Result    Raw        // of a task that is completed: any value, digit for digit; nil when there is none
	Fault     *TaskFault // why it failed, or was cancelled; of one that failed there always is one
	Metadata  TaskMetadata
	Artifacts []Artifact
	Question  string   // what is asked where input is required: there always is something
	Options   []Option // the answers that it allows; none: any will do

	Document Raw      // all of it, on one line, digit for digit; nil of our own
	Notes    []string // what is odd, each with its place
}

// The statuses of delegated work.
const (
	ResponsePending       = "pending"     // it was received, and not begun
	ResponseInProgress    = "in_progress" // it is worked on
	ResponseCompleted     = "completed"
	ResponseFailed        = "failed"
	ResponseCancelled     = "cancelled"
	ResponseInputRequired = "input_required" // it goes on with an ActUpdate
)

// ResponseStatuses are all statuses of delegated work.
var ResponseStatuses = []string{
	ResponsePending, ResponseInProgress, ResponseCompleted, ResponseFailed, ResponseCancelled, ResponseInputRequired,
}

// Response is the state as the source of the work sees it: one of
// ResponseStatuses.
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

// TaskMetadata is how the work went. The keys are not all spelled in the same way.
type TaskMetadata struct {
	StartedAt   string `json:"startedAt,omitzero"`
	CompletedAt string `json:"completedAt,omitzero"`
	DurationMS  *int64 `json:"duration_ms,omitzero"` // nil if not said
	Agent       string `json:"agent,omitzero"`       // who did it
	RetryCount  *int64 `json:"retryCount,omitzero"`  // how often it was tried again; nil if not said
}

// Artifact is something that was made. One that is elsewhere has a Ref, and need not
// have its content here: an extension.
type Artifact struct {
	Name    string `json:"name"`
	Type    string `json:"type"` // a MIME type
	Content string `json:"content"`
	Ref     string `json:"ref,omitzero"`
}

// AppendTaskResponse appends a response of our own as one line: what another agent
// has said is its Document. Of what does not go with its status nothing is written,
// and one that failed without a fault has that of an agent that does not say why.
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

// appendUndone appends the response to work that was refused. The id is given as it
// stood.
func appendUndone(b, id []byte, why *Error) []byte {
	b = append(append(b, `{"id":`...), id...)
	b = object.AppendMember(b, "status", ResponseFailed)
	return append(FaultOf(why).append(object.AppendKey(b, "error")), '}', '\n')
}

// appendQuestion says a question in both of the ways in which it is read.
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
