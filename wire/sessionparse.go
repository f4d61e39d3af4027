package wire

import (
	"bytes"
	"fmt"
	"slices"
)

// session says whether rule 4 fits.
func (k *keys) session() bool {
	kind, ok := text(k.messageType)
	return ok && (slices.Contains(SessionTypes, kind) || k.messageID != nil || k.fromAgent != nil || k.toAgent != nil)
}

// session reads a session message. The sender is whose line it is: another name
// is refused, but for one that says something to this agent, which is a message
// that was delivered here and comes back.
func (r *Reader) session(line []byte) Message {
	k := &r.known
	s, from := k.said(), k.sender()
	switch {
	case from == "" || from == r.Agent:
	case agentNamed(k.toAgent) == r.Agent:
		return Log{Why: "an echo of a session message"}
	default:
		s.Err = denied("/from_agent/agent_id", fmt.Sprintf("agent_id says %.80q, but this is the stream of %q", from, r.Agent))
	}
	s.Document = keep(bytes.TrimSpace(line))
	if s.Err == nil {
		s.Message, s.Err = readSession(s.Document, r.room, r.Strict)
	}
	return s
}

// spoiled refuses a session message that cannot be read. It must be sure that it
// is none that was delivered: what would tell may be among the rest. The line is
// nil where it is not all there.
func (r *Reader) spoiled(line []byte, why string) Message {
	k := &r.known
	if k.sender() != r.Agent || r.Agent == "" {
		return Log{Why: why}
	}
	s := k.said()
	s.Err = invalid("", "the message cannot be taken: "+why)
	if line != nil {
		s.Document = keep(bytes.TrimSpace(line))
	}
	return s
}

// said is a session message of which nothing but its name is known.
func (k *keys) said() *Session {
	s := new(Session)
	s.Type, _ = text(k.messageType)
	if k.twice == "message_id" {
		return s // whichever of the two was meant
	}
	s.ID, _ = text(k.messageID)
	s.id = bytes.Clone(correlatable(k.messageID))
	return s
}

// sender is who says that the message is theirs, "" when nobody can tell.
func (k *keys) sender() string {
	if k.twice == "from_agent" {
		return ""
	}
	return agentNamed(k.fromAgent)
}

// agentNamed is the agent_id in an AgentIdentifier, "" if it has none.
func agentNamed(agent []byte) string {
	var room [4]member
	o, err := openObject(agent, scannedBefore, "", room[:0])
	if err != nil {
		return ""
	}
	return o.Text("agent_id")
}
