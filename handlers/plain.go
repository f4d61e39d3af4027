package handlers

import (
	"bytes"
	"slices"
	"strconv"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// A restart reads very many tasks of snapshots and facts about new tasks. Those with only the most
// frequent members are read here, and all others by reflection. FuzzPlainDocuments holds both equal.

// A plainMember is a member of an object, and where its value goes; the text of an object is not copied.
type plainMember struct {
	key string
	to  any
}

// A fixed is for a member that must have this value.
type fixed string

// readPlain reads an object. It reports false if that has other members, or if reflection might read
// the text differently.
func readPlain(text []byte, room *[]object.Member, members []plainMember) (ok bool) {
	if bytes.Contains(text, []byte(`\u`)) {
		return false
	}
	if *room, _, ok = object.Scan(text, 128, *room); !ok {
		return false
	}
	for _, m := range *room {
		at := slices.IndexFunc(members, func(p plainMember) bool { return p.key == string(m.Key) })
		if at < 0 || !members[at].read(m.Value) {
			return false
		}
	}
	return true
}

func (p *plainMember) read(value []byte) bool {
	ok, err := true, error(nil)
	switch to := p.to.(type) {
	case *string:
		*to, ok = object.Text(value)
	case *int64:
		*to, err = strconv.ParseInt(string(value), 10, 64)
	case *uint64:
		*to, err = strconv.ParseUint(string(value), 10, 64)
	case *wire.Raw:
		*to = bytes.Clone(value)
	case *[]byte:
		*to, ok = value, *to == nil // reflection would merge two of them
	case fixed:
		ok = string(value) == string(to)
	}
	return ok && err == nil
}

// readPlain reads a waiting task. It reports false for another one.
func (s *snapshotTask) readPlain(text []byte, room *[]object.Member) bool {
	var view []byte
	var state, method string
	v := &s.View
	ok := readPlain(text, room, []plainMember{
		{"view", &view}, {"run", &s.Run}, {"way", &method}, {"created", &s.Created}, {"ended", &s.Ended},
	}) && view != nil && readPlain(view, room, []plainMember{
		{"id", &v.ID}, {"name", &v.Name}, {"type", &v.Type}, {"status", &v.Status}, {"state", &state}, {"description", &v.Description},
		{"payload", &v.Payload}, {"priority", &v.Priority}, {"submittedBy", &v.SubmittedBy}, {"createdAt", &v.CreatedAt},
		{"requiredRole", fixed("null")}, {"requiredCapabilities", fixed("[]")}, {"dependencies", fixed("[]")}, {"assignedTo", fixed("null")}, {"result", fixed("null")},
	})
	s.Way, v.State = way(method), wire.TaskPending
	return ok && v.ID != "" && state == string(v.State) && v.Status == v.State.Status()
}

// readPlain reads the fact of a new task. It reports false for one with rare members.
func (t *taskCreated) readPlain(text []byte, room *[]object.Member) bool {
	var request []byte
	ok := readPlain(text, room, []plainMember{
		{"task", &t.ID}, {"name", &t.Name}, {"type", &t.Type}, {"description", &t.Description}, {"payload", &t.Payload},
		{"priority", &t.Priority}, {"required_role", &t.RequiredRole}, {"request", &request},
	})
	r := &requestKey{}
	if ok && request != nil {
		t.Request = r
	}
	return ok && (request == nil || readPlain(request, room, []plainMember{{"id", &r.ID}, {"run", &r.Run}, {"timestamp", &r.Timestamp}, {"sum", &r.Sum}}))
}
