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

// A PlainReader reads the tasks of a snapshot, one after the other. A text that two neighboring tasks have in
// common, such as their description, is in memory once.
type PlainReader struct {
	members, inside                          []object.Member
	name, kind, description, role, submitter string // of the task before
}

// Read reads a waiting task. It reports false for another one.
func (p *PlainReader) Read(text []byte, s *SnapshotTask) (ok bool) {
	if object.Numbered(text) {
		return false
	}
	var view, status, state []byte
	var way string
	p.members, p.inside, _, ok = object.ScanBoth(text, object.PlainDepth, p.members, "view", p.inside)
	v := &s.View
	ok = ok && object.ReadMembers(p.members,
		"view", &view, "run", &s.Run, "way", &way, "created", &s.Created, "ended", &s.Ended,
	) && p.inside != nil && object.ReadMembers(p.inside,
		"id", &v.ID, "name", object.Likely{Text: &v.Name, Before: &p.name}, "type", object.Likely{Text: &v.Type, Before: &p.kind},
		"status", &status, "state", &state, "description", object.Likely{Text: &v.Description, Before: &p.description},
		"payload", &v.Payload, "priority", &v.Priority, "requiredRole", object.OrNull{Text: &v.RequiredRole, Before: &p.role},
		"submittedBy", object.Likely{Text: &v.SubmittedBy, Before: &p.submitter}, "createdAt", &v.CreatedAt,
		"requiredCapabilities", object.Fixed("[]"), "dependencies", object.Fixed("[]"), "assignedTo", object.Fixed("null"), "result", object.Fixed("null"),
	)
	v.State, v.Status = wire.TaskPending, wire.TaskPending.Status()
	p.name, p.kind, p.description, p.role, p.submitter = v.Name, v.Type, v.Description, v.RequiredRole, v.SubmittedBy
	s.Way, s.plain = Way(way), ok
	return ok && v.ID != "" && is(state, string(v.State)) && is(status, v.Status)
}

// is reports whether a JSON value is a string with a text.
func is(value []byte, text string) bool {
	return len(value) >= 2 && value[0] == '"' && string(object.Unquote(value)) == text
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
