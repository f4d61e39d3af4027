package wire

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"orchestrator/wire/delegation"
	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
)

// ReasonReused is the reason in the details of a refusal if the id of a task request belongs to
// another task.
const ReasonReused = "id_reused"

// GetTaskResponse is the payload of get-task-response.
type GetTaskResponse struct {
	// The id of the task, as in its task request.
	TaskID string `json:"taskId" schema:"nonblank"`
	Check  bool   `json:"-"` // it came as a bare act: the answer is a separate line
}

// UpdateTaskRequest is the payload of update-task-request.
type UpdateTaskRequest struct {
	// The id of the task, as in its task request.
	TaskID string `json:"taskId" schema:"nonblank"`
	// The input that the task needs: any value, also null. Answers of people are texts.
	Input Raw `json:"input" schema:"own,any"`

	Payload Raw `json:"-"` // the whole payload of a bare act, if it has other members
}

func (u *UpdateTaskRequest) read(o *object.Reader) {
	switch u.Input = o.Value("input"); {
	case u.Input != nil:
	case object.IsNull(object.Once(o.Members, "input")):
		u.Input = Raw("null")
	default:
		o.Refuse("input", "is missing")
	}
}

// TaskAnswer answers the operations of delegated work with the task response, unchanged.
type TaskAnswer struct {
	Document Raw
	// Trace is the position of the task in a trace. It is sent beside the answer where the
	// transport allows it, and is not encoded.
	Trace *delegation.Trace
}

// TaskID returns the id of the task of the response.
func (a *TaskAnswer) TaskID() string {
	id, _ := object.Text(object.MemberOf(a.Document, "id"))
	return id
}

// MarshalJSONTo implements json.MarshalerTo.
func (a TaskAnswer) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteValue(a.Document) }

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (a *TaskAnswer) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	value, err := d.ReadValue()
	if err != nil {
		return fmt.Errorf("reading a task response: %w", err)
	}
	a.Document = value.Clone()
	return nil
}

// taskRequest reads the payload of submit-task-request.
func (p *Payloads) taskRequest(payload []byte) (any, *Error) {
	o, err := p.open(payload, nil)
	if err != nil {
		return nil, err
	}
	r, err := delegation.ReadRequest(object.Clone(bytes.TrimSpace(payload)), o.Members, o.Pointer, dialect.Ambiguous)
	if err == nil {
		err = object.RefuseDuplicate(payload, o.Pointer)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// readTrace reads an optional position in a trace. It returns nil if it is missing.
func readTrace(o *object.Reader, key string) *delegation.Trace {
	value := o.Find(key)
	if value == nil {
		return nil
	}
	if !object.IsObject(value) {
		o.Refuse(key, "must be an object")
		return nil
	}
	t, p := new(delegation.Trace), delegation.NewDecoder(nil, o.Pointer)
	p.Enter(o.Below(key), value, func(in *object.Decoder) { *t = delegation.ReadTrace(in) })
	o.Fail(object.ErrorOf(p.Issues.Problems))
	return t
}

// The answers.
var (
	answerTaskResponse = &Answer{Name: "task-response", Of: delegation.Response{}}
)

// delegationOperations are the operations on delegated tasks.
var delegationOperations = []Operation{
	{
		Name: "submit-task-request", Answer: answerTaskResponse, Writes: true, OfTask: true, NoSDK: "Delegate sends it",
		Summary: "Delegate a task with a task request; an agent may also print the request itself",
		About:   "The answer is a task response with the state of the task. A line with the task request itself does the same. The answers are then lines with task responses.",
		Examples: []string{
			`{"id": "tea-7", "type": "weigh_tea", "payload": {"tea": "assam", "cups": 3}, "context": {"conversationId": "breakfast-12", "timestamp": "2026-11-20T09:15:00Z", "priority": "high"}, "routing": {"target": "scale", "delegationChain": ["kitchen"]}, "observability": {"traceId": "5b8aa5a2d2c872e8321cf37308d69df2", "baggage": {"house": "12"}}}`,
			`{"id": "tea-8", "type": "weigh_tea", "payload": {}}`,
		},
		Document: "task-request",
	},
	request[GetTaskResponse](Operation{
		Name: "get-task-response", Answer: answerTaskResponse, NoSDK: "a Delegation sends it",
		Summary:  "Show a task as a task response with its result and artifacts",
		About:    "A task act of the type task.status does the same.",
		Examples: []string{`{"taskId": "tea-7"}`},
	}),
	request[UpdateTaskRequest](Operation{
		Name: "update-task-request", Answer: answerTaskResponse, Writes: true, OfTask: true, NoSDK: "a Delegation sends it",
		Summary: "Give a delegated task the input that its agent waits for",
		About:   "The answer is a task response. A task act of the type task.update does the same.",
		Examples: []string{
			`{"taskId": "tea-7", "input": "with milk"}`,
			`{"taskId": "tea-7", "input": {"milk": true, "sugar": [0, 1.5]}}`,
			`{"taskId": "tea-7", "input": null}`,
		},
	}),
}

// ReadTaskRequest reads a task request and checks it without knowledge of other tasks. The error
// lists all problems, as session.Read does.
//
// Unknown members are kept and forwarded. An optional member that is null counts as missing. The
// type must not be of an act (delegation.IsAct).
func ReadTaskRequest(line []byte, depth int) (*delegation.Request, *object.Error) {
	document, members, err := object.OpenCopy(line, depth)
	if err != nil {
		return nil, err
	}
	return delegation.ReadRequest(document, members, "", dialect.Ambiguous)
}

// ReadTaskAct reads an act, as ReadTaskRequest reads a request. The input of an update may be
// any value, including null.
func ReadTaskAct(line []byte, depth int) (*delegation.Act, *object.Error) {
	document, members, err := object.OpenCopy(line, depth)
	if err != nil {
		return nil, err
	}
	return delegation.ReadAct(document, members, dialect.Ambiguous)
}

// ReadTaskResponse reads a task response, as ReadTaskRequest reads a request. Only a completed
// task may have a result. If a failed task has no error or an incomplete one, the missing
// members are filled in, with a note.
//
// If input is required, the question is the first of these that is not blank: the member
// message, the question in the object input, and the message of the error. The options of input
// are the allowed answers: texts, or objects with a value and a label, without duplicate values.
// The published protocol does not define these members, so errors in them are noted and ignored.
func ReadTaskResponse(line []byte, depth int) (*delegation.Response, *object.Error) {
	document, members, err := object.OpenCopy(line, depth)
	if err != nil {
		return nil, err
	}
	return delegation.ReadResponse(document, members, dialect.Ambiguous)
}

// Response returns the state as the source of the work sees it: one of delegation.Statuses.
func (s TaskState) Response() string {
	switch s {
	case TaskPending, TaskAssigned:
		return delegation.Pending
	case TaskNeedsHuman:
		return delegation.InputRequired
	case TaskDone:
		return delegation.Completed
	case TaskFailed:
		return delegation.Failed
	case TaskCancelled:
		return delegation.Cancelled
	}
	return delegation.InProgress
}
