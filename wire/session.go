package wire

import (
	"maps"
	"slices"

	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// A Session is a message in the session dialect, from a line or from the payload of a request.
// It is either a Message or an Err. Both are recorded in the log of the session. The sender of a
// wrong message gets a delivery error (AppendDeliveryError).
type Session struct {
	ID       string           // its message_id; "" if it cannot be read
	Type     string           // its message_type, whatever word that is
	Message  *session.Message // nil if Err is set
	Err      *object.Error
	Document object.Raw // as received; nil if it could not be read completely

	id []byte
}

func (*Session) message() {}

// RawID returns the message_id as it was written, or nil if it cannot be repeated.
func (s *Session) RawID() []byte { return s.id }

// Complaints returns the validation errors for the log, each with its place: those that were
// tolerated, or all errors of a message that was refused.
func (s *Session) Complaints() []string {
	if s.Err != nil {
		return s.Err.Complaints()
	}
	return slices.Clone(s.Message.Notes)
}

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
