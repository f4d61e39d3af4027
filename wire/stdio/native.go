package stdio

import (
	"fmt"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
)

// native reads a request or an event, given the members of its payload.
func (r *Reader) native(line []byte, members []object.Member) wire.Message {
	kind, op := readType(r.known.Type)
	if strings.HasPrefix(kind, "request:") {
		return r.request(line, kind, op, members)
	}
	return r.event(kind, members)
}

// A messageKind is a message type that agents may send, and its operation if it is a request.
type messageKind struct {
	name string
	of   *wire.Operation
}

// kinds holds one string for each type of requests, and of the most frequent events.
var kinds = func() map[string]messageKind {
	found := make(map[string]messageKind)
	for _, o := range wire.Operations {
		found["request:"+o.Name] = messageKind{name: "request:" + o.Name, of: o}
	}
	for _, name := range []string{"progress", "log", "error", "question"} {
		found["event:"+name] = messageKind{name: "event:" + name}
	}
	return found
}()

// readType returns a message type and its operation, if it has one. It does not allocate for the
// types in kinds.
func readType(value []byte) (name string, of *wire.Operation) {
	inner := object.Unquote(value)
	if known, ok := kinds[string(inner)]; ok {
		return known.name, known.of
	}
	return string(inner), nil
}

// request reads the envelope of a request, given its operation, if that exists, and the members
// of its payload. An error is answered if the request has an id.
func (r *Reader) request(line []byte, kind string, op *wire.Operation, members []object.Member) wire.Message {
	k := &r.known
	refused := func(err *wire.Error) wire.Message {
		return &wire.Refused{ID: dialect.Correlatable(k.ID), Type: kind, Request: true, Err: err}
	}
	err := identity(k)
	if err == nil {
		err = r.envelope()
	}
	if err == nil {
		err = moment(k)
	}
	if err != nil {
		return refused(err)
	}
	var q *wire.Request
	if op == nil || op.Writes { // it may be kept
		q = new(wire.Request)
		q.ID, _ = object.Text(k.ID)
		q.Timestamp, _ = object.Text(k.Timestamp)
	} else {
		q = r.reads.requests.next()
		q.ID, q.Timestamp = r.reads.text(k.ID), r.reads.text(k.Timestamp)
	}
	q.Operation, q.Payload, q.Declared, q.Members = kind[len("request:"):], body(k), op, members
	if op != nil && op.Stable {
		r.shapes.keep(line, k, op)
	}
	return q
}

// again returns the request in a line of a shape.
func (r *Reader) again(line []byte, s *shape) wire.Message {
	if s.repeat == nil {
		s.repeat = new(wire.Repeat)
	}
	q := r.reads.requests.next()
	q.ID, q.Timestamp = r.reads.text(line[s.id.from:s.id.to]), r.reads.text(line[s.time.from:s.time.to])
	q.Operation, q.Declared, q.Repeat = s.operation.Name, s.operation, s.repeat
	if s.payload.to == 0 {
		q.Payload = []byte("{}")
	} else {
		q.Payload = line[s.payload.from:s.payload.to]
	}
	return q
}

// event reads the envelope of an event. An event has no answer, so a missing timestamp is not an
// error.
func (r *Reader) event(kind string, members []object.Member) wire.Message {
	k := &r.known
	err := identity(k)
	if err == nil {
		err = r.envelope()
	}
	if err != nil {
		return &wire.Refused{ID: dialect.Correlatable(k.ID), Type: kind, Err: err}
	}
	var e *wire.AgentEvent
	if kind == "event:log" { // it is not kept
		e = &r.reads.log
		*e = wire.AgentEvent{ID: r.reads.text(k.ID), Timestamp: r.reads.text(k.Timestamp)}
	} else {
		e = new(wire.AgentEvent)
		e.ID, _ = object.Text(k.ID)
		e.Timestamp, _ = object.Text(k.Timestamp)
	}
	e.Name, e.Payload, e.Members = kind[len("event:"):], body(k), members
	return e
}

// maxIDLength is the maximum length of an id, in bytes.
const maxIDLength = 4096

// identity checks the id, which is any non-empty string.
func identity(k *dialect.Keys) *wire.Error {
	switch {
	case k.ID == nil:
		return object.Invalid("/id", "id is missing")
	case k.ID[0] != '"':
		return object.Invalid("/id", "id must be a string")
	case len(k.ID) == len(`""`):
		return object.Invalid("/id", "id must not be empty")
	case len(k.ID) > maxIDLength && len(object.Unquote(k.ID)) > maxIDLength: // the id is stored with the outcome
		return object.Invalid("/id", fmt.Sprintf("id must not be longer than %d bytes", maxIDLength))
	}
	return nil
}

// moment checks the time of a request.
func moment(k *dialect.Keys) *wire.Error {
	if plainTime(k.Timestamp) {
		return nil
	}
	when, ok := object.Text(k.Timestamp)
	switch {
	case k.Timestamp == nil:
		return object.Invalid("/timestamp", "timestamp is missing")
	case !ok:
		return object.Invalid("/timestamp", "timestamp must be a string")
	}
	if _, ok := object.ParseTime(when); !ok {
		return object.Invalid("/timestamp", fmt.Sprintf("%.40q is not an ISO 8601 time", when))
	}
	return nil
}

// envelope checks the common members of requests and events.
func (r *Reader) envelope() *wire.Error {
	k := &r.known
	if k.AgentID != nil {
		switch {
		case k.AgentID[0] != '"':
			return object.Invalid("/agentId", "agentId must be a string")
		case string(object.Unquote(k.AgentID)) != r.Agent:
			return &wire.Error{
				Code:    wire.CodeDenied,
				Message: fmt.Sprintf("agentId is %q, but this is the stream of %q", object.Unquote(k.AgentID), r.Agent),
				Details: map[string]any{"pointer": "/agentId"},
			}
		}
	}
	if k.Payload != nil && !object.IsObject(k.Payload) {
		return object.Invalid("/payload", "payload must be an object")
	}
	return nil
}

// body returns the payload. A missing payload is an empty object.
func body(k *dialect.Keys) []byte {
	if k.Payload == nil {
		return []byte("{}")
	}
	return k.Payload
}
