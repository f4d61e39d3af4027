package wire

import (
	"maps"
	"strings"

	"orchestrator/wire/object"
)

// Dialect is how an agent has asked for something, and so how it is answered.
type Dialect uint8

// The forms.
const (
	DialectNative      Dialect = iota // request:…, answered with response:…
	DialectMail                       // mail as it is, answered with the mail as it is kept
	DialectToolCall                   // the call of a tool, answered as JSON-RPC; the ID is JSON
	DialectSession                    // a session message as it is: only a refusal is answered, with what became of it
	DialectTaskRequest                // a task request as it is: only a refusal is answered, with a task response that failed
	DialectTaskAct                    // what is said about a task as it is: only a refusal is answered, with response:…
)

// RawID is the id of a request as JSON, for those who refuse it; nil when it has
// none.
func (r *Request) RawID() []byte { return rawID(r.Form, r.ID) }

func rawID(form Dialect, id string) []byte {
	switch {
	case form == DialectNative:
		return Quote(id)
	case id == "":
		return nil
	case form == DialectToolCall:
		return []byte(id)
	}
	return Quote(id)
}

// payload is where the payload stands in a line of this form.
func (f Dialect) payload() string {
	switch f {
	case DialectMail:
		return ""
	case DialectToolCall:
		return "/params/arguments"
	}
	return "/payload"
}

// place has an error point into a line of this form. A reader of a payload, or
// decides about it, says where something is wrong as if it stood in a request of
// our own: they need not know in which form it came. A message of a session or of
// delegated work is read by itself, and what is wrong with it points into it already.
func (f Dialect) place(e *Error) *Error {
	pointer, _ := e.Details["pointer"].(string)
	below, found := strings.CutPrefix(pointer, DialectNative.payload())
	if f != DialectMail && f != DialectToolCall || !found || below != "" && below[0] != '/' {
		return e
	}
	there := *e // the same error may be said again, in another form
	there.Details = maps.Clone(e.Details)
	there.Details["pointer"] = f.payload() + below
	return &there
}

// AppendReply appends the answer to a request as one line, in the form in which
// it was asked: payload, a JSON object, or why not. The request is its ID. A
// session message that is delivered has no answer; beside a refusal, payload may
// be the *DeliveryError that became of it. Delegated work that is taken has none
// either: what becomes of it is said in lines of its own.
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
		return appendPayload(b, payload)
	}
	spelled, err := appendPayload(nil, payload)
	if err != nil {
		return b, err
	}
	return appendResult(b, rawID(form, request), string(spelled), spelled, false), nil
}

// appendReceipt appends what became of a session message, if it was not delivered.
func (e Envelope) appendReceipt(b []byte, messageID string, payload any, refusal *Error) []byte {
	if refusal == nil {
		return b
	}
	what, _ := payload.(*DeliveryError)
	if what == nil {
		what = Undelivered(messageID, refusal)
	}
	return e.AppendDeliveryError(b, rawID(DialectSession, messageID), what, refusal)
}

// AppendRefused appends the refusal of a request as one line, in the form in
// which it was asked. The request's id is given as it stood, or nil.
//
// What is said of refused work in the form of its response is said of the task with
// its id. Without such an id, or with that of another task, it is said as usual.
func (e Envelope) AppendRefused(b []byte, form Dialect, id []byte, refusal *Error) []byte {
	refusal = form.place(refusal)
	switch form {
	case DialectToolCall:
		return e.appendToolRefusal(b, id, refusal)
	case DialectSession:
		messageID, _ := object.Text(id)
		return e.AppendDeliveryError(b, id, Undelivered(messageID, refusal), refusal)
	case DialectTaskRequest:
		if _, isText := object.Text(id); isText && refusal.Details["reason"] != ReasonReused {
			return appendUndone(b, id, refusal)
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

// appendResult spells what the call of a tool came to: for models that read it,
// and for programs.
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
