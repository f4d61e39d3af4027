package stdio

import (
	"bytes"
	"fmt"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// session reads a session message. Its sender must be the agent of the line. A message of
// another sender to this agent is an echo of a delivered message.
func (r *Reader) session(line []byte) wire.Message {
	s, from := wire.SessionHead(r.room), r.sender()
	switch {
	case from == "" || from == r.Agent:
	case session.AgentNamed(object.Once(r.room, "to_agent")) == r.Agent:
		return wire.Log{Why: "an echo of a session message"}
	default:
		s.Err = object.Denied("/from_agent/agent_id", fmt.Sprintf("agent_id is %.80q, but this is the stream of %q", from, r.Agent))
	}
	s.Document = r.keep(line)
	if s.Err == nil {
		s.Message, s.Err = session.ReadMembers(s.Document, r.room, "")
	}
	if s.Err == nil {
		s.Err = object.RefuseDuplicate(s.Document, "")
	}
	if s.Err != nil {
		s.Message = nil
	}
	return s
}

// keep copies a line whose members are read next. The members are then those of the copy, so
// that a later reader of the copy finds the same.
func (r *Reader) keep(line []byte) wire.Raw {
	line = bytes.TrimSpace(line)
	document := object.Clone(line)
	if len(document) != len(line) {
		r.room, _, _ = object.Scan(document, r.Depth, r.room)
	}
	return document
}

// sender returns the agent that the message names as its sender, or "" if it is unknown.
func (r *Reader) sender() string { return session.AgentNamed(object.Once(r.room, "from_agent")) }

// The values of Refused.Type for delegated work.
const (
	typeTaskRequest  = "task:request"
	typeTaskResponse = "task:response"
	typeTaskAct      = "task:" // followed by the part of the act's type after the dot
)

// given returns the id of the task that a line is about, and whether this agent has or had it.
// For a duplicate id it returns the last, as most JSON decoders do, and given is true if it
// holds for any.
func (r *Reader) given() (id string, given bool) {
	for i := range r.room {
		if string(r.room[i].Key) == "id" {
			id, _ = object.Text(r.room[i].Value)
			given = given || id != "" && r.Given != nil && r.Given(id)
		}
	}
	return id, given
}

// The operations of delegated work, without their prefix. Bare lines request them as well.
const (
	operationSubmitTask = "submit-task-request" // its payload is the task request
	operationGetTask    = "get-task-response"
	operationUpdateTask = "update-task-request"
	operationCancelTask = "cancel-task"
)

// taskRequest reads a request for work.
func (r *Reader) taskRequest(line []byte) wire.Message {
	id, given := r.given()
	if given {
		return wire.Log{Why: "an echo of a task request"}
	}
	request, err := delegation.ReadRequest(r.keep(line), r.room, "", dialect.Ambiguous)
	if err == nil {
		err = object.RefuseDuplicate(line, "")
	}
	if err == nil && request.Routing.Source != "" && request.Routing.Source != r.Agent {
		err = object.Denied("/routing/source", fmt.Sprintf("source is %.80q, but this is the stream of %q", request.Routing.Source, r.Agent))
	}
	if err != nil {
		return r.refusedTask(dialect.TaskRequest, typeTaskRequest, err)
	}
	return &wire.Request{ID: id, Operation: operationSubmitTask, Body: request, Sum: request.Sum, Form: dialect.TaskRequest}
}

// taskAct reads an act on a task by its source.
func (r *Reader) taskAct(line []byte) wire.Message {
	id, given := r.given()
	if given {
		return wire.Log{Why: "an echo of a message about a task: only its agent reports its status"}
	}
	act, err := delegation.ReadAct(r.keep(line), r.room, dialect.Ambiguous)
	if err == nil {
		err = object.RefuseDuplicate(line, "")
	}
	if err != nil {
		return r.refusedTask(dialect.TaskAct, r.typeOfAct(), err)
	}
	asked := &wire.Request{ID: id, Form: dialect.TaskAct}
	switch act.Type {
	case delegation.ActStatus:
		asked.Operation, asked.Body = operationGetTask, &wire.GetTaskResponse{TaskID: id, Check: true}
	case delegation.ActUpdate:
		asked.Operation, asked.Body = operationUpdateTask, &wire.UpdateTaskRequest{TaskID: id, Input: act.Input, Payload: act.Payload}
	case delegation.ActCancel:
		asked.Operation, asked.Body = operationCancelTask, &wire.CancelTask{TaskID: id, Reason: act.Reason}
	}
	return asked
}

// taskResponse reads a task response. A line is a response only if this agent has the task,
// since many programs print objects with an id and a status.
func (r *Reader) taskResponse(line []byte) wire.Message {
	id, given := r.given()
	if !given {
		return wire.Log{}
	}
	response, err := delegation.ReadResponse(r.keep(line), r.room, dialect.Ambiguous)
	if err == nil {
		err = object.RefuseDuplicate(line, "")
	}
	if err == nil {
		err = response.RefsOfOthers()
	}
	if err != nil {
		return r.refusedTask(dialect.TaskAct, typeTaskResponse, err)
	}
	return &wire.AgentEvent{ID: id, Name: wire.ReportTaskResponse, Body: response}
}

// typeOfAct returns the value of Refused.Type for an act.
func (r *Reader) typeOfAct() string {
	kind, _ := object.Text(r.known.Type)
	return typeTaskAct + kind[len("task."):]
}

func (r *Reader) refusedTask(form dialect.Dialect, kind string, err *wire.Error) *wire.Refused {
	id := bytes.Clone(dialect.Correlatable(r.known.ID))
	return &wire.Refused{ID: id, Type: kind, Request: true, Form: form, Err: err}
}

// source returns the agent that a request names as its source, or "". It reports false if the
// source cannot be read.
func (r *Reader) source() (name string, known bool) {
	if !object.IsObject(r.known.Routing) {
		return "", true
	}
	var room [4]object.Member
	o, err := object.Open(r.known.Routing, object.AnyDepth, "", room[:0])
	name = o.Text("source")
	return name, err == nil && o.Err() == nil
}
