package wire

import (
	"maps"
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
func Undelivered(messageID string, why *Error) *DeliveryError {
	return &DeliveryError{OriginalMessageID: messageID, ErrorType: deliveryCode(why.Code), MaxRetries: DeliveryRetries}
}

// deliveryCode returns the error_type of a code.
func deliveryCode(c Code) string {
	switch c {
	case CodeInvalid, CodeUnknownType, CodeMalformed, CodeTooLarge, CodeMediaType:
		return DeliveryMalformed
	case CodeTimeout:
		return DeliveryTimeout
	}
	return DeliveryRejected
}

// AppendDeliveryError appends the delivery error of a session message as one line. Its
// message_id is given as it was written, or nil (Session.RawID). The details are those of both
// errors.
func (e Envelope) AppendDeliveryError(b []byte, messageID []byte, what *DeliveryError, why *Error) []byte {
	said := *why
	said.Details = maps.Clone(why.Details)
	if said.Details == nil {
		said.Details = make(map[string]any)
	}
	said.Details["original_message_id"] = what.OriginalMessageID
	said.Details["error_type"] = what.ErrorType
	said.Details["retry_count"] = what.RetryCount
	said.Details["max_retries"] = what.MaxRetries
	delete(said.Details, "next_retry_at")
	if what.NextRetryAt != "" {
		said.Details["next_retry_at"] = what.NextRetryAt
	}
	return e.AppendRefusal(b, messageID, &said)
}

// A TaskExecutionError describes what went wrong with the work on a task of a session.
type TaskExecutionError struct {
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

var executionErrors = []string{ExecutionTimeout, ExecutionException, ExecutionScopeViolation, ExecutionResourceLimit}

// The suggested actions of a TaskExecutionError.
const (
	SuggestRetry    = "retry"
	SuggestReassign = "reassign"
	SuggestAbort    = "abort"
	SuggestManual   = "manual" // a person has to look
)

var suggestions = []string{SuggestRetry, SuggestReassign, SuggestAbort, SuggestManual}
