package wire

import (
	"orchestrator/wire/object"
)

// Check parses a line and its payload without effect. It is for authors of agents who want to
// validate a message before they send it. It returns a Request or an AgentEvent with its Body, a
// Session with its Message, an Answered, or a Refused. The errors point into the line. Without
// Given, a line that looks like a task response counts as one.
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
			return &Refused{ID: object.Quote(m.ID), Type: kind, Err: err}
		}
	}
	return m
}

// claimed parses a line as if the sender that it names had sent it.
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
