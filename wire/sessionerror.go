package wire

import (
	"maps"
)

// DeliveryError is what became of a message that was not delivered. No message of
// a session says it: it stands in the details of a response:error.
type DeliveryError struct {
	OriginalMessageID string `json:"original_message_id"` // "" when it had none that could be read
	ErrorType         string `json:"error_type"`          // Delivery… below
	RetryCount        int    `json:"retry_count"`
	MaxRetries        int    `json:"max_retries"`
	NextRetryAt       string `json:"next_retry_at,omitzero"` // "": it is not tried again
}

// Why a message was not delivered.
const (
	DeliveryTimeout   = "timeout"   // its addressee does not take it
	DeliveryRejected  = "rejected"  // it does not fit what is
	DeliveryMalformed = "malformed" // it makes no sense
)

// DeliveryRetries is how often a delivery is tried again, by default.
const DeliveryRetries = 3

// Undelivered is what became of a message that was refused. It is tried again by
// no member.
func Undelivered(messageID string, why *Error) *DeliveryError {
	return &DeliveryError{OriginalMessageID: messageID, ErrorType: deliveryCode(why.Code), MaxRetries: DeliveryRetries}
}

// deliveryCode is the code as sessions know it.
func deliveryCode(c Code) string {
	switch c {
	case CodeInvalid, CodeUnknownType, CodeMalformed, CodeTooLarge, CodeMediaType:
		return DeliveryMalformed
	case CodeTimeout:
		return DeliveryTimeout
	}
	return DeliveryRejected
}

// AppendDeliveryError appends as one line what became of a session message. Its
// message_id is given as it stood, or nil (Session.RawID). The details are those
// of the DeliveryError, and beside them what is said of why.
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

// TaskExecutionError is how the work on a task of a session went wrong.
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
	ExecutionScopeViolation = "scope_violation" // a file was changed that was not to be
	ExecutionResourceLimit  = "resource_limit"
)

var executionErrors = []string{ExecutionTimeout, ExecutionException, ExecutionScopeViolation, ExecutionResourceLimit}

// What can be done about it.
const (
	SuggestRetry    = "retry"
	SuggestReassign = "reassign"
	SuggestAbort    = "abort"
	SuggestManual   = "manual" // a person has to look
)

var suggestions = []string{SuggestRetry, SuggestReassign, SuggestAbort, SuggestManual}
