package session

import (
	"orchestrator/wire/object"
)

// A DeliveryError describes a message that was not delivered. It is sent in the details of a
// response:error.
type DeliveryError struct {
	// The message_id of a session message that was not delivered; empty if it could not be read.
	OriginalMessageID string `json:"original_message_id" schema:"optional"`
	// Why a session message was not delivered. timeout: the recipient did not read it. rejected: it
	// conflicts with the current state. malformed: it is not valid.
	ErrorType string `json:"error_type" schema:"enum=session.deliveryErrors,optional"`
	// How often the delivery of a session message was retried.
	RetryCount int `json:"retry_count" schema:"min=0,optional"`
	// The maximum number of retries.
	MaxRetries int `json:"max_retries" schema:"min=0,optional"`
	// When the delivery is retried; missing if it is not.
	NextRetryAt string `json:"next_retry_at,omitzero" schema:"stamp"`
}

// The reasons why a message was not delivered.
const (
	DeliveryTimeout   = "timeout"   // the recipient did not read it
	DeliveryRejected  = "rejected"  // it conflicts with the current state
	DeliveryMalformed = "malformed" // it is not valid
)

// DeliveryRetries is the default number of retries of a delivery.
const DeliveryRetries = 3

// Undelivered returns the DeliveryError of a message that was refused. It is not retried.
func Undelivered(messageID string, why *object.Error) *DeliveryError {
	return &DeliveryError{OriginalMessageID: messageID, ErrorType: deliveryCode(why.Code), MaxRetries: DeliveryRetries}
}

// deliveryCode returns the error_type of a code.
func deliveryCode(c object.Code) string {
	switch c {
	case object.CodeInvalid, object.CodeUnknownType, object.CodeMalformed, object.CodeTooLarge, object.CodeMediaType:
		return DeliveryMalformed
	case object.CodeTimeout:
		return DeliveryTimeout
	}
	return DeliveryRejected
}

// An ExecutionError describes a failure of the work on a task of a session.
type ExecutionError struct {
	// The id of the task again.
	TaskID string `json:"task_id"`
	// timeout: the work took too long. exception: an unexpected error. scope_violation: a file
	// outside the scope was changed. resource_limit: a resource ran out.
	ErrorType string `json:"error_type" schema:"enum=session.ExecutionErrors"`
	// The error in words.
	ErrorMessage string `json:"error_message"`
	// Whether another try may succeed.
	Recoverable bool `json:"recoverable"`
	// The suggested action: try again, reassign the task, abort it, or ask a person.
	SuggestedAction string `json:"suggested_action" schema:"enum=session.Suggestions"`
}

// The types of failures of the work on a task.
const (
	ExecutionTimeout        = "timeout"
	ExecutionException      = "exception"
	ExecutionScopeViolation = "scope_violation" // a file outside the scope was changed
	ExecutionResourceLimit  = "resource_limit"
)

var ExecutionErrors = []string{ExecutionTimeout, ExecutionException, ExecutionScopeViolation, ExecutionResourceLimit}

// The suggested actions of a ExecutionError.
const (
	SuggestRetry    = "retry"
	SuggestReassign = "reassign"
	SuggestAbort    = "abort"
	SuggestManual   = "manual" // a person has to look
)

var Suggestions = []string{SuggestRetry, SuggestReassign, SuggestAbort, SuggestManual}

// Suggested returns the suggested action for an error that is not retried.
func Suggested(kind string) string {
	switch kind {
	case ExecutionTimeout:
		return SuggestReassign
	case ExecutionException:
		return SuggestAbort
	}
	return SuggestManual // the architect should split a task that is too large
}
