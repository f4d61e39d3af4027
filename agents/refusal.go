package agents

import (
	"errors"
	"fmt"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Code is a refusal code for programs.
type Code string

// The codes. The list is complete.
const (
	InvalidRequest     Code = "INVALID_REQUEST"
	InvalidMessageType Code = "INVALID_MESSAGE_TYPE"
	Unauthorized       Code = "UNAUTHORIZED"
	NotFound           Code = "NOT_FOUND"
	Timeout            Code = "TIMEOUT"
	InternalError      Code = "INTERNAL_ERROR"
)

// Reasons for refusals that share a code.
const (
	ReasonLimited    = "rate_limited" // too many messages; retry later
	ReasonConflict   = "conflict"     // conflicts with the current state
	ReasonWrongState = "wrong_state"  // the task is in the wrong state, for example ended
	ReasonBlocked    = "blocked"      // the task waits for others
)

// Refusal is the error of a refused request.
type Refusal struct {
	Code    Code     `json:"code"`
	Message string   `json:"message"`
	Details wire.Raw `json:"details,omitzero"` // an object
}

// Error returns the message and the code.
func (r *Refusal) Error() string { return fmt.Sprintf("%s (%s)", r.Message, r.Code) }

// Reason returns the reason in the details, or "".
func (r *Refusal) Reason() string {
	var details object.Reader
	if details.Read(r.Details, depth, "") != nil {
		return ""
	}
	return details.Text("reason")
}

// refusedFor reports whether an error is a refusal with a reason.
func refusedFor(reason string, err error) bool {
	var refused *Refusal
	return errors.As(err, &refused) && refused.Reason() == reason
}

// refusal decodes the error of an answer. A malformed error is still a refusal.
func refusal(text wire.Raw) *Refusal {
	r := new(Refusal)
	if text == nil || object.DecodeOwn(text, r) != nil || r.Code == "" {
		return &Refusal{Code: InternalError, Message: "refused, without a word that could be understood", Details: text}
	}
	return r
}
