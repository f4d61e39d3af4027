package wire

import (
	"maps"
	"strings"

	"orchestrator/wire/object"
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

// RawID returns the id of a request as JSON, or nil if it has none.
func (d Dialect) RawID(id string) []byte {
	switch {
	case d == DialectNative:
		return object.Quote(id)
	case id == "":
		return nil
	case d == DialectToolCall:
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
func (d Dialect) place(e *object.Error) *object.Error {
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
