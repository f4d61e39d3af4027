package wire

import (
	"slices"

	"orchestrator/wire/object"
)

// TaskAct is said about a task that was asked for before, under the same id. A
// request has other types: these three are reserved.
type TaskAct struct {
	ID     string // of the task
	Type   string // Act… below
	Input  Raw    // what an update brings: any value, digit for digit
	Reason string // why it is cancelled; "" if not said

	// Payload is the whole payload of an update that has other members beside the input.
	Payload Raw

	Document Raw // all of it, on one line, digit for digit
}

// The types of acts.
const (
	ActStatus = "task.status" // asks where the task stands
	ActUpdate = "task.update" // brings what the task needs to go on
	ActCancel = "task.cancel" // asks to give it up
)

var taskActs = []string{ActStatus, ActUpdate, ActCancel}

// IsTaskAct reports whether a type is one of an act, and so none of a request.
func IsTaskAct(kind string) bool { return slices.Contains(taskActs, kind) }

// ReadTaskAct reads what is said about a task that there is, in the way of
// ReadTaskRequest. The input of an update may be any value: null is one too.
func ReadTaskAct(line []byte, depth int) (*TaskAct, *Error) {
	document, members, err := openLine(line, depth)
	if err != nil {
		return nil, err
	}
	return readTaskAct(document, members)
}

// readTaskAct is ReadTaskAct for a document that has been taken apart.
func readTaskAct(document Raw, members []object.Member) (*TaskAct, *Error) {
	p := delegated(members, "")
	a := &TaskAct{Document: document, ID: readLabel(p, "id", object.Required), Type: p.OneOf("type", object.Required, taskActs)}
	p.Inside("payload", object.Required, func(in *object.Decoder) {
		switch a.Type {
		case ActUpdate:
			a.Input = readAny(in, "input")
			if len(in.Members) > 1 {
				a.Payload = append(Raw(nil), once(members, "payload")...)
			}
		case ActCancel:
			a.Reason = in.Text("reason", object.Optional)
		}
	})
	checkKeys(p)
	if err := object.ErrorOf(p.Issues.Problems); err != nil {
		return nil, err
	}
	return a, nil
}

// readAny is a value that must be there, and may be null.
func readAny(p *object.Decoder, key string) Raw {
	if value := once(p.Members, key); object.IsNull(value) {
		return Raw("null")
	}
	if !p.Has(key, object.Required) {
		return nil
	}
	return p.Value(key)
}

// AppendTaskAct appends an act as one line.
func AppendTaskAct(b []byte, a *TaskAct) []byte {
	b = object.AppendText(append(b, `{"id":`...), a.ID)
	b = object.AppendMember(b, "type", a.Type)
	b = object.AppendKey(b, "payload")
	if a.Payload != nil {
		return append(append(b, a.Payload...), '}', '\n')
	}
	b = append(b, '{')
	switch {
	case a.Type == ActUpdate && a.Input == nil:
		b = append(b, `"input":null`...)
	case a.Type == ActUpdate:
		b = append(append(b, `"input":`...), a.Input...)
	case a.Type == ActCancel && a.Reason != "":
		b = object.AppendText(append(b, `"reason":`...), a.Reason)
	}
	return append(b, '}', '}', '\n')
}
