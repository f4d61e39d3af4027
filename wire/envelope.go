package wire

import (
	"fmt"
	"strings"
	"time"
)

// request reads the envelope of a request. What is wrong with it is answered,
// as far as there is an id to answer to.
func (r *Reader) request(kind string) Message {
	k := &r.known
	refused := func(err *Error) Message {
		return &Refused{ID: correlatable(k.id), Type: kind, Request: true, Err: err}
	}
	id, err := k.identity()
	if err == nil {
		err = r.envelope()
	}
	if err == nil {
		err = k.moment()
	}
	if err != nil {
		return refused(err)
	}
	when, _ := text(k.timestamp)
	return &Request{ID: id, Operation: kind[len("request:"):], Timestamp: when, Payload: k.body()}
}

// event reads the envelope of an event. There is no answer that tells what is wrong with an
// event, so a missing time is not held against it.
func (r *Reader) event(kind string) Message {
	k := &r.known
	id, err := k.identity()
	if err == nil {
		err = r.envelope()
	}
	if err != nil {
		return &Refused{ID: correlatable(k.id), Type: kind, Err: err}
	}
	when, _ := text(k.timestamp)
	return &AgentEvent{ID: id, Name: kind[len("event:"):], Timestamp: when, Payload: k.body()}
}

// longestID is how many bytes an id may have.
const longestID = 4096

// identity is the id: any text that is not empty.
func (k *keys) identity() (string, *Error) {
	switch id, ok := text(k.id); {
	case k.id == nil:
		return "", invalid("/id", "id is missing")
	case !ok:
		return "", invalid("/id", "id must be a string")
	case id == "":
		return "", invalid("/id", "id must not be empty")
	case len(id) > longestID: // it is kept with what came of it
		return "", invalid("/id", fmt.Sprintf("id must not be longer than %d bytes", longestID))
	default:
		return id, nil
	}
}

// moment checks the time of a request.
func (k *keys) moment() *Error {
	if plainTime(k.timestamp) {
		return nil
	}
	when, ok := text(k.timestamp)
	switch {
	case k.timestamp == nil:
		return invalid("/timestamp", "timestamp is missing")
	case !ok:
		return invalid("/timestamp", "timestamp must be a string")
	}
	if _, ok := ParseTime(when); !ok {
		return invalid("/timestamp", fmt.Sprintf("%.40q is not an ISO 8601 time", when))
	}
	return nil
}

// envelope checks what requests and events have in common.
func (r *Reader) envelope() *Error {
	k := &r.known
	if k.agent != nil {
		switch {
		case k.agent[0] != '"':
			return invalid("/agentId", "agentId must be a string")
		case string(unquoted(k.agent)) != r.Agent:
			return &Error{
				Code:    CodeDenied,
				Message: fmt.Sprintf("agentId says %q, but this is the stream of %q", unquoted(k.agent), r.Agent),
				Details: map[string]any{"pointer": "/agentId"},
			}
		}
	}
	if k.payload != nil && !isObject(k.payload) {
		return invalid("/payload", "payload must be an object")
	}
	return nil
}

// body is the payload; a missing one is as good as an empty one.
func (k *keys) body() []byte {
	if k.payload == nil {
		return []byte("{}")
	}
	return k.payload
}

// invalid returns what is wrong at a place, given as a JSON pointer into the line.
func invalid(pointer, message string) *Error {
	return &Error{Code: CodeInvalid, Message: message, Details: map[string]any{"pointer": pointer}}
}

func unknownType(kind string) *Error {
	message := fmt.Sprintf("there is no message type %q", kind)
	if meant := meantType(kind); meant != "" {
		message += fmt.Sprintf(": did you mean %q?", meant)
	}
	return &Error{
		Code:    CodeUnknownType,
		Message: message,
		Details: map[string]any{"type": kind},
	}
}

// timeLayouts are the spellings of a time that are in use; all are ISO 8601.
var timeLayouts = []string{
	time.RFC3339Nano,
	"2006-01-02T15:04:05.999999999",
	"2006-01-02T15:04:05.999999999Z0700",
	"2006-01-02T15:04Z07:00",
	"20060102T150405Z0700",
	time.DateOnly,
}

// plainTime reports whether a value is a time in the form that most agents
// sends, without making one: 2006-01-02T15:04:05Z, with or without a fraction.
// Days that not every month has are left to ParseTime.
func plainTime(value []byte) bool {
	const form = `"0000-00-00T00:00:00`
	if len(value) < len(form)+len(`Z"`) || value[len(value)-2] != 'Z' {
		return false
	}
	for i := range len(form) {
		if form[i] != '0' && value[i] != form[i] || form[i] == '0' && !digit(value[i]) {
			return false
		}
	}
	fraction := value[len(form) : len(value)-2]
	for i, c := range fraction {
		if i == 0 && c != '.' || i > 0 && !digit(c) {
			return false
		}
	}
	two := func(at int) byte { return (value[at]-'0')*10 + value[at+1] - '0' }
	month, day := two(6), two(9)
	return month >= 1 && month <= 12 && day >= 1 && day <= 28 && two(12) < 24 && two(15) < 60 && two(18) < 60 &&
		len(fraction) != 1 && len(fraction) <= len(".123456789")
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// ParseTime reads an ISO 8601 time. One without a zone is UTC.
func ParseTime(when string) (time.Time, bool) {
	if loose(when) {
		return time.Time{}, false
	}
	for _, layout := range timeLayouts {
		if at, err := time.Parse(layout, when); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// loose reports whether a time has what time.Parse lets pass, and RFC 3339 does not
// does: an hour of one digit, or an offset of 24 hours or of 60 minutes.
func loose(when string) bool {
	if len(when) > len("2006-01-02T1:") && when[12] == ':' {
		return true
	}
	sign := strings.LastIndexAny(when, "+-")
	if sign <= len("2006-01") || len(when) < sign+len("+0000") {
		return false
	}
	return when[sign+1:sign+3] > "23" || when[len(when)-2:] > "59"
}
