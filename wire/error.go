package wire

import (
	"bytes"
	"orchestrator/wire/object"
	"orchestrator/wire/schema"
	"slices"
	"strings"
)

type (
	// An Error is a refusal as the other side sees it: a code for programs, a message for
	// people, and a hint on what would help.
	Error = object.Error
	// Code is the kind of an Error, for programs.
	Code = object.Code
)

// The codes.
const (
	CodeInvalid         = object.CodeInvalid
	CodeNotFound        = object.CodeNotFound
	CodeConflict        = object.CodeConflict
	CodeDenied          = object.CodeDenied
	CodeLimited         = object.CodeLimited
	CodeTimeout         = object.CodeTimeout
	CodeInternal        = object.CodeInternal
	CodeDamaged         = object.CodeDamaged
	CodeUnknownType     = object.CodeUnknownType
	CodeUnauthenticated = object.CodeUnauthenticated
	CodeMalformed       = object.CodeMalformed
	CodeTooLarge        = object.CodeTooLarge
	CodeMediaType       = object.CodeMediaType
)

// spokenCode returns the code as agents receive it. Agents know six codes; a reason in the
// details distinguishes the others.
func spokenCode(c Code) (code, reason string) {
	switch c {
	case CodeInvalid, CodeMalformed:
		return "INVALID_REQUEST", ""
	case CodeConflict:
		return "INVALID_REQUEST", "conflict"
	case CodeLimited:
		return "INVALID_REQUEST", "rate_limited"
	case CodeUnknownType:
		return "INVALID_MESSAGE_TYPE", ""
	case CodeTooLarge, CodeMediaType:
		return "INVALID_REQUEST", string(c)
	case CodeDenied, CodeUnauthenticated:
		return "UNAUTHORIZED", ""
	case CodeNotFound:
		return "NOT_FOUND", ""
	case CodeTimeout:
		return "TIMEOUT", ""
	}
	return "INTERNAL_ERROR", ""
}

// Refusal is an Error as a document.
type Refusal struct {
	FormatVersion string `json:"format_version"`
	Error         *Error `json:"error"`
}

// spoken lists the types of messages that agents send.
var spoken = slices.DeleteFunc(schema.Names(), func(name string) bool {
	return !strings.HasPrefix(name, "request:") && !strings.HasPrefix(name, "event:")
})

// meantType returns the type that an unknown type probably meant, or "" if none is similar. A
// type without a prefix counts as a request.
func meantType(kind string) string {
	const slips, longest = 2, 64
	if len(kind) > longest {
		return ""
	}
	if !strings.Contains(kind, ":") {
		kind = "request:" + kind
	}
	kind = object.Dashed(kind)
	best, fewest := "", slips+1
	for _, name := range spoken {
		if n := object.EditDistance(kind, name); n < fewest {
			best, fewest = name, n
		}
	}
	return best
}

// nearly returns why a line that is not a JSON object was probably meant as a message, or "".
func nearly(line []byte) string {
	text := bytes.TrimLeft(line, " \t")
	if !bytes.HasPrefix(text, []byte("{")) {
		return ""
	}
	for _, begun := range []string{`"request:`, `"event:`, `'request:`, `'event:`} {
		if bytes.Contains(text[:min(len(text), 512)], []byte(begun)) {
			return "it is no JSON object in one line: let a library spell it"
		}
	}
	return ""
}

// nearly returns why an object that is log was probably meant as a message.
func (k *keys) nearly(kind string, typed bool) string {
	switch {
	case k.kind == nil || !object.IsObject(k.payload):
		return ""
	case !typed:
		return "its type is not a string, and it has no id"
	}
	if name := meantType(kind); name != "" {
		return "there is no message type " + string(object.Quote(kind)) + ": did you mean " + string(object.Quote(name)) + "?"
	}
	return ""
}
