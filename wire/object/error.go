package object

// A Code is the kind of an Error, for programs.
type Code string

// The codes. Each interface has its own spelling of them.
const (
	CodeInvalid  Code = "invalid"   // the request is malformed
	CodeNotFound Code = "not_found" // the request names an object that does not exist
	CodeConflict Code = "conflict"  // the request conflicts with the current state
	CodeDenied   Code = "denied"    // the caller may not do this
	CodeLimited  Code = "limited"   // the caller sent too many requests in a short time
	CodeTimeout  Code = "timeout"   // an answer or the disk took too long
	CodeInternal Code = "internal"  // the orchestrator has a fault
	CodeDamaged  Code = "damaged"   // a part of the record cannot be read

	CodeUnknownType Code = "unknown_type" // the message has an unknown type

	// Codes that are mostly used over HTTP.
	CodeUnauthenticated Code = "unauthenticated" // the caller is unknown
	CodeMalformed       Code = "malformed"       // the request is not JSON
	CodeTooLarge        Code = "too_large"       // the request is too large
	CodeMediaType       Code = "media_type"      // the media type of the request is not JSON
)

// An Error is the public part of a refusal: a code for programs, a message for people, details, and
// a hint on the remedy.
type Error struct {
	Code    Code           `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitzero"`
	Hint    string         `json:"hint,omitzero"`
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Invalid returns the error for a wrong value; pointer is its place, as a JSON pointer into
// the message.
func Invalid(pointer, message string) *Error {
	return &Error{Code: CodeInvalid, Message: message, Details: map[string]any{"pointer": pointer}}
}

// A Problem is one error in a message: its place, as a JSON pointer, and a description.
type Problem struct {
	// The place of the error: a JSON pointer.
	Pointer string `json:"pointer"`
	// The error at that place.
	Message string `json:"message"`
}

// ErrorOf returns an error for problems, nil if there are none. Its message is the message of the
// first problem, and its details have all problems.
func ErrorOf(problems []Problem) *Error {
	if len(problems) == 0 {
		return nil
	}
	first := Invalid(problems[0].Pointer, problems[0].Message)
	first.Details["errors"] = problems
	return first
}

// Complaints returns every error of a message as a line of text.
func (e *Error) Complaints() []string {
	problems, _ := e.Details["errors"].([]Problem)
	if len(problems) == 0 {
		pointer, _ := e.Details["pointer"].(string)
		problems = []Problem{{Pointer: pointer, Message: e.Message}}
	}
	said := make([]string, 0, len(problems))
	for _, p := range problems {
		said = append(said, p.String())
	}
	return said
}

// String returns a problem as a line of text.
func (p Problem) String() string {
	if p.Pointer == "" {
		return p.Message
	}
	return p.Pointer + ": " + p.Message
}

// Denied returns the error for a value that the sender may not use; pointer is its place.
func Denied(pointer, message string) *Error {
	return &Error{Code: CodeDenied, Message: message, Details: map[string]any{"pointer": pointer}}
}
