package wire

import (
	"strconv"
	"time"

	"orchestrator/wire/mail"
	"orchestrator/wire/object"
)

// An Envelope holds the id and the time of a message to an agent.
type Envelope struct {
	ID string // of this message
	At time.Time
}

// AppendAnswer appends the answer to a request as one line. The line holds the payload, a JSON
// object, or the refusal if it is not nil.
func (e Envelope) AppendAnswer(b []byte, request string, payload any, refusal *Error) []byte {
	if refusal != nil {
		return e.AppendRefusal(b, object.Quote(request), refusal)
	}
	from := len(b)
	b = append(b, `{"type":"response:success","id":"`...)
	b = append(b, e.ID...)
	b = append(b, `","correlationId":`...)
	b = object.AppendText(b, request)
	b = e.appendTime(b)
	b = append(b, `,"payload":`...)
	b, err := AppendPayload(b, payload)
	if err != nil {
		return e.AppendRefusal(b[:from], object.Quote(request), unspeakable)
	}
	return append(b, '}', '\n')
}

// unspeakable replaces an answer that cannot be encoded.
var unspeakable = &Error{Code: CodeInternal, Message: "the answer could not be spelled"}

// AppendRefusal appends the refusal of a request as one line. The request's id is given as it
// was written, or nil.
func (e Envelope) AppendRefusal(b []byte, request []byte, refusal *Error) []byte {
	b = append(b, `{"type":"response:error","id":"`...)
	b = append(b, e.ID...)
	b = append(b, `","correlationId":`...)
	if request == nil {
		b = append(b, "null"...)
	} else {
		b = append(b, request...)
	}
	b = e.appendTime(b)
	b = append(b, `,"error":`...)
	return append(appendError(b, refusal), '}', '\n')
}

// appendError appends a refusal in the form that agents receive.
func appendError(b []byte, refusal *Error) []byte {
	code, reason := spokenCode(refusal.Code)
	b = append(b, `{"code":"`...)
	b = append(b, code...)
	b = append(b, '"')
	b = object.AppendMember(b, "message", refusal.Message)
	details, err := object.Encode(object.DetailsWith(refusal, reason))
	if err == nil {
		b = object.AppendRaw(b, "details", details)
	}
	return append(b, '}')
}

// AppendNotice appends a notification as one line.
func (e Envelope) AppendNotice(b []byte, name string, payload any) []byte {
	from := len(b)
	b = append(b, `{"type":"notify:`...)
	b = append(b, name...)
	b = append(b, `","id":"`...)
	b = append(b, e.ID...)
	b = append(b, '"')
	b = e.appendTime(b)
	b = append(b, `,"payload":`...)
	b, err := AppendPayload(b, payload)
	if err != nil {
		return b[:from] // the payloads of notices can always be encoded
	}
	return append(b, '}', '\n')
}

func (e Envelope) appendTime(b []byte) []byte {
	b = append(b, `,"timestamp":"`...)
	b = object.AppendTimestamp(b, e.At)
	return append(b, '"')
}

// AppendPayload appends a payload as JSON. The most frequent types are encoded by hand, the
// others by reflection.
func AppendPayload(b []byte, payload any) ([]byte, error) {
	switch p := payload.(type) {
	case *TaskReply:
		b = append(b, `{"task":`...)
		return append(p.Task.Append(b), '}'), nil
	case *TaskList:
		b = append(b, `{"tasks":[`...)
		for i := range p.Tasks {
			if i > 0 {
				b = append(b, ',')
			}
			b = p.Tasks[i].Append(b)
		}
		b = append(b, ']')
		if p.More > 0 {
			b = strconv.AppendInt(append(b, `,"more":`...), p.More, 10)
			b = object.AppendText(append(b, `,"cursor":`...), p.Cursor)
		}
		return append(b, '}'), nil
	case *AgentList:
		b = append(b, `{"agents":[`...)
		for i := range p.Agents {
			if i > 0 {
				b = append(b, ',')
			}
			b = p.Agents[i].append(b)
		}
		return append(b, ']', '}'), nil
	case *mail.Message:
		return p.Append(b), nil
	case *mail.Sent:
		return p.Append(b), nil
	case *mail.List:
		return p.Append(b), nil
	}
	text, err := object.Encode(payload)
	return append(b, text...), err
}
