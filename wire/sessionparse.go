package wire

import (
	"bytes"
	"fmt"
	"slices"

	"orchestrator/wire/object"
)

// session reports whether rule 4 fits.
func (k *keys) session() bool {
	kind, ok := object.Text(k.messageType)
	return ok && (slices.Contains(SessionTypes, kind) || k.messageID != nil || k.fromAgent != nil || k.toAgent != nil)
}

// session reads a session message. The sender is whose line it is: another name
// is refused, but for one that says something to this agent, which is a message
// that was delivered here and comes back.
func (r *Reader) session(line []byte) Message {
	s, from := named(r.room), r.sender()
	switch {
	case from == "" || from == r.Agent:
	case agentNamed(r.known.toAgent) == r.Agent:
		return Log{Why: "an echo of a session message"}
	default:
		s.Err = denied("/from_agent/agent_id", fmt.Sprintf("agent_id says %.80q, but this is the stream of %q", from, r.Agent))
	}
	s.Document = r.keep(line)
	if s.Err == nil {
		s.Message, s.Err = readSession(s.Document, r.room, "")
	}
	return s
}

// keep copies a line whose members are read next: they are those of the copy, so that
// a reader of what was kept finds the same in it.
func (r *Reader) keep(line []byte) Raw {
	line = bytes.TrimSpace(line)
	document := object.Clone(line)
	if len(document) != len(line) {
		r.room, _, _ = object.Scan(document, r.Depth, r.room)
	}
	return document
}

// spoiled refuses a session message that cannot be read. It must be sure that it
// is none that was delivered: what would tell may be among the rest. The line is
// nil where it is not all there.
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

// named is a session message of which nothing but its name is known.
func named(members []object.Member) *Session {
	s := new(Session)
	s.Type, _ = object.Text(once(members, "message_type"))
	id := once(members, "message_id")
	s.ID, _ = object.Text(id)
	s.id = bytes.Clone(correlatable(id))
	return s
}

// sender is the agent that the message names, "" if unknown.
func (r *Reader) sender() string { return agentNamed(once(r.room, "from_agent")) }

// once is the value of a member, nil when it stands twice: it is unknown which of the
// two was meant.
func once(members []object.Member, key string) []byte {
	var found []byte
	for i := range members {
		if string(members[i].Key) != key {
			continue
		}
		if found != nil {
			return nil
		}
		found = members[i].Value
	}
	return found
}

// agentNamed is the agent_id in an AgentIdentifier, "" if it has none.
func agentNamed(agent []byte) string {
	var room [4]object.Member
	o, err := object.Open(agent, object.AnyDepth, "", room[:0])
	if err != nil {
		return ""
	}
	return o.Text("agent_id")
}
