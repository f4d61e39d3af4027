package stdio

import (
	"orchestrator/wire"
	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
)

// Check parses a line and its payload without effect. It is for authors of agents who want to
// validate a message before they send it. It returns a Request or an AgentEvent with its Body, a
// Session with its Message, an Answered, or a Refused. The errors point into the line. Without
// Given, a line that looks like a task response counts as one.
func (r *Reader) Check(line []byte) wire.Message {
	m := r.claimed(line, r.Parse(line))
	kind, err := "", (*wire.Error)(nil)
	switch m := m.(type) {
	case *wire.Request:
		if m.Body != nil {
			return m
		}
		kind = "request:" + m.Operation
		m.Body, err = (&wire.Payloads{Depth: r.Depth}).Request(m)
		if err != nil {
			return &wire.Refused{ID: m.RawID(), Type: kind, Request: true, Form: m.Form, Err: m.Form.Place(err)}
		}
	case *wire.Session:
		if m.Err != nil {
			return &wire.Refused{ID: m.RawID, Type: m.Type, Request: true, Form: dialect.Session, Err: m.Err}
		}
	case *wire.Answered:
		if m.Err != nil {
			return &wire.Refused{ID: m.ID, Type: m.Method, Request: true, Form: dialect.ToolCall, Err: m.Err}
		}
	case *wire.AgentEvent:
		if m.Body != nil {
			return m
		}
		kind = "event:" + m.Name
		m.Body, err = (&wire.Payloads{Depth: r.Depth}).Report(m)
		if err != nil {
			return &wire.Refused{ID: object.Quote(m.ID), Type: kind, Err: err}
		}
	}
	return m
}

// claimed parses a line as if the sender that it names had sent it.
func (r *Reader) claimed(line []byte, m wire.Message) wire.Message {
	claimed := Reader{Depth: r.Depth, Capability: r.Capability}
	switch refused := m.(type) {
	case wire.Log:
		if r.Given != nil || r.known.Type != nil {
			return m
		}
		claimed.Agent, claimed.Given = r.Agent, func(string) bool { return true }
	case *wire.Refused:
		if refused.Err.Code != wire.CodeDenied {
			return m
		}
		if claimed.Agent, _ = object.Text(r.known.AgentID); refused.Form == dialect.TaskRequest {
			claimed.Agent, _ = r.source()
		}
	case *wire.Session:
		if refused.Err == nil || refused.Err.Code != wire.CodeDenied {
			return m
		}
		claimed.Agent = r.sender()
	default:
		return m
	}
	return claimed.Parse(line)
}
