package stdio

import (
	"maps"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
	"orchestrator/wire/dialect"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// An Envelope holds the id and the time of a message to an agent.
type Envelope struct {
	ID string // of this message
	At time.Time
}

// AppendAnswer appends the answer to a request as one line. The line holds the payload, a JSON
// object, or the refusal if it is not nil.
func (e Envelope) AppendAnswer(b []byte, request string, payload any, refusal *wire.Error) []byte {
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
	b, err := wire.AppendPayload(b, payload)
	if err != nil {
		return e.AppendRefusal(b[:from], object.Quote(request), unspeakable)
	}
	return append(b, '}', '\n')
}

// unspeakable replaces an answer that cannot be encoded.
var unspeakable = &wire.Error{Code: wire.CodeInternal, Message: "the answer could not be spelled"}

// AppendRefusal appends the refusal of a request as one line. The request's id is given as it
// was written, or nil.
func (e Envelope) AppendRefusal(b []byte, request []byte, refusal *wire.Error) []byte {
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
func appendError(b []byte, refusal *wire.Error) []byte {
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

// spokenCode returns the code as agents receive it. Agents know six codes; a reason in the
// details distinguishes the others.
func spokenCode(c wire.Code) (code, reason string) {
	switch c {
	case wire.CodeInvalid, wire.CodeMalformed:
		return "INVALID_REQUEST", ""
	case wire.CodeConflict:
		return "INVALID_REQUEST", "conflict"
	case wire.CodeLimited:
		return "INVALID_REQUEST", "rate_limited"
	case wire.CodeUnknownType:
		return "INVALID_MESSAGE_TYPE", ""
	case wire.CodeTooLarge, wire.CodeMediaType:
		return "INVALID_REQUEST", string(c)
	case wire.CodeDenied, wire.CodeUnauthenticated:
		return "UNAUTHORIZED", ""
	case wire.CodeNotFound:
		return "NOT_FOUND", ""
	case wire.CodeTimeout:
		return "TIMEOUT", ""
	}
	return "INTERNAL_ERROR", ""
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
	b, err := wire.AppendPayload(b, payload)
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

// AppendReply appends the answer to a request as one line, in the form of the request. The line
// holds the payload, a JSON object, or the refusal if it is not nil. The request is given by its
// ID.
//
// A delivered session message has no answer. Beside the refusal of one, payload may be its
// *DeliveryError. Accepted delegated work has no answer either; later lines report on it.
func (e Envelope) AppendReply(b []byte, form dialect.Dialect, request string, payload any, refusal *wire.Error) []byte {
	switch {
	case form == dialect.Native:
		return e.AppendAnswer(b, request, payload, refusal)
	case form == dialect.Session:
		return e.appendReceipt(b, request, payload, refusal)
	case refusal != nil:
		return e.AppendRefused(b, form, form.RawID(request), refusal)
	case form == dialect.TaskRequest || form == dialect.TaskAct:
		return b
	}
	from := len(b)
	b, err := appendReply(b, form, request, payload)
	if err != nil {
		return e.AppendRefused(b[:from], form, form.RawID(request), unspeakable)
	}
	return append(b, '\n')
}

func appendReply(b []byte, form dialect.Dialect, request string, payload any) ([]byte, error) {
	if form == dialect.Mail {
		return wire.AppendPayload(b, payload)
	}
	spelled, err := wire.AppendPayload(nil, payload)
	if err != nil {
		return b, err
	}
	return appendResult(b, form.RawID(request), string(spelled), spelled, false), nil
}

// appendReceipt appends the delivery error of a session message that was refused.
func (e Envelope) appendReceipt(b []byte, messageID string, payload any, refusal *wire.Error) []byte {
	if refusal == nil {
		return b
	}
	what, _ := payload.(*session.DeliveryError)
	if what == nil {
		what = session.Undelivered(messageID, refusal)
	}
	return e.AppendDeliveryError(b, dialect.Session.RawID(messageID), what, refusal)
}

// AppendDeliveryError appends the delivery error of a session message as one line. Its
// message_id is given as it was written, or nil (Session.RawID). The details come from both
// errors.
func (e Envelope) AppendDeliveryError(b []byte, messageID []byte, what *session.DeliveryError, why *object.Error) []byte {
	said := *why
	said.Details = maps.Clone(why.Details)
	if said.Details == nil {
		said.Details = make(map[string]any)
	}
	said.Details["original_message_id"] = what.OriginalMessageID
	said.Details["error_type"] = what.ErrorType
	said.Details["retry_count"] = what.RetryCount
	said.Details["max_retries"] = what.MaxRetries
	delete(said.Details, "next_retry_at")
	if what.NextRetryAt != "" {
		said.Details["next_retry_at"] = what.NextRetryAt
	}
	return e.AppendRefusal(b, messageID, &said)
}

// AppendRefused appends the refusal of a request as one line, in the form of the request. The
// request's id is given as it was written, or nil.
//
// A refused task request is answered with a failed task response if its id is a string that
// belongs to no other task. Otherwise it is answered with response:error.
func (e Envelope) AppendRefused(b []byte, form dialect.Dialect, id []byte, refusal *wire.Error) []byte {
	refusal = form.Place(refusal)
	switch form {
	case dialect.ToolCall:
		return e.appendToolRefusal(b, id, refusal)
	case dialect.Session:
		messageID, _ := object.Text(id)
		return e.AppendDeliveryError(b, id, session.Undelivered(messageID, refusal), refusal)
	case dialect.TaskRequest:
		if _, isText := object.Text(id); isText && refusal.Details["reason"] != wire.ReasonReused {
			return delegation.AppendUndone(b, id, refusal)
		}
	}
	return e.AppendRefusal(b, id, refusal)
}

func (Envelope) appendToolRefusal(b, id []byte, refusal *wire.Error) []byte {
	words := refusal.Message
	if refusal.Hint != "" {
		words += ". " + refusal.Hint
	}
	about := append(appendError([]byte(`{"error":`), refusal), '}')
	return append(appendResult(b, id, words, about, true), '\n')
}

// appendResult appends the result of a tool call: as text for models, and as a document for
// programs.
func appendResult(b, id []byte, words string, document []byte, failed bool) []byte {
	b = appendRPC(b, id)
	b = append(b, `"result":{"content":[{"type":"text","text":`...)
	b = object.AppendText(b, words)
	b = append(b, `}],"structuredContent":`...)
	b = append(b, document...)
	if failed {
		return append(b, `,"isError":true}}`...)
	}
	return append(b, `,"isError":false}}`...)
}

// appendRPC begins an answer in JSON-RPC.
func appendRPC(b, id []byte) []byte {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	if id == nil {
		b = append(b, "null"...)
	}
	b = append(b, id...)
	return append(b, ',')
}
