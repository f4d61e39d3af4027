package wire

import (
	"bytes"
	"fmt"
	"slices"

	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// session reports whether rule 4 fits.
func (k *keys) session() bool {
	kind, ok := object.Text(k.messageType)
	return ok && (slices.Contains(session.Types, kind) || k.messageID != nil || k.fromAgent != nil || k.toAgent != nil)
}

// session reads a session message. Its sender must be the agent of the line. A message of
// another sender to this agent is an echo of a delivered message.
func (r *Reader) session(line []byte) Message {
	s, from := named(r.room), r.sender()
	switch {
	case from == "" || from == r.Agent:
	case agentNamed(r.known.toAgent) == r.Agent:
		return Log{Why: "an echo of a session message"}
	default:
		s.Err = object.Denied("/from_agent/agent_id", fmt.Sprintf("agent_id says %.80q, but this is the stream of %q", from, r.Agent))
	}
	s.Document = r.keep(line)
	if s.Err == nil {
		s.Message, s.Err = session.ReadMembers(s.Document, r.room, "")
	}
	return s
}

// keep copies a line whose members are read next. The members are then those of the copy, so
// that a later reader of the copy finds the same.
func (r *Reader) keep(line []byte) Raw {
	line = bytes.TrimSpace(line)
	document := object.Clone(line)
	if len(document) != len(line) {
		r.room, _, _ = object.Scan(document, r.Depth, r.room)
	}
	return document
}

// spoiled refuses a session message that cannot be read. It refuses only messages of this agent,
// since others may be echoes. The line is nil if it is incomplete.
func (r *Reader) spoiled(line []byte, why string) Message {
	if r.sender() != r.Agent || r.Agent == "" {
		return Log{Why: why}
	}
	s := named(r.room)
	s.Err = object.Invalid("", "the message cannot be taken: "+why)
	if line != nil {
		s.Document = object.Clone(bytes.TrimSpace(line))
	}
	return s
}

// named returns a session message of which only the id and the type are known.
func named(members []object.Member) *Session {
	s := new(Session)
	s.Type, _ = object.Text(object.Once(members, "message_type"))
	id := object.Once(members, "message_id")
	s.ID, _ = object.Text(id)
	s.id = bytes.Clone(correlatable(id))
	return s
}

// sender returns the agent that the message names as its sender, or "" if it is unknown.
func (r *Reader) sender() string { return agentNamed(object.Once(r.room, "from_agent")) }

// agentNamed returns the agent_id in an AgentIdentifier, or "" if it has none.
func agentNamed(agent []byte) string {
	var room [4]object.Member
	o, err := object.Open(agent, object.AnyDepth, "", room[:0])
	if err != nil {
		return ""
	}
	return o.Text("agent_id")
}
