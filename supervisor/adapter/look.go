package adapter

import (
	"slices"

	"orchestrator/wire"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// look asks the orchestrator about a turn of a client that takes the tools from an MCP server: whether its mail is
// read, and its task still open.
func (m *Machine) look(e *Ended) {
	m.looking = true
	m.ask(struct{}{}, pending{kind: "poll-messages", ended: e})
}

// looked takes the answer about the mail, or about the task.
func (m *Machine) looked(p *pending, o *order) {
	switch p.kind {
	case "poll-messages":
		var list mail.List
		if o.Error == nil && object.Decode(o.Payload, &list) == nil {
			m.keepOnly(list.Messages)
		}
		switch t := m.task; {
		case t == nil || t.ended:
		case t.work != nil:
			m.ask(struct{}{}, pending{kind: "list-sessions", task: t, ended: p.ended})
			return
		default:
			m.ask(wire.TaskID{TaskID: t.id}, pending{kind: "get-task", task: t, ended: p.ended})
			return
		}
	case "list-sessions", "get-session":
		m.sequence = max(m.sequence, p.lookedInto(m.o.Agent, o))
		if !p.task.ended && len(p.logs) > 0 {
			m.ask(p.logs[0], pending{kind: "get-session", task: p.task, ended: p.ended, logs: p.logs})
			return
		}
	case "get-task":
		var reply struct {
			Task struct {
				AssignedTo string         `json:"assignedTo"`
				State      wire.TaskState `json:"state"`
			} `json:"task"`
		}
		if o.Error == nil && object.Decode(o.Payload, &reply) == nil {
			state := reply.Task.State
			p.task.ended = p.task.ended || reply.Task.AssignedTo != m.o.Agent ||
				!slices.Contains([]wire.TaskState{wire.TaskAssigned, wire.TaskPlanning, wire.TaskPlanReview, wire.TaskRunning}, state)
		}
	}
	m.looking = false
	m.settle(p.ended)
}

// keepOnly drops the letters that are not in a list of unread messages.
func (m *Machine) keepOnly(unread []mail.Message) {
	open := func(seq int64) bool {
		return slices.ContainsFunc(unread, func(l mail.Message) bool { return l.Seq == seq })
	}
	m.letters = slices.DeleteFunc(m.letters, func(l letter) bool { return !open(l.seq) })
	m.prompts = slices.DeleteFunc(m.prompts, func(t text) bool { return len(t.mail) > 0 && !slices.ContainsFunc(t.mail, open) })
}

// lookedInto takes the answer about the sessions of an agent, or a page of the log of one. Of the
// logs, those remain that are to be read. It returns the highest sequence number of the session.
func (p *pending) lookedInto(agent string, o *order) (sequence int64) {
	if p.kind == "list-sessions" {
		p.logs = logsFor(agent, p.task.work.Asked, o)
		return 0
	}
	var page wire.SessionView
	if o.Error != nil || object.Decode(o.Payload, &page) != nil {
		page = wire.SessionView{}
	}
	p.task.ended = p.task.ended || p.task.work.Reported(page.Messages)
	if page.More {
		p.logs[0].After = page.Next
	} else {
		p.logs = p.logs[1:]
	}
	return page.SequenceNumber
}

// logsFor returns the logs that may have the answer of an agent to a session message: usually one.
func logsFor(agent string, asked *session.Message, o *order) (logs []wire.GetSession) {
	var list session.List
	if o.Error != nil || object.Decode(o.Payload, &list) != nil {
		return nil
	}
	for _, s := range list.Sessions {
		has := func(name string) bool {
			return slices.ContainsFunc(s.Members, func(m session.Member) bool { return m.AgentID == name })
		}
		if (asked.SessionID == "" || asked.SessionID == s.ID) && has(asked.From.AgentID) && has(agent) {
			logs = append(logs, wire.GetSession{SessionID: s.ID, CorrelationID: asked.CorrelationID, Limit: session.MaxPage})
		}
	}
	return logs
}
