package adapter

import (
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/tools"
)

// called performs the call of one of our tools.
func (m *Machine) called(c *Call) {
	if t := m.task; t != nil && t.work != nil && !t.ended && m.callOfWork(t, c) {
		return
	}
	request, err := tools.Prepare(c.Tool, c.Arguments, tools.Caller{Task: m.openTask(), Files: true})
	if err != nil {
		m.result(c.ID, err.Error(), true)
		return
	}
	m.calls[c.ID] = true
	p := pending{kind: request.Operation, call: c.ID, tool: request}
	switch request.Operation {
	case "complete-task", "fail-task":
		p.task = m.task
	case "ask-user":
		m.turn(activity.Waiting, tools.Clip(request.Payload.(wire.AskUser).Question, 200))
	}
	m.ask(request.Payload, p)
}

// returned passes the answer to a tool call on to the client.
func (m *Machine) returned(p *pending, o *order) {
	m.last = m.now
	if p.kind == "ask-user" {
		m.resumed("")
	}
	if o.Error != nil {
		m.result(p.call, p.tool.Refused(o.Error.Message, o.Error.Details.Pointer), true)
		return
	}
	if p.task != nil {
		p.task.ended = true
	}
	m.result(p.call, p.tool.Answer(o.Payload), false)
}

// result answers a tool call.
func (m *Machine) result(call, words string, failed bool) {
	delete(m.calls, call)
	m.handle(m.client.Result(call, words, failed))
}
