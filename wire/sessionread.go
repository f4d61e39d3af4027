package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"strings"
)

// ReadSessionMessage reads a message of a session, as far as the message alone
// tells whether it is one. Everything that is wrong is in the error: the first in
// its message and under "pointer" in its details, all of it under "errors".
//
// A message_id may have the short form that is in use beside UUIDs, and what is
// left out too often to insist on it is forgiven with a note: a sequence_number,
// must_not_break, the rationale of a finding, and custom verifications. Whether
// a session is stricter than that is known when the session is: see Strictly.
func ReadSessionMessage(line []byte, depth int) (*SessionMessage, *Error) {
	document, members, err := openLine(line, depth)
	if err != nil {
		return nil, err
	}
	return readSession(document, members, "")
}

// openLine takes apart what is a message as a whole. The document outlives the line.
func openLine(line []byte, depth int) (document Raw, members []member, err *Error) {
	document = keep(bytes.TrimSpace(line))
	members, why, ok := scan(document, depth, nil)
	if !ok {
		if why == "" {
			why = "it must be an object"
		}
		return nil, nil, invalid("", "the message: "+why)
	}
	return document, members, nil
}

// readSession is ReadSessionMessage for a document that has been taken apart. The
// pointer is to where it stands.
func readSession(document Raw, members []member, pointer string) (*SessionMessage, *Error) {
	var all judgement
	p := decoder{Object: Object{pointer: pointer, members: members}, all: &all}
	m := &SessionMessage{
		Document: document, pointer: pointer,
		MessageID:     p.messageID("message_id"),
		Timestamp:     p.moment("timestamp", needed),
		From:          p.agent("from_agent"),
		To:            p.agent("to_agent"),
		MessageType:   p.word("message_type", needed, SessionTypes),
		CorrelationID: p.id("correlation_id", optional),
		ReplyTo:       p.id("reply_to", optional),
		SessionID:     p.id("session_id", optional),
	}
	m.SequenceNumber, m.Sequenced = p.whole("sequence_number", excusable, 0)
	p.inside("payload", needed, func(in *decoder) { m.Body = in.body(m.MessageType) })
	if err := refusing(all.problems); err != nil {
		if m.MessageType != "" && all.problems[0].Pointer == p.below("message_type") {
			err.Code = CodeUnknownType
		}
		return nil, err
	}
	if m.ReplyTo != "" && !isUUID4(m.ReplyTo) && !isShortID(m.ReplyTo) {
		p.odd("reply_to", fmt.Sprintf("names no message: none has an id such as %.80q", m.ReplyTo))
	}
	m.Notes, m.lapses = all.notes, all.lapses
	m.Sum = m.sum(once(members, "payload"))
	return m, nil
}

// sum is the Sum of a message with a payload.
func (m *SessionMessage) sum(payload []byte) uint64 {
	return sumOf([]byte(m.MessageType), []byte(m.From.AgentID), []byte(m.To.AgentID), payload)
}

// sumOf is a sum of several texts. There is a length before each, so that no two
// messages are made of the same text.
func sumOf(parts ...[]byte) uint64 {
	sum := fnv.New64a()
	for _, part := range parts {
		_, _ = sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		_, _ = sum.Write(part)
	}
	return sum.Sum64()
}

// body reads a payload; nil when the type is unknown.
func (p *decoder) body(kind string) any {
	switch kind {
	case TypeTaskAssignment:
		return p.assignment()
	case TypeTaskProgress:
		return p.progress()
	case TypeTaskCompletion:
		return p.completion()
	case TypeReviewRequest:
		return p.reviewRequest()
	case TypeReviewResult:
		return p.reviewResult()
	case TypeFeedback:
		return p.feedback()
	case TypeStatusQuery:
		return &StatusQuery{TaskID: p.id("task_id", optional)}
	case TypeStatusResponse:
		return &StatusResponse{}
	case TypeAbort:
		return p.abort()
	case TypeAcknowledgment:
		return &Acknowledgment{}
	}
	return nil
}

func (p *decoder) agent(key string) (agent AgentIdentifier) {
	p.inside(key, needed, func(in *decoder) {
		agent.AgentID = in.id("agent_id", needed)
		agent.AgentType = in.word("agent_type", needed, AgentTypes)
		agent.InstanceID = in.id("instance_id", optional)
	})
	return agent
}

func (p *decoder) messageID(key string) string {
	id := p.id(key, needed)
	switch {
	case id == "", isUUID4(id):
	case isShortID(id):
		p.lapse(key, fmt.Sprintf("must be a UUID of version 4, not %.80q", id))
	default:
		p.wrong(key, fmt.Sprintf("must be a UUID of version 4, or msg- and digits, perhaps with a dash, letters and digits behind them, not %.80q", id))
	}
	return id
}

// isUUID4 reports whether a text is a UUID of version 4.
func isUUID4(id string) bool {
	return isUUID(id) && id[14] == '4' && strings.IndexByte("89abAB", id[19]) >= 0
}

// isShortID reports whether a text is msg- and digits, perhaps with a dash, letters
// and digits behind them.
func isShortID(id string) bool {
	number, short := strings.CutPrefix(id, "msg-")
	number, rest, more := strings.Cut(number, "-")
	return short && isRun(number, digit) && (!more || isRun(rest, alphanumeric))
}

func isRun(text string, of func(byte) bool) bool {
	for i := range len(text) {
		if !of(text[i]) {
			return false
		}
	}
	return text != ""
}

func alphanumeric(c byte) bool { return digit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' }
