package wire

import (
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
