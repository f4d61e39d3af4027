package state

import (
	"bytes"
	"math"
	"strconv"

	"orchestrator/wire/object"
)

// Encode returns a fact as its record has it. The most frequent facts are written without reflection if they have no
// rare members, because reflection was a fifth of the time of a decision. TestEncode holds both equal. Facts are read
// by reflection: object.ReadPlain took a quarter longer for facts as short as these.
func Encode(f Fact) ([]byte, error) {
	var room [512]byte
	b, ok := appendPlain(room[:0], f)
	if !ok {
		return object.Encode(f)
	}
	return bytes.Clone(b), nil
}

// appendPlain appends a fact. It returns false for one that only reflection can write.
func appendPlain(b []byte, f Fact) ([]byte, bool) {
	switch f := f.(type) {
	case *TaskCreated:
		return f.appendPlain(b)
	case *TaskAssigned:
		return f.appendPlain(b)
	case *TaskStarted:
		return f.appendPlain(b)
	case *TaskProgress:
		return f.appendPlain(b)
	case *TaskDone:
		return f.appendPlain(b)
	}
	return b, false
}

func (t *TaskCreated) appendPlain(b []byte) ([]byte, bool) {
	if t.Dependencies != nil || t.Verify != nil || t.Block != nil || t.Observability != nil || t.Delegated != nil {
		return b, false
	}
	for _, document := range [...][]byte{t.Payload, t.Priority, t.StructuredSpec, t.Requirements} {
		if document != nil && !object.IsCompact(document) {
			return b, false
		}
	}
	b = object.AppendMember(appendHead(b, t.ID, t.Name), "type", t.Type)
	b = object.AppendOptional(b, "description", t.Description)
	b = object.AppendRaw(b, "payload", t.Payload)
	b = object.AppendOptional(b, "required_role", t.RequiredRole)
	if t.RequiredCapabilities != nil {
		b = object.AppendTexts(b, "required_capabilities", t.RequiredCapabilities)
	}
	b = object.AppendRaw(b, "priority", t.Priority)
	b = object.AppendRaw(b, "structured_spec", t.StructuredSpec)
	b = object.AppendRaw(b, "requirements", t.Requirements)
	b = object.AppendOptional(b, "target_repo", t.TargetRepo)
	if t.AcceptanceCriteria != nil {
		b = object.AppendTexts(b, "acceptance_criteria", t.AcceptanceCriteria)
	}
	b = object.AppendOptional(b, "project", t.ProjectID)
	b = object.AppendOptional(b, "session", t.SessionID)
	b = object.AppendOptional(b, "parent", t.Parent)
	b = appendTrue(b, "patient", t.Patient)
	b = appendRequest(b, t.Request)
	b = object.AppendOptional(b, "trace_id", t.TraceID)
	return append(object.AppendOptional(b, "span_id", t.SpanID), '}'), true
}

func (t *TaskAssigned) appendPlain(b []byte) ([]byte, bool) {
	b = appendHead(b, t.ID, t.Name)
	b = object.AppendMember(b, "agent", t.Agent)
	b = object.AppendMember(b, "run", t.Run)
	b = strconv.AppendInt(object.AppendKey(b, "attempt"), int64(t.Attempt), 10)
	b = object.AppendOptional(b, "way", string(t.Way))
	if t.Score != 0 {
		b = strconv.AppendInt(object.AppendKey(b, "score"), int64(t.Score), 10)
	}
	b = appendTrue(b, "plan", t.Plan)
	return append(appendRequest(b, t.Request), '}'), true
}

func (t *TaskStarted) appendPlain(b []byte) ([]byte, bool) {
	b = object.AppendMember(appendHead(b, t.ID, t.Name), "agent", t.Agent)
	return append(appendRequest(b, t.Request), '}'), true
}

func (t *TaskProgress) appendPlain(b []byte) ([]byte, bool) {
	if t.Progress != 0 && !(t.Progress >= 1e-6 && t.Progress < 1e6) || math.Signbit(t.Progress) || t.Output != nil {
		return b, false // others may have an exponent
	}
	b = object.AppendMember(appendHead(b, t.ID, t.Name), "agent", t.Agent)
	b = strconv.AppendFloat(object.AppendKey(b, "progress"), t.Progress, 'f', -1, 64)
	b = object.AppendOptional(b, "message", t.Message)
	b = object.AppendOptional(b, "kind", t.Kind)
	return append(appendRequest(b, t.Request), '}'), true
}

func (t *TaskDone) appendPlain(b []byte) ([]byte, bool) {
	if t.Artifacts != nil || !object.IsCompact(t.Result) {
		return b, false
	}
	b = object.AppendOptional(appendHead(b, t.ID, t.Name), "agent", t.Agent)
	b = object.AppendRaw(b, "result", t.Result)
	b = appendTrue(b, "plain", t.Plain)
	b = appendTrue(b, "merges", t.Merges)
	b = object.AppendOptional(b, "actor", t.Actor)
	return append(appendRequest(b, t.Request), '}'), true
}

// appendHead appends the beginning of a fact about a task.
func appendHead(b []byte, id, name string) []byte {
	return object.AppendMember(object.AppendText(append(b, `{"task":`...), id), "name", name)
}

func appendTrue(b []byte, key string, is bool) []byte {
	if is {
		b = append(object.AppendKey(b, key), "true"...)
	}
	return b
}

func appendRequest(b []byte, r *RequestKey) []byte {
	if r == nil {
		return b
	}
	b = object.AppendText(append(object.AppendKey(b, "request"), `{"id":`...), r.ID)
	b = object.AppendMember(b, "run", r.Run)
	b = object.AppendMember(b, "timestamp", r.Timestamp)
	return append(strconv.AppendUint(object.AppendKey(b, "sum"), r.Sum, 10), '}')
}
