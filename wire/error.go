package wire

// Code is the kind of an Error, for programs.
type Code string

// The codes. Each door spells them in its own way.
const (
	CodeInvalid  Code = "invalid"   // the request makes no sense
	CodeNotFound Code = "not_found" // what it names is not there
	CodeConflict Code = "conflict"  // it does not fit what is
	CodeDenied   Code = "denied"    // not for this caller
	CodeTimeout  Code = "timeout"   // it took too long
	CodeInternal Code = "internal"  // our own fault

	CodeUnknownType Code = "unknown_type" // a message that nobody knows
)

// Error is what the other side may know about a refusal: a code for programs,
// a message for people, and what would help.
type Error struct {
	Code    Code           `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitzero"`
	Hint    string         `json:"hint,omitzero"`
}

// Error makes it an error.
func (e *Error) Error() string { return e.Message }

// Refusal is an Error as a document.
type Refusal struct {
	FormatVersion string `json:"format_version"`
	Error         *Error `json:"error"`
}
