package agents

import (
	"fmt"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// Undelivered is that a message of a session was not delivered, and why, as an
// error.
type Undelivered struct {
	Refusal
	wire.DeliveryError
}

// Error makes it an error.
func (u *Undelivered) Error() string {
	if u.RetryCount > 0 {
		return fmt.Sprintf("not delivered after %d attempts: %s", u.RetryCount+1, u.Refusal.Error())
	}
	return "not delivered: " + u.Refusal.Error()
}

// Unwrap is the refusal.
func (u *Undelivered) Unwrap() error { return &u.Refusal }

// Scope is what may be changed for a task; false when that is not why the message
// was refused.
func (u *Undelivered) Scope() (patterns []string, outside bool) {
	var details struct {
		Scope []string `json:"scope"`
	}
	if object.DecodeOwn(u.Details, &details) != nil {
		return nil, false
	}
	return details.Scope, details.Scope != nil
}

// Sent is a message of a session that the agent has said. That it was delivered
// is never told; that it was not, sooner or later.
type Sent struct {
	MessageID      string
	CorrelationID  string
	SequenceNumber int64

	kind string // its message_type
	to   string // its addressee
	lost chan struct{}
	why  *Undelivered // when lost is closed

	// For the Conn, behind its door.
	place   int64    // among those that the agent has said
	written *written // its line, as long as there is one
	held    bool     // it is to be said again
	tries   int      // how often it was
}

// Refused is closed when the message will not be delivered, and Err says why. As
// long as it is tried again, or said again, it is open.
func (s *Sent) Refused() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.lost
}

// Err is an *Undelivered when the message will not be delivered, nil as long as
// that was not said.
func (s *Sent) Err() error {
	if why := s.undelivered(); why != nil {
		return why
	}
	return nil
}

func (s *Sent) undelivered() *Undelivered {
	select {
	case <-s.Refused():
		return s.why
	default:
		return nil
	}
}

// undelivered reports whether it is a message of a session that is refused, and tells
// its sender. It is called by the one goroutine that reads.
func (c *Conn) undelivered(id string, why *Refusal) bool {
	c.mu.Lock()
	sent := c.said.byKey[id]
	c.mu.Unlock()
	if sent == nil {
		return false
	}
	u := &Undelivered{Refusal: *why}
	_ = object.DecodeOwn(why.Details, &u.DeliveryError) // what it does not say is not known
	if u.NextRetryAt == "" && sent.undelivered() == nil && !c.sayLater(sent, u) {
		sent.why = u
		close(sent.lost)
		c.keep(heard{lost: sent})
	}
	return true
}
