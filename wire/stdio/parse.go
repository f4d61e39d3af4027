package stdio

import (
	"orchestrator/wire"
	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
)

// Parse reads a line. A line that begins with another byte than a bracket is log.
func (r *Reader) Parse(line []byte) wire.Message {
	if s := r.shapes.of(line); s != nil {
		return r.again(line, s)
	}
	s := object.Scanner{Text: line}
	if s.Space(); s.At == len(line) || line[s.At] != '{' && line[s.At] != '[' {
		return wire.Log{}
	}
	members, inner, why, ok := object.ScanBoth(line, r.Depth, r.room, "payload", r.inside)
	if inner != nil {
		r.inside = inner
	}
	if !ok && why != object.TooDeep && why != object.HalfOf { // these are JSON, and may be requests
		if why == "" && isBatch(line) {
			why = "it contains several calls: send one a line"
		}
		return asLog(why, nearly(line))
	}
	r.room = members
	if ok {
		why = ""
	}
	return r.read(line, inner, why)
}

// ParseHead returns the message for the head of an oversized line. It refuses a request whose
// type and id are in the head, so that its sender gets an answer. Any other line is log. The reason must
// not be empty.
func (r *Reader) ParseHead(head []byte, why string) wire.Message {
	r.room, _, _ = object.Scan(head, r.Depth, r.room)
	return r.read(head, nil, why)
}

// read reads an object by its class, given its members and those of its payload. If it was read
// only in part, cut is the reason, otherwise "".
func (r *Reader) read(line []byte, payload []object.Member, cut string) wire.Message {
	k := &r.known
	k.Gather(r.room)
	if cut != "" {
		k.Cut(behind(line, r.room))
	}
	class, echo := k.Classify(r.Capability)
	switch {
	case cut != "" || k.Twice != "":
		return r.damaged(line, class, echo, cut)
	case echo:
		return r.echo(class)
	}
	switch class {
	case dialect.Native:
		return r.native(line, payload)
	case dialect.ToolCall:
		return r.call()
	case dialect.Session:
		return r.session(line)
	case dialect.Mail:
		return &wire.Request{ID: r.mailKey(), Operation: operationMail, Payload: line, Form: dialect.Mail}
	case dialect.TaskAct:
		return r.taskAct(line)
	case dialect.TaskRequest:
		return r.taskRequest(line)
	case dialect.TaskResponse:
		return r.taskResponse(line)
	}
	return r.unknown()
}

// operationMail is the operation that bare mail requests.
const operationMail = "send-message"

// mailKey returns the idempotency key of mail, or "" if it has none. The answer repeats it. A
// duplicate key is refused with the payload.
func (r *Reader) mailKey() string {
	line := object.Reader{Members: r.room}
	return line.Text("idempotency_key")
}
