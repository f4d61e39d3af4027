package agents

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"orchestrator/agents/internal/fatal"
	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// Fatal returns an error with a code, for the Mail function of a Worker. It means that retrying
// the message cannot help. It is the same as bus.Fatal.
func Fatal(code string, err error) error { return fatal.New(code, err) }

// receive passes the agent's mail to the worker, one message at a time, until ctx ends.
func (w *work) receive(ctx context.Context) {
	for received, ok := w.conn.letter(ctx); ok; received, ok = w.conn.letter(ctx) {
		err := w.read(ctx, received)
		if gaveUp(ctx, err) {
			return
		}
		w.conn.dealtWith(received.Seq)
		w.troubled(w.close(ctx, received, err))
	}
}

// read calls Mail with a message. A panic fails only this message; its stack is reported in an
// error event.
func (w *work) read(ctx context.Context, received mail.Message) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = Fatal(fatal.Panic, w.panicked("", reason))
		}
	}()
	return w.worker.Mail(ctx, received)
}

// close acknowledges a message. If Mail failed, close first reports that to GO. If the report
// fails, close returns an error and leaves the message unacknowledged. The next acknowledgment
// covers it all the same.
func (w *work) close(ctx context.Context, received mail.Message, failed error) error {
	if failed != nil {
		letter := fatal.Letter(&received, failed)
		if letter == nil {
			w.troubled(fatal.GivenUp(&received, failed))
		} else if err := w.conn.settle(ctx, "send-message", letter); err != nil {
			return fmt.Errorf("message %d on %s failed: %w; and %s cannot be told: %w", received.Seq, received.Topic, failed, mail.Global, err)
		}
	}
	if err := w.conn.settle(ctx, "ack-messages", wire.AckMessages{Seq: received.Seq}); err != nil {
		return fmt.Errorf("message %d on %s is dealt with: %w", received.Seq, received.Topic, err)
	}
	return nil
}

// beat sends a heartbeat at once and then at each interval, until ctx ends. A refused heartbeat
// does not stop it.
func (w *work) beat(ctx context.Context) {
	due := time.NewTicker(cmp.Or(w.worker.Beat, time.Minute))
	defer due.Stop()
	for ctx.Err() == nil {
		var beat mail.Beat
		err := w.conn.askPatiently(ctx, "heartbeat", nil, &beat)
		if w.worker.Beat == 0 && beat.Every > 0 {
			due.Reset(time.Duration(beat.Every) * time.Millisecond)
		}
		if gaveUp(ctx, err) {
			return
		}
		w.troubled(err)
		select {
		case <-due.C:
		case <-ctx.Done():
		}
	}
}

// The mailbox of a connection holds the mail that has arrived and is not dealt with. It belongs
// to the connection, because each message is announced once per run. The next WorkAs continues
// where the last one stopped.

// posted inserts a message in the order of the numbers, which start at 1. Duplicates are
// ignored.
func (c *Conn) posted(mail mail.Message) {
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

func bySeq(mail mail.Message, seq int64) int { return cmp.Compare(mail.Seq, seq) }

// letter waits for the oldest message and leaves it in the mailbox. It returns false if ctx
// ends first.
func (c *Conn) letter(ctx context.Context) (mail.Message, bool) {
	for ctx.Err() == nil {
		if mail, ok := c.oldest(); ok {
			return mail, true
		}
		select {
		case <-c.post:
		case <-ctx.Done():
		}
	}
	return mail.Message{}, false
}

func (c *Conn) oldest() (mail.Message, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mail) == 0 {
		return mail.Message{}, false
	}
	return c.mail[0], true
}

// dealtWith removes a message and all older ones, which its acknowledgment covers.
func (c *Conn) dealtWith(seq int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dealt = seq
	for len(c.mail) > 0 && c.mail[0].Seq <= seq {
		c.mail[0] = mail.Message{}
		c.mail = c.mail[1:]
	}
}
