package wire

import (
	"maps"

	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// AppendDeliveryError appends the delivery error of a session message as one line. Its
// message_id is given as it was written, or nil (Session.RawID). The details are those of both
// errors.
func (e Envelope) AppendDeliveryError(b []byte, messageID []byte, what *session.DeliveryError, why *object.Error) []byte {
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
