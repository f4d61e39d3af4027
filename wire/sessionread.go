package wire

import (
	"bytes"
	"fmt"
	"strings"
)

// ReadSessionMessage reads a message of a session, as far as the message alone
// tells whether it is one. Everything that is wrong is in the error: the first in
// its message and under "pointer" in its details, all of it under "errors".
//
// Unless somebody is strict, a message_id may have the short form that is in use
// beside UUIDs, and what is left out too often to insist on it is forgiven with a
// note: a sequence_number, must_not_break, the rationale of a finding, and custom
// verifications. What is accepted strictly is accepted without, too.
func ReadSessionMessage(line []byte, depth int, strict bool) (*SessionMessage, *Error) {
	document := keep(bytes.TrimSpace(line))
	members, why, ok := scan(document, depth, nil)
	if !ok {
		if why == "" {
			why = "it must be an object"
		}
		return nil, invalid("", "the message: "+why)
	}
	return readSession(document, members, strict)
}

// readSession is ReadSessionMessage for a document that has been taken apart.
func readSession(document Raw, members []member, strict bool) (*SessionMessage, *Error) {
	all := judgement{strict: strict}
	p := part{Object: Object{members: members}, all: &all}
	m := &SessionMessage{
		Document:      document,
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
	p.inside("payload", needed, func(in *part) { m.Body = in.body(m.MessageType) })
	if err := all.err(); err != nil {
		if m.MessageType != "" && all.problems[0].Pointer == "/message_type" {
			err.Code = CodeUnknownType
		}
		return nil, err
	}
	if m.ReplyTo != "" && !isMessageID(m.ReplyTo, false) {
		p.odd("reply_to", fmt.Sprintf("names no message: none has an id such as %.80q", m.ReplyTo))
	}
	m.Notes = all.notes
	return m, nil
}

// body reads a payload; nil when nobody knows the type.
func (p *part) body(kind string) any {
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

func (p *part) agent(key string) (agent AgentIdentifier) {
	p.inside(key, needed, func(in *part) {
		agent.AgentID = in.id("agent_id", needed)
		agent.AgentType = in.word("agent_type", needed, AgentTypes)
		agent.InstanceID = in.id("instance_id", optional)
	})
	return agent
}

func (p *part) messageID(key string) string {
	id := p.id(key, needed)
	if id == "" || isMessageID(id, p.all.strict) {
		return id
	}
	form := "a UUID of version 4, or msg- and digits, perhaps with a dash, letters and digits behind them"
	if p.all.strict {
		form = "a UUID of version 4"
	}
	p.wrong(key, fmt.Sprintf("must be %s, not %.80q", form, id))
	return id
}

// isMessageID says whether a text is a UUID of version 4, or, where nobody is
// strict, msg- and digits, perhaps with a dash, letters and digits behind them.
func isMessageID(id string, strict bool) bool {
	if isUUID(id) {
		return id[14] == '4' && strings.IndexByte("89abAB", id[19]) >= 0
	}
	number, short := strings.CutPrefix(id, "msg-")
	if strict || !short {
		return false
	}
	number, rest, more := strings.Cut(number, "-")
	return isRun(number, digit) && (!more || isRun(rest, alphanumeric))
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
