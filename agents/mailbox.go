package agents

import (
	"cmp"
	"context"
	"slices"

	"orchestrator/wire"
)

// The mailbox of a connection holds the mail that has arrived and is not dealt with. It belongs
// to the connection, because each message is announced once per run. The next WorkAs continues
// where the last one stopped.

// posted inserts a message in the order of the numbers, which start at 1. Duplicates are
// ignored.
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

// letter waits for the oldest message and leaves it in the mailbox. It returns false if ctx
// ends first.
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

// dealtWith removes a message and all older ones, which its acknowledgment covers.
func (c *Conn) dealtWith(seq int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dealt = seq
	for len(c.mail) > 0 && c.mail[0].Seq <= seq {
		c.mail[0] = wire.Mail{}
		c.mail = c.mail[1:]
	}
}
