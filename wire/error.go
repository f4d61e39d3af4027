package wire

import (
	"fmt"
	"slices"
	"strings"

	"orchestrator/wire/object"
	"orchestrator/wire/schema"
)

type (
	// An Error is a refusal as the other side sees it: a code for programs, a message for
	// people, and a hint on the remedy.
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

// Refusal is an Error as a document.
type Refusal struct {
	FormatVersion string `json:"format_version"`
	Error         *Error `json:"error"`
}

// spoken lists the types of messages that agents send.
var spoken = slices.DeleteFunc(schema.Names(), func(name string) bool {
	return !strings.HasPrefix(name, "request:") && !strings.HasPrefix(name, "event:")
})

// MeantType returns the type that an unknown type probably meant, or "" if none is similar. A
// type without a prefix counts as a request.
func MeantType(kind string) string {
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

// UnknownType returns the refusal of a message of an unknown type.
func UnknownType(kind string) *Error {
	message := fmt.Sprintf("unknown message type %q", kind)
	if meant := MeantType(kind); meant != "" {
		message += fmt.Sprintf(": did you mean %q?", meant)
	}
	return &Error{
		Code:    CodeUnknownType,
		Message: message,
		Details: map[string]any{"type": kind},
	}
}
