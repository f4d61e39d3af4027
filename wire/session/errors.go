package session

import (
	"orchestrator/wire/object"
)

// A DeliveryError describes a message that was not delivered. It is sent in the details of a
// response:error.
type DeliveryError struct {
	OriginalMessageID string `json:"original_message_id"` // "" if it could not be read
	ErrorType         string `json:"error_type"`          // Delivery… below
	RetryCount        int    `json:"retry_count"`
	MaxRetries        int    `json:"max_retries"`
	NextRetryAt       string `json:"next_retry_at,omitzero"` // "": it is not tried again
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

// A ExecutionError describes what went wrong with the work on a task of a session.
type ExecutionError struct {
	TaskID          string `json:"task_id"`
	ErrorType       string `json:"error_type"` // Execution… below
	ErrorMessage    string `json:"error_message"`
	Recoverable     bool   `json:"recoverable"`
	SuggestedAction string `json:"suggested_action"` // Suggest… below
}

// What can go wrong with the work on a task.
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
