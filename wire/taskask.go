package wire

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// The operations of delegated work, without their prefix. They can be asked for as
// every other, or said as the lines that they are: see FormTask and FormAct.
const (
	operationSubmitTask = "submit-task-request" // its payload is the task request
	operationGetTask    = "get-task-response"
	operationUpdateTask = "update-task-request"
	operationCancelTask = "cancel-task"
)

// ReasonReused is the reason in the details of a refusal that says that the id of a
// task request is that of another task.
const ReasonReused = "id_reused"

// MarshalJSONTo implements the encoder's interface: a request is its document, or one
// is made of it.
func (r *TaskRequest) MarshalJSONTo(e *jsontext.Encoder) error {
	return e.WriteValue(r.Forwarded(Forwarding{}))
}

// GetTaskResponse is the payload of get-task-response.
type GetTaskResponse struct {
	TaskID string `json:"taskId"`
	Check  bool   `json:"-"` // it was said as an act: the answer is a line of its own
}

// readGetTaskResponse reads a GetTaskResponse.
func readGetTaskResponse(o *Object) *GetTaskResponse {
	return &GetTaskResponse{TaskID: o.NeedText("taskId")}
}

// UpdateTaskRequest is the payload of update-task-request.
type UpdateTaskRequest struct {
	TaskID string `json:"taskId"`
	Input  Raw    `json:"input"` // what the task needs to go on: any value, digit for digit

	Payload Raw `json:"-"` // all that a line says, if it says more
}

// readUpdateTaskRequest reads an UpdateTaskRequest. The input may be null, but must
// be there.
func readUpdateTaskRequest(o *Object) *UpdateTaskRequest {
	const key = "input"
	u := &UpdateTaskRequest{TaskID: o.NeedText("taskId"), Input: o.Value(key)}
	switch {
	case u.Input != nil:
	case isNull(once(o.members, key)):
		u.Input = Raw("null")
	default:
		o.Refuse(key, "is missing")
	}
	return u
}

// TaskAnswer answers the operations of delegated work: with the task response, as
// it is.
type TaskAnswer struct {
	Document Raw
	// Trace is where the task stands in a trace. It goes beside the answer, where there
	// is a place for it, and is not spelled: one that was read has none.
	Trace *TaskTrace
}

// TaskID is the id of the task that the response is about.
func (a *TaskAnswer) TaskID() string {
	id, _ := text(MemberOf(a.Document, "id"))
	return id
}

// MarshalJSONTo implements the encoder's interface.
func (a TaskAnswer) MarshalJSONTo(e *jsontext.Encoder) error { return e.WriteValue(a.Document) }

// UnmarshalJSONFrom implements the decoder's interface.
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
	o, err := p.open(payload)
	if err != nil {
		return nil, err
	}
	r, err := readTaskRequest(keep(bytes.TrimSpace(payload)), o.members, o.pointer)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// trace is an optional place in a trace; nil when it is missing.
func (o *Object) trace(key string) *TaskTrace {
	value := o.find(key)
	if value == nil {
		return nil
	}
	if !isObject(value) {
		o.Refuse(key, "must be an object")
		return nil
	}
	t, p := new(TaskTrace), delegated(nil, o.pointer)
	p.enter(o.below(key), value, func(in *decoder) { *t = in.taskTrace() })
	o.take(refusing(p.all.problems))
	return t
}
