package agents

import (
	"fmt"

	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// Undelivered is the error of a session message that was not delivered.
type Undelivered struct {
	Refusal
	session.DeliveryError
}

// Error returns the refusal and the number of attempts.
func (u *Undelivered) Error() string {
	if u.RetryCount > 0 {
		return fmt.Sprintf("not delivered after %d attempts: %s", u.RetryCount+1, u.Refusal.Error())
	}
	return "not delivered: " + u.Refusal.Error()
}

// Unwrap returns the refusal.
func (u *Undelivered) Unwrap() error { return &u.Refusal }

// Scope returns the patterns of the files that a task may change. It returns false if the
// message was refused for another reason.
func (u *Undelivered) Scope() (patterns []string, outside bool) {
	var details struct {
		Scope []string `json:"scope"`
	}
	if object.DecodeOwn(u.Details, &details) != nil {
		return nil, false
	}
	return details.Scope, details.Scope != nil
}

// Sent is a session message that the agent has sent. Delivery is never confirmed; a failure is
// reported sooner or later.
type Sent struct {
	MessageID      string
	CorrelationID  string
	SequenceNumber int64

	kind string // its message_type
	to   string // its addressee
	lost chan struct{}
	why  *Undelivered // set before lost is closed

	// Guarded by Conn.mu.
	place   int64    // among the messages of the connection
	written *written // its line, while buffered
	held    bool     // it waits in a lane
	tries   int      // how often it was sent again
}

// Refused returns a channel that is closed when the message will not be delivered; Err then
// returns why. It stays open while delivery is retried.
func (s *Sent) Refused() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.lost
}

// Err returns an *Undelivered once the message is known not to be delivered, otherwise nil.
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

// undelivered reports whether a refusal concerns a session message, and records it there. Only
// the reading goroutine calls it.
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
