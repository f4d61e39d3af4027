package wire

import (
	"orchestrator/wire/object"
)

type (
	// An Error is a refusal as the other side sees it: a code for programs, a message for
	// people, and a hint on what would help.
	Error = object.Error
	// Code is the kind of an Error, for programs.
	Code = object.Code
)

// The codes. Each interface has its own spelling of them.
const (
	CodeInvalid  Code = "invalid"   // the request makes no sense
	CodeNotFound Code = "not_found" // the request names something that does not exist
	CodeConflict Code = "conflict"  // the request conflicts with the current state
	CodeDenied   Code = "denied"    // not for this caller
	CodeLimited  Code = "limited"   // too many in too short a time
	CodeTimeout  Code = "timeout"   // it took too long
	CodeInternal Code = "internal"  // a fault of the orchestrator

	CodeUnknownType Code = "unknown_type" // a message of an unknown type

	// Codes that are mostly used over HTTP.
	CodeUnauthenticated Code = "unauthenticated" // the caller is not known
	CodeMalformed       Code = "malformed"       // the request is not JSON
	CodeTooLarge        Code = "too_large"       // the request is too large
	CodeMediaType       Code = "media_type"      // the media type is not JSON
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
