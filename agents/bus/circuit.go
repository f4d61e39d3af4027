package bus

import (
	"errors"
	"fmt"
	"time"

	"orchestrator/wire"
)

// ErrOpen is why nothing is sent after mail was given up.
var ErrOpen = errors.New("the circuit is open, and nothing is sent")

// cooldown is how long the circuit stays open before a message is let through.
const cooldown = time.Minute

// circuit reports whether there is any use in sending. It is for the one whose turn
// it is to send.
type circuit struct {
	since time.Time // when mail was given up last; zero: it is closed
	noted string    // the key of the mail that the incident file ends with
}

// open reports whether it is open. When it is and refuses nothing any more, what is
// sent next is to show how the bus is.
func (c *circuit) open() bool { return !c.since.IsZero() }

// refuses returns why nothing is sent now, and when something is again.
func (c *circuit) refuses(incidents string) error {
	if !c.open() || time.Since(c.since) >= cooldown {
		return nil
	}
	return fmt.Errorf("%w until %s: mail was given up at %s, see %s",
		ErrOpen, wire.Timestamp(c.since.Add(cooldown)), wire.Timestamp(c.since), incidents)
}
