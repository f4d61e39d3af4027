package wire

import (
	"orchestrator/wire/object"
)

type (
	// Error is what the other side may know about a refusal. It is declared below, since
	// the readers of objects return it.
	Error = object.Error
	// Code is the kind of an Error, for programs.
	Code = object.Code
)

// The codes. Each interface spells them in its own way.
const (
	CodeInvalid  Code = "invalid"   // the request makes no sense
	CodeNotFound Code = "not_found" // what it names is not there
	CodeConflict Code = "conflict"  // it does not fit what is
	CodeDenied   Code = "denied"    // not for this caller
	CodeLimited  Code = "limited"   // too many in too short a time
	CodeTimeout  Code = "timeout"   // it took too long
	CodeInternal Code = "internal"  // our own fault

	CodeUnknownType Code = "unknown_type" // a message of an unknown type

	// At doors that are no pipe.
	CodeUnauthenticated Code = "unauthenticated" // the caller is not known
	CodeMalformed       Code = "malformed"       // it is no JSON
	CodeTooLarge        Code = "too_large"       // it is longer than is read
	CodeMediaType       Code = "media_type"      // it says that it is something else than JSON
)

// spokenCode is the code as agents hear it: there are six, and what has none of its
// own is told apart by a reason in the details.
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
