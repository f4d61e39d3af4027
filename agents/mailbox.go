package agents

import (
	"cmp"
	"context"
	"slices"

	"orchestrator/wire"
)

// The mailbox of a connection is mail that the agent was told of and has not
// dealt with. It is the connection's, because the orchestrator tells a run of each
// message once: what one WorkAs leaves, the next one finds.

// posted puts a message into the mailbox, in order of the numbers, which begin
// with 1. One that comes twice is there once.
func (c *Conn) posted(mail wire.Mail) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, there := slices.BinarySearchFunc(c.mail, mail.Seq, bySeq)
	if there || mail.Seq <= c.dealt {
		return
	}
	c.mail = slices.Insert(c.mail, at, mail)
	select {
	case c.post <- struct{}{}:
	default:
	}
}

func bySeq(mail wire.Mail, seq int64) int { return cmp.Compare(mail.Seq, seq) }

// letter waits for the oldest message, which stays until it is dealt with; false
// when ctx ends first.
func (c *Conn) letter(ctx context.Context) (wire.Mail, bool) {
	for ctx.Err() == nil {
		if mail, ok := c.oldest(); ok {
			return mail, true
		}
		select {
		case <-c.post:
		case <-ctx.Done():
		}
	}
	return wire.Mail{}, false
}

func (c *Conn) oldest() (wire.Mail, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mail) == 0 {
		return wire.Mail{}, false
	}
	return c.mail[0], true
}

// dealtWith takes a message out, and all that is older: acknowledged is what is
// older in any case.
func (c *Conn) dealtWith(seq int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dealt = seq
	for len(c.mail) > 0 && c.mail[0].Seq <= seq {
		c.mail[0] = wire.Mail{}
		c.mail = c.mail[1:]
	}
}
