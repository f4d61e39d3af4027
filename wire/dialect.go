package wire

import (
	"maps"
	"strings"

	"orchestrator/wire/delegation"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// A Dialect is the form of a request and of its answer.
type Dialect uint8

// The dialects.
const (
	DialectNative      Dialect = iota // request:…, answered with response:…
	DialectMail                       // bare mail, answered with the stored mail
	DialectToolCall                   // a tool call, answered as JSON-RPC; the ID is JSON
	DialectSession                    // a bare session message; only a refusal is answered, with a delivery error
	DialectTaskRequest                // a bare task request; only a refusal is answered, with a failed task response
	DialectTaskAct                    // a bare act on a task; only a refusal is answered, with response:…
)

// AppendRawID appends the id of a request as JSON, or null if it has none.
func (r *Request) AppendRawID(b []byte) []byte {
	switch {
	case r.Form == DialectNative, r.ID != "" && r.Form != DialectToolCall:
		return object.AppendText(b, r.ID)
	case r.ID == "":
		return append(b, "null"...)
	}
	return append(b, r.ID...)
}

// RawID returns the id of a request as JSON, or nil if it has none.
func (r *Request) RawID() []byte { return rawID(r.Form, r.ID) }

func rawID(form Dialect, id string) []byte {
	switch {
	case form == DialectNative:
		return object.Quote(id)
	case id == "":
		return nil
	case form == DialectToolCall:
		return []byte(id)
	}
	return object.Quote(id)
}

// payload returns the pointer to the payload in a line of this form.
func (d Dialect) payload() string {
	switch d {
	case DialectMail:
		return ""
	case DialectToolCall:
		return "/params/arguments"
	}
	return "/payload"
}

// place returns an error that points into a line of this form. Readers of payloads report errors
// as if the request were native, so that they need not know its form. Errors in session messages
// and delegated work already point into the line.
func (d Dialect) place(e *Error) *Error {
	pointer, _ := e.Details["pointer"].(string)
	below, found := strings.CutPrefix(pointer, DialectNative.payload())
	if d != DialectMail && d != DialectToolCall || !found || below != "" && below[0] != '/' {
		return e
	}
	there := *e // the same error may be sent again, in another form
	there.Details = maps.Clone(e.Details)
	there.Details["pointer"] = d.payload() + below
	return &there
}

// AppendReply appends the answer to a request as one line, in the form of the request. The line
// holds the payload, a JSON object, or the refusal if it is not nil. The request is given by its
// ID.
//
// A delivered session message has no answer. Beside the refusal of one, payload may be its
// *DeliveryError. Accepted delegated work has no answer either; later lines report on it.
func (e Envelope) AppendReply(b []byte, form Dialect, request string, payload any, refusal *Error) []byte {
	switch {
	case form == DialectNative:
		return e.AppendAnswer(b, request, payload, refusal)
	case form == DialectSession:
		return e.appendReceipt(b, request, payload, refusal)
	case refusal != nil:
		return e.AppendRefused(b, form, rawID(form, request), refusal)
	case form == DialectTaskRequest || form == DialectTaskAct:
		return b
	}
	from := len(b)
	b, err := appendReply(b, form, request, payload)
	if err != nil {
		return e.AppendRefused(b[:from], form, rawID(form, request), unspeakable)
	}
	return append(b, '\n')
}

func appendReply(b []byte, form Dialect, request string, payload any) ([]byte, error) {
	if form == DialectMail {
		return AppendPayload(b, payload)
	}
	spelled, err := AppendPayload(nil, payload)
	if err != nil {
		return b, err
	}
	return appendResult(b, rawID(form, request), string(spelled), spelled, false), nil
}

// appendReceipt appends the delivery error of a session message that was refused.
func (e Envelope) appendReceipt(b []byte, messageID string, payload any, refusal *Error) []byte {
	if refusal == nil {
		return b
	}
	what, _ := payload.(*session.DeliveryError)
	if what == nil {
		what = session.Undelivered(messageID, refusal)
	}
	return e.AppendDeliveryError(b, rawID(DialectSession, messageID), what, refusal)
}

// AppendRefused appends the refusal of a request as one line, in the form of the request. The
// request's id is given as it was written, or nil.
//
// A refused task request is answered with a failed task response if its id is a string that
// belongs to no other task. Otherwise it is answered with response:error.
func (e Envelope) AppendRefused(b []byte, form Dialect, id []byte, refusal *Error) []byte {
	refusal = form.place(refusal)
	switch form {
	case DialectToolCall:
		return e.appendToolRefusal(b, id, refusal)
	case DialectSession:
		messageID, _ := object.Text(id)
		return e.AppendDeliveryError(b, id, session.Undelivered(messageID, refusal), refusal)
	case DialectTaskRequest:
		if _, isText := object.Text(id); isText && refusal.Details["reason"] != ReasonReused {
			return delegation.AppendUndone(b, id, refusal)
		}
	}
	return e.AppendRefusal(b, id, refusal)
}

func (Envelope) appendToolRefusal(b, id []byte, refusal *Error) []byte {
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
