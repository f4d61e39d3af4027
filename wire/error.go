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

// The codes.
const (
	CodeInvalid         = object.CodeInvalid
	CodeNotFound        = object.CodeNotFound
	CodeConflict        = object.CodeConflict
	CodeDenied          = object.CodeDenied
	CodeLimited         = object.CodeLimited
	CodeTimeout         = object.CodeTimeout
	CodeInternal        = object.CodeInternal
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
