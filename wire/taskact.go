package wire

import "slices"

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
func readTaskAct(document Raw, members []member) (*TaskAct, *Error) {
	p := delegated(members, "")
	a := &TaskAct{Document: document, ID: p.label("id", needed), Type: p.word("type", needed, taskActs)}
	p.inside("payload", needed, func(in *decoder) {
		switch a.Type {
		case ActUpdate:
			a.Input = in.anything("input")
			if len(in.members) > 1 {
				a.Payload = append(Raw(nil), once(members, "payload")...)
			}
		case ActCancel:
			a.Reason = in.text("reason", optional)
		}
	})
	p.unmistakable()
	if err := refusing(p.all.problems); err != nil {
		return nil, err
	}
	return a, nil
}

// anything is a value that must be there, and may be null.
func (p *decoder) anything(key string) Raw {
	if value := once(p.members, key); isNull(value) {
		return Raw("null")
	}
	if !p.has(key, needed) {
		return nil
	}
	return p.Value(key)
}

// AppendTaskAct appends an act as one line.
func AppendTaskAct(b []byte, a *TaskAct) []byte {
	b = appendText(append(b, `{"id":`...), a.ID)
	b = appendMember(b, "type", a.Type)
	b = appendKey(b, "payload")
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
		b = appendText(append(b, `"reason":`...), a.Reason)
	}
	return append(b, '}', '}', '\n')
}
