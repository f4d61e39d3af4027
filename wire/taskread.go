package wire

import (
	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
)

// ReadTaskRequest reads a task request and checks it without knowledge of other tasks. The error
// lists all problems, as that of session.Read does.
//
// Unknown members are kept and forwarded. An optional member that is null counts as missing. The
// type must not be that of an act (delegation.IsAct).
func ReadTaskRequest(line []byte, depth int) (*delegation.Request, *object.Error) {
	document, members, err := object.OpenCopy(line, depth)
	if err != nil {
		return nil, err
	}
	return delegation.ReadRequest(document, members, "", ambiguous)
}

// ReadTaskAct reads an act, as ReadTaskRequest reads a request. The input of an update may be
// any value, including null.
func ReadTaskAct(line []byte, depth int) (*delegation.Act, *object.Error) {
	document, members, err := object.OpenCopy(line, depth)
	if err != nil {
		return nil, err
	}
	return delegation.ReadAct(document, members, ambiguous)
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
	return delegation.ReadResponse(document, members, ambiguous)
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
