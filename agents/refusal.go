package agents

import (
	"errors"
	"fmt"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Code is why a request was refused, for programs.
type Code string

// The codes. There are no others.
const (
	InvalidRequest     Code = "INVALID_REQUEST"
	InvalidMessageType Code = "INVALID_MESSAGE_TYPE"
	Unauthorized       Code = "UNAUTHORIZED"
	NotFound           Code = "NOT_FOUND"
	Timeout            Code = "TIMEOUT"
	InternalError      Code = "INTERNAL_ERROR"
)

// Reasons tell apart what has no code of its own.
const (
	ReasonLimited    = "rate_limited" // too many messages; later it may be granted
	ReasonConflict   = "conflict"     // it does not fit what is
	ReasonWrongState = "wrong_state"  // nor does it fit the state of the task, such as one that has ended
	ReasonBlocked    = "blocked"      // the task waits for others
)

// Refusal is the orchestrator's no, as an error.
type Refusal struct {
	Code    Code     `json:"code"`
	Message string   `json:"message"`
	Details wire.Raw `json:"details,omitzero"` // an object
}

// Error makes it an error.
func (r *Refusal) Error() string { return fmt.Sprintf("%s (%s)", r.Message, r.Code) }

// Reason is what the details give as a reason, "" for none.
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

// refusal reads the error of an answer. One that says nothing is still a no.
func refusal(text wire.Raw) *Refusal {
	r := new(Refusal)
	if text == nil || object.DecodeOwn(text, r) != nil || r.Code == "" {
		return &Refusal{Code: InternalError, Message: "refused, without a word that could be understood", Details: text}
	}
	return r
}
