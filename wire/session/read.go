package session

import (
	"fmt"
	"strings"

	"orchestrator/wire/object"
)

// Read reads a message of a session and checks it without knowledge of the
// session. The message of the error, and "pointer" in its details, describe the first problem.
// "errors" in the details lists all problems.
//
// A message_id may be a UUID or have the short form. Some members are often left out; if one is
// missing, this is tolerated with a note: a sequence_number, must_not_break, the rationale of a
// finding, and custom verifications. For strict sessions see Strictly.
func Read(line []byte, depth int) (*Message, *object.Error) {
	document, members, err := object.OpenCopy(line, depth)
	if err != nil {
		return nil, err
	}
	return ReadMembers(document, members, "")
}

// ReadMembers is Read for a document that has been split into members. The pointer is the place of
// the document.
func ReadMembers(document object.Raw, members []object.Member, pointer string) (*Message, *object.Error) {
	var all object.Issues
	p := object.Decoder{Reader: object.Reader{Pointer: pointer, Members: members}, Issues: &all}
	m := &Message{
		Document: document, pointer: pointer,
		MessageID:     readMessageID(&p, "message_id"),
		Timestamp:     p.Time("timestamp", object.Required),
		From:          readAgent(&p, "from_agent"),
		To:            readAgent(&p, "to_agent"),
		MessageType:   p.OneOf("message_type", object.Required, Types),
		CorrelationID: p.ID("correlation_id", object.Optional),
		ReplyTo:       p.ID("reply_to", object.Optional),
		SessionID:     p.ID("session_id", object.Optional),
	}
	m.SequenceNumber, m.Sequenced = p.Whole("sequence_number", object.Forgivable, 0)
	p.Inside("payload", object.Required, func(in *object.Decoder) { m.Body = readBody(in, m.MessageType) })
	if err := object.ErrorOf(all.Problems); err != nil {
		if m.MessageType != "" && all.Problems[0].Pointer == p.Below("message_type") {
			err.Code = object.CodeUnknownType
		}
		return nil, err
	}
	if m.ReplyTo != "" && !isUUID4(m.ReplyTo) && !isShortID(m.ReplyTo) {
		p.Note("reply_to", fmt.Sprintf("is not a message id: %.80q", m.ReplyTo))
	}
	m.Notes, m.lapses = all.Notes, all.Forgiven
	m.Sum = m.checksum(object.Once(members, "payload"))
	return m, nil
}

// checksum returns the Sum of a message with a payload.
func (m *Message) checksum(payload []byte) uint64 {
	return object.Sum([]byte(m.MessageType), []byte(m.From.AgentID), []byte(m.To.AgentID), payload)
}

// readBody reads a payload; nil when the type is unknown.
func readBody(p *object.Decoder, kind string) any {
	switch kind {
	case TypeTaskAssignment:
		return readAssignment(p)
	case TypeTaskProgress:
		return readProgress(p)
	case TypeTaskCompletion:
		return readCompletion(p)
	case TypeReviewRequest:
		return readReviewRequest(p)
	case TypeReviewResult:
		return readReviewResult(p)
	case TypeFeedback:
		return readFeedback(p)
	case TypeStatusQuery:
		return &StatusQuery{TaskID: p.ID("task_id", object.Optional)}
	case TypeStatusResponse:
		return &StatusResponse{}
	case TypeAbort:
		return readAbort(p)
	case TypeAcknowledgment:
		return &Acknowledgment{}
	}
	return nil
}

func readAgent(p *object.Decoder, key string) (agent Agent) {
	p.Inside(key, object.Required, func(in *object.Decoder) {
		agent.AgentID = in.ID("agent_id", object.Required)
		agent.AgentType = in.OneOf("agent_type", object.Required, AgentTypes)
		agent.InstanceID = in.ID("instance_id", object.Optional)
	})
	return agent
}

func readMessageID(p *object.Decoder, key string) string {
	id := p.ID(key, object.Required)
	switch {
	case id == "", isUUID4(id):
	case isShortID(id):
		p.Forgive(key, fmt.Sprintf("must be a UUID of version 4, not %.80q", id))
	default:
		p.Refuse(key, fmt.Sprintf("must be a UUID of version 4, or msg- and digits, perhaps with a dash, letters and digits behind them, not %.80q", id))
	}
	return id
}

// isUUID4 reports whether a text is a UUID of version 4.
func isUUID4(id string) bool {
	return object.IsUUID(id) && id[14] == '4' && strings.IndexByte("89abAB", id[19]) >= 0
}

// isShortID reports whether a text is "msg-" and digits, optionally followed by a dash, letters
// and digits.
func isShortID(id string) bool {
	number, short := strings.CutPrefix(id, "msg-")
	number, rest, more := strings.Cut(number, "-")
	return short && object.IsRun(number, object.IsDigit) && (!more || object.IsRun(rest, object.IsAlphanumeric))
}

// AgentNamed returns the agent_id in an AgentIdentifier, or "" if it has none.
func AgentNamed(agent []byte) string {
	var room [4]object.Member
	o, err := object.Open(agent, object.AnyDepth, "", room[:0])
	if err != nil {
		return ""
	}
	return o.Text("agent_id")
}
