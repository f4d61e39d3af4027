package stdio

import (
	"bytes"
	"strings"

	"orchestrator/wire"
	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
)

// damaged returns the message for a line with a duplicate key, or for one that was read only in
// part: then cut is the reason. It refuses messages that certainly come from this agent, so that it
// gets an answer. Any other line is log.
func (r *Reader) damaged(line []byte, class dialect.Dialect, echo bool, cut string) wire.Message {
	k := &r.known
	why, err := cut, object.Invalid("", "the request cannot be taken: "+cut)
	if cut == "" {
		why = "the key " + k.Twice + " stands twice"
		err = object.Invalid("/"+k.Twice, why)
	}
	id := dialect.Correlatable(k.ID)
	switch {
	case echo, cut != "" && k.Twice != "":
	case class == dialect.Native && id != nil:
		if kind, _ := object.Text(k.Type); strings.HasPrefix(kind, "request:") {
			return &wire.Refused{ID: id, Type: kind, Request: true, Err: err}
		}
	case class == dialect.ToolCall && id != nil && cut != "":
		return r.fault(id, rpcInvalidRequest, err)
	case class == dialect.Session:
		return r.spoiled(line, cut == "", why)
	case class == dialect.Mail && cut != "":
		key := r.mailKey()
		return &wire.Refused{ID: dialect.Mail.RawID(key), Type: "request:" + operationMail, Request: true, Form: dialect.Mail, Err: err}
	case class == dialect.TaskAct, class == dialect.TaskRequest, class == dialect.TaskResponse:
		return r.spoiledTask(class, why)
	}
	return wire.Log{Why: why}
}

// spoiled refuses a session message that cannot be read. It refuses only messages of this agent,
// since messages of other agents may be echoes. The document is kept if it is whole.
func (r *Reader) spoiled(line []byte, whole bool, why string) wire.Message {
	if r.sender() != r.Agent || r.Agent == "" {
		return wire.Log{Why: why}
	}
	s := wire.SessionHead(r.room)
	s.Err = object.Invalid("", "the message cannot be taken: "+why)
	if whole {
		s.Document = object.Clone(bytes.TrimSpace(line))
	}
	return s
}

// spoiledTask refuses a message of delegated work that cannot be read. This agent must have the task
// of a response. It must not have the task of a request or an act. A request must not name another agent
// as its source.
func (r *Reader) spoiledTask(class dialect.Dialect, why string) wire.Message {
	id, given := r.given()
	err := object.Invalid("", "the message cannot be taken: "+why)
	switch {
	case id == "" || given != (class == dialect.TaskResponse):
	case class == dialect.TaskResponse:
		return r.refusedTask(dialect.TaskAct, typeTaskResponse, err)
	case class == dialect.TaskAct:
		return r.refusedTask(dialect.TaskAct, r.typeOfAct(), err)
	case r.ours():
		return r.refusedTask(dialect.TaskRequest, typeTaskRequest, err)
	}
	return wire.Log{Why: why}
}

// ours reports whether a request names this agent or no source.
func (r *Reader) ours() bool {
	source, known := r.source()
	return known && (source == "" || source == r.Agent)
}

// behind returns the key after the members of an object that could be read, or "" if there is
// none. Its value is the part that could not be read.
func behind(line []byte, members []object.Member) string {
	s := object.Scanner{Text: line}
	if len(members) == 0 {
		s.Next('{')
	} else {
		last := members[len(members)-1].Value // it ends where its room does: see within
		s.At = cap(line) - cap(last) + len(last)
		s.Next(',')
	}
	s.Space()
	from := s.At
	if !s.Quoted() {
		return ""
	}
	key := line[from:s.At]
	if !s.Next(':') {
		return ""
	}
	return string(object.Unquote(key))
}
