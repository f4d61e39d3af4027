package state

import (
	"strconv"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// A restart reads very many tasks of snapshots and facts about new tasks. If they have only the
// most frequent members, they are written and read here, otherwise by reflection.
// FuzzPlainDocuments and requireSound hold both equal.

// AppendPlain appends a task without rare parts as a snapshot has it.
func (t *Task) AppendPlain(b []byte) []byte {
	v := t.View.Shown()
	b = v.Append(append(b, `{"view":`...))
	b = object.AppendOptional(b, "run", t.Run)
	if t.Deaths != 0 {
		b = strconv.AppendInt(object.AppendKey(b, "deaths"), int64(t.Deaths), 10)
	}
	b = strconv.AppendInt(object.AppendKey(b, "created"), t.Number, 10)
	if t.Ended != 0 {
		b = strconv.AppendInt(object.AppendKey(b, "ended"), t.Ended, 10)
	}
	if t.result != 0 {
		b = strconv.AppendInt(object.AppendKey(b, "result"), int64(t.result), 10)
	}
	if t.Stub {
		b = append(b, `,"stub":true`...)
	}
	return append(object.AppendOptional(b, "way", string(t.Way)), '}')
}

// ReadPlain reads a waiting task. It reports false for another one.
func (s *SnapshotTask) ReadPlain(text []byte, room *[]object.Member) bool {
	var view []byte
	var state, method string
	v := &s.View
	ok := object.ReadPlain(text, room,
		"view", &view, "run", &s.Run, "way", &method, "created", &s.Created, "ended", &s.Ended,
	) && view != nil && object.ReadPlain(view, room,
		"id", &v.ID, "name", &v.Name, "type", &v.Type, "status", &v.Status, "state", &state, "description", &v.Description,
		"payload", &v.Payload, "priority", &v.Priority, "submittedBy", &v.SubmittedBy, "createdAt", &v.CreatedAt,
		"requiredRole", object.Fixed("null"), "requiredCapabilities", object.Fixed("[]"), "dependencies", object.Fixed("[]"), "assignedTo", object.Fixed("null"), "result", object.Fixed("null"),
	)
	s.Way, v.State = Way(method), wire.TaskPending
	return ok && v.ID != "" && state == string(v.State) && v.Status == v.State.Status()
}

// ReadPlain reads the fact of a new task. It reports false for one with rare members.
func (t *TaskCreated) ReadPlain(text []byte, room *[]object.Member) bool {
	var request []byte
	ok := object.ReadPlain(text, room,
		"task", &t.ID, "name", &t.Name, "type", &t.Type, "description", &t.Description, "payload", &t.Payload,
		"priority", &t.Priority, "required_role", &t.RequiredRole, "request", &request,
	)
	r := &RequestKey{}
	if ok && request != nil {
		t.Request = r
	}
	return ok && (request == nil || object.ReadPlain(request, room, "id", &r.ID, "run", &r.Run, "timestamp", &r.Timestamp, "sum", &r.Sum))
}
