package dialect

import (
	"maps"
	"strings"

	"orchestrator/wire/object"
)

// A Dialect is the form of a request and of its answer.
type Dialect uint8

// The dialects.
const (
	Native       Dialect = iota // request:…, answered with response:…
	Mail                        // bare mail, answered with the stored mail
	ToolCall                    // a tool call, answered as JSON-RPC; the ID is JSON
	Session                     // a bare session message; only a refusal is answered, with a delivery error
	TaskRequest                 // a bare task request; only a refusal is answered, with a failed task response
	TaskAct                     // a bare act on a task; only a refusal is answered, with response:…
	TaskResponse                // a bare task response; it is refused as an act is
	None                        // no message
)

// RawID returns the id of a request as JSON, or nil if it has none.
func (d Dialect) RawID(id string) []byte {
	switch {
	case d == Native:
		return object.Quote(id)
	case id == "":
		return nil
	case d == ToolCall:
		return []byte(id)
	}
	return object.Quote(id)
}

// payload returns the pointer to the payload in a line of this form.
func (d Dialect) payload() string {
	switch d {
	case Mail:
		return ""
	case ToolCall:
		return "/params/arguments"
	}
	return "/payload"
}

// Place returns an error that points into a line of this form. Readers of payloads report errors
// as if the request were native, so that they need not know its form. Errors in session messages
// and delegated work already point into the line.
func (d Dialect) Place(e *object.Error) *object.Error {
	pointer, _ := e.Details["pointer"].(string)
	below, found := strings.CutPrefix(pointer, Native.payload())
	if d != Mail && d != ToolCall || !found || below != "" && below[0] != '/' {
		return e
	}
	there := *e // the same error may be sent again, in another form
	there.Details = maps.Clone(e.Details)
	there.Details["pointer"] = d.payload() + below
	return &there
}
