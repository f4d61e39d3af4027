package wire

import (
	"orchestrator/wire/object"
)

// Check reads a line as Parse does, and its payload too, but takes it from
// a decision: it is for those who write an agent and want to know what is wrong
// with a message before it is sent. What comes back is a Request or a
// Report with its Body, a Session with its Message, a call that was granted, or
// why not; its errors point into the line, and are no more to be said in the form
// of the question. Without Given, what looks like a task response is taken for one.
func (r *Reader) Check(line []byte) Message {
	m := r.claimed(line, r.Parse(line))
	kind, err := "", (*Error)(nil)
	switch m := m.(type) {
	case *Request:
		if m.Body != nil {
			return m
		}
		kind = "request:" + m.Operation
		m.Body, err = ReadRequest(m.Operation, m.Payload, r.Depth)
		if err != nil {
			return &Refused{ID: m.RawID(), Type: kind, Request: true, Form: m.Form, Err: m.Form.place(err)}
		}
	case *Session:
		if m.Err != nil {
			return &Refused{ID: m.id, Type: m.Type, Request: true, Form: DialectSession, Err: m.Err}
		}
	case *Answered:
		if m.Err != nil {
			return &Refused{ID: m.ID, Type: m.Method, Request: true, Form: DialectToolCall, Err: m.Err}
		}
	case *AgentEvent:
		if m.Body != nil {
			return m
		}
		kind = "event:" + m.Name
		m.Body, err = ReadReport(m.Name, m.Payload, r.Depth)
		if err != nil {
			return &Refused{ID: Quote(m.ID), Type: kind, Err: err}
		}
	}
	return m
}

// claimed is what a line turns out to be, said by the sender that it names.
func (r *Reader) claimed(line []byte, m Message) Message {
	claimed := Reader{Depth: r.Depth, Capability: r.Capability}
	switch refused := m.(type) {
	case Log:
		if r.Given != nil || r.known.kind != nil {
			return m
		}
		claimed.Agent, claimed.Given = r.Agent, func(string) bool { return true }
	case *Refused:
		if refused.Err.Code != CodeDenied {
			return m
		}
		if claimed.Agent, _ = object.Text(r.known.agent); refused.Form == DialectTaskRequest {
			claimed.Agent, _ = r.source()
		}
	case *Session:
		if refused.Err == nil || refused.Err.Code != CodeDenied {
			return m
		}
		claimed.Agent = r.sender()
	default:
		return m
	}
	return claimed.Parse(line)
}
