package handlers

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// A restart reads very many documents of two kinds: tasks in a snapshot, and facts about new tasks.
// Those that have only the most frequent members are read here, several times as fast as by reflection.
// All others are read by reflection, and TestPlainDocuments holds the two equal.

// snapshotTasks are the tasks of a snapshot. They are written and read one at a time, because all of
// them together need more memory than the State.
type snapshotTasks struct {
	of   []*task             // while they are written
	each func(*snapshotTask) // while they are read
}

// MarshalJSONTo implements the encoder's interface.
func (s *snapshotTasks) MarshalJSONTo(e *jsontext.Encoder) error {
	if err := e.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	for _, k := range s.of {
		kept := k.snapshot()
		if err := json.MarshalEncode(e, &kept); err != nil {
			return err
		}
	}
	return e.WriteToken(jsontext.EndArray)
}

// UnmarshalJSONFrom implements the decoder's interface.
func (s *snapshotTasks) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	var room []object.Member
	for d.PeekKind() == '{' {
		text, err := d.ReadValue()
		if err != nil {
			return err
		}
		var t snapshotTask
		if !t.readPlain(text, &room) {
			t = snapshotTask{}
			if err := object.DecodeOwn(text, &t); err != nil {
				return err
			}
		}
		s.each(&t)
	}
	_, err := d.ReadToken()
	return err
}

// openPlain takes a document apart. It reports false for texts that reflection may read differently.
func openPlain(text []byte, room *[]object.Member) (ok bool) {
	const depth = 128
	if bytes.Contains(text, []byte(`\u`)) {
		return false
	}
	*room, _, ok = object.Scan(text, depth, *room)
	return ok
}

// readPlain reads a task without rare members. It reports false if it has others.
func (s *snapshotTask) readPlain(text []byte, room *[]object.Member) (ok bool) {
	if ok = openPlain(text, room); !ok {
		return false
	}
	var view []byte
	for _, m := range *room {
		switch string(m.Key) {
		case "view":
			view, ok = m.Value, view == nil
		case "run":
			s.Run, ok = object.Text(m.Value)
		case "way":
			var method string
			method, ok = object.Text(m.Value)
			s.Way = way(method)
		case "created":
			s.Created, ok = plainNumber(m.Value)
		case "ended":
			s.Ended, ok = plainNumber(m.Value)
		default:
			return false
		}
		if !ok {
			return false
		}
	}
	return view != nil && readPlainView(view, &s.View, room)
}

// readPlainView reads a wire.Task without rare members.
func readPlainView(text []byte, v *wire.Task, room *[]object.Member) (ok bool) {
	if ok = openPlain(text, room); !ok {
		return false
	}
	for _, m := range *room {
		switch key := string(m.Key); key {
		case "id":
			v.ID, ok = object.Text(m.Value)
		case "name":
			v.Name, ok = object.Text(m.Value)
		case "type":
			v.Type, ok = object.Text(m.Value)
		case "description":
			v.Description, ok = object.Text(m.Value)
		case "state":
			v.State, ok = plainState(m.Value)
		case "status":
			v.Status, ok = object.Text(m.Value)
		case "payload":
			v.Payload = append(wire.Raw(nil), m.Value...)
		case "priority":
			v.Priority = append(wire.Raw(nil), m.Value...)
		case "submittedBy":
			v.SubmittedBy, ok = object.Text(m.Value)
		case "createdAt":
			v.CreatedAt, ok = object.Text(m.Value)
		case "requiredRole", "assignedTo", "result": // of a waiting task that any agent may have
			ok = object.IsNull(m.Value)
		case "requiredCapabilities", "dependencies":
			ok = string(m.Value) == "[]"
		default:
			return false
		}
		if !ok {
			return false
		}
	}
	return v.ID != "" && v.State != "" && v.Status == v.State.Status()
}

// plainState returns the only state of which there are many tasks.
func plainState(value []byte) (wire.TaskState, bool) {
	return wire.TaskPending, string(value) == `"`+string(wire.TaskPending)+`"`
}

// plainNumber reads a whole number of at most 18 digits.
func plainNumber(value []byte) (int64, bool) {
	if len(value) == 0 || len(value) > 18 || value[0] == '-' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	return n, err == nil
}

// readPlain reads the fact of a new task without rare members.
func (t *taskCreated) readPlain(text []byte, room *[]object.Member) (ok bool) {
	if ok = openPlain(text, room); !ok {
		return false
	}
	var request []byte
	for _, m := range *room {
		switch string(m.Key) {
		case "task":
			t.ID, ok = object.Text(m.Value)
		case "name":
			t.Name, ok = object.Text(m.Value)
		case "type":
			t.Type, ok = object.Text(m.Value)
		case "description":
			t.Description, ok = object.Text(m.Value)
		case "payload":
			t.Payload = append(wire.Raw(nil), m.Value...)
		case "priority":
			t.Priority = append(wire.Raw(nil), m.Value...)
		case "required_role":
			t.RequiredRole, ok = object.Text(m.Value)
		case "request":
			request, ok = m.Value, request == nil
		default:
			return false
		}
		if !ok {
			return false
		}
	}
	if request == nil {
		return true
	}
	t.Request = new(requestKey)
	return t.Request.readPlain(request, room)
}

func (r *requestKey) readPlain(text []byte, room *[]object.Member) (ok bool) {
	if ok = openPlain(text, room); !ok {
		return false
	}
	for _, m := range *room {
		switch string(m.Key) {
		case "id":
			r.ID, ok = object.Text(m.Value)
		case "run":
			r.Run, ok = object.Text(m.Value)
		case "timestamp":
			r.Timestamp, ok = object.Text(m.Value)
		case "sum":
			var err error
			r.Sum, err = strconv.ParseUint(string(m.Value), 10, 64)
			ok = err == nil
		default:
			return false
		}
		if !ok {
			return false
		}
	}
	return true
}
