package bus

import (
	"errors"
	"fmt"
	"time"

	"orchestrator/wire/object"
)

// ErrOpen is the error of a send while the circuit is open.
var ErrOpen = errors.New("the circuit is open, and nothing is sent")

// cooldown is how long the circuit stays open before a message is let through.
const cooldown = time.Minute

// circuit stops sending for a while after mail was given up. It is guarded by Client.turn.
type circuit struct {
	since time.Time // when mail was last given up; zero: closed
	noted string    // the key of the last mail in the incident file
}

// open reports whether the circuit is open. After the cooldown it is still open, but the next
// message may try.
func (c *circuit) open() bool { return !c.since.IsZero() }

// refuses returns an error if nothing may be sent now.
func (c *circuit) refuses(incidents string) error {
	if !c.open() || time.Since(c.since) >= cooldown {
		return nil
	}
	return fmt.Errorf("%w until %s: mail was given up at %s, see %s",
		ErrOpen, object.Timestamp(c.since.Add(cooldown)), object.Timestamp(c.since), incidents)
}
