package wire

import (
	"orchestrator/wire/activity"
	"orchestrator/wire/object"
)

// ReportTaskResponse is the name of an AgentEvent that is a bare task response. Its Body is a
// *TaskResponse.
const ReportTaskResponse = "task-response"

// CheckLog returns the error that Report returns for an event:log. It does not decode the
// payload, because the line is kept unchanged.
func (p *Payloads) CheckLog(r *AgentEvent) *Error {
	if isPlainLog(r.Members) {
		return nil
	}
	o, err := p.open(r.Payload, r.Members)
	if err != nil {
		return err
	}
	for _, key := range [...]string{"level", "message"} {
		switch value := o.Find(key); {
		case value == nil:
			o.Refuse(key, "is missing")
		case value[0] != '"':
			o.Refuse(key, "must be a string")
		case key == "level" && object.IsBlank(string(object.Unquote(value))):
			o.Refuse(key, "must not be empty")
		}
	}
	if context := o.Find("context"); context != nil && !object.IsObject(context) {
		o.Refuse("context", "must be an object")
	}
	return o.Err()
}

// isPlainLog reports whether an event:log has a level and a message, as most have, and there is nothing to refuse.
func isPlainLog(members []object.Member) bool {
	if len(members) != 2 || string(members[0].Key) != "level" || string(members[1].Key) != "message" {
		return false
	}
	level, message := members[0].Value, members[1].Value
	return level[0] == '"' && 'a' <= level[1]|0x20 && level[1]|0x20 <= 'z' && message[0] == '"'
}

// ReadReport is Payloads.Report for a single event.
func ReadReport(name string, payload []byte, depth int) (any, *Error) {
	return (&Payloads{Depth: depth}).Report(&AgentEvent{Name: name, Payload: payload})
}

// Report reads the payload of an event.
func (p *Payloads) Report(r *AgentEvent) (any, *Error) {
	o, err := p.open(r.Payload, r.Members)
	if err != nil {
		return nil, err
	}
	body := activity.Read(r.Name, &o)
	if body == nil {
		return nil, UnknownType("event:" + r.Name)
	}
	return body, o.Err()
}
