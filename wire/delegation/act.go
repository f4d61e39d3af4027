package delegation

import (
	"slices"

	"orchestrator/wire/object"
)

// A Act is a message about an existing task, with the id of the task. Its types are
// reserved: a task request has another type.
type Act struct {
	// The id of the task.
	ID string `json:"id" schema:"label"`
	// The type: a status query, an update with the input that the task waits for, or a cancellation.
	Type string `json:"type" schema:"enum=delegation.Acts"`

	Input  object.Raw `json:"-"` // the input of an update: any value, digit for digit
	Reason string     `json:"-"` // why it is cancelled, or ""

	// The payload, which depends on the type.
	Payload object.Raw `json:"payload"` // kept only if an update has members other than the input

	Document object.Raw `json:"-"` // all of it, on one line, digit for digit
}

// The types of acts.
const (
	ActStatus = "task.status" // requests the status of the task
	ActUpdate = "task.update" // provides the input that the task waits for
	ActCancel = "task.cancel" // requests its cancellation
)

var Acts = []string{ActStatus, ActUpdate, ActCancel}

// IsAct reports whether a type is the type of an act and not of a task request.
func IsAct(kind string) bool { return slices.Contains(Acts, kind) }

// ReadAct is ReadAct for a document that has been split into members.
func ReadAct(document object.Raw, members []object.Member, check Ambiguity) (*Act, *object.Error) {
	p := NewDecoder(members, "")
	a := &Act{Document: document, ID: readLabel(p, "id", object.Required), Type: p.OneOf("type", object.Required, Acts)}
	p.Inside("payload", object.Required, func(in *object.Decoder) {
		switch a.Type {
		case ActUpdate:
			a.Input = readAny(in, "input")
			if len(in.Members) > 1 {
				a.Payload = append(object.Raw(nil), object.Once(members, "payload")...)
			}
		case ActCancel:
			a.Reason = in.Text("reason", object.Optional)
		}
	})
	checkKeys(p, check)
	if err := object.ErrorOf(p.Issues.Problems); err != nil {
		return nil, err
	}
	return a, nil
}

// readAny reads a required value that may be null.
func readAny(p *object.Decoder, key string) object.Raw {
	if value := object.Once(p.Members, key); object.IsNull(value) {
		return object.Raw("null")
	}
	if !p.Has(key, object.Required) {
		return nil
	}
	return p.Value(key)
}

// AppendTaskAct appends an act as one line.
func AppendAct(b []byte, a *Act) []byte {
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
