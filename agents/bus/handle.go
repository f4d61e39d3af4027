package bus

import (
	"context"
	"fmt"
	"runtime/debug"

	"orchestrator/agents/internal/fatal"
	"orchestrator/wire"
)

// Fatal returns an error with a code, for a Handler to return. It means that retrying the
// message cannot help. It is the same as agents.Fatal.
func Fatal(code string, err error) error { return fatal.New(code, err) }

// debt is what remains to be sent after a handler has returned. It is kept until it is sent, so
// that an unreachable bus does not cause a second call of the handler.
type debt struct {
	seq    int64
	letter *wire.SendMessage // the report of a failure; nil if there is none or it was sent
}

// handle calls the handler of a message and acknowledges the message.
func (r *receiver) handle(ctx context.Context, mail wire.Mail) error {
	d := &debt{seq: mail.Seq}
	if handler := r.handlers[mail.Topic]; handler != nil {
		err := r.call(ctx, handler, mail)
		_, failed := fatal.Code(err)
		switch {
		case failed:
			d.letter = r.failure(mail, err)
		case err != nil && ctx.Err() != nil:
			return err
		case err != nil:
			r.client.troubled(fmt.Errorf("message %d on %s is tried again: %w", mail.Seq, mail.Topic, err))
			return errHeld
		}
	}
	r.owed = d
	return r.pay(ctx)
}

// call calls a handler and turns a panic into a Fatal. Otherwise the message would be handled
// again and again, and block those behind it.
func (r *receiver) call(ctx context.Context, handler Handler, mail wire.Mail) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			r.client.troubled(fmt.Errorf("the handler of %s panicked: %v\n%s", mail.Topic, reason, debug.Stack()))
			err = Fatal(fatal.Panic, fmt.Errorf("the handler panicked: %v", reason))
		}
	}()
	return handler(ctx, mail)
}

// pay sends what the last message still needs. The acknowledgment is sent even if ctx has
// ended; otherwise the message would be handled again.
func (r *receiver) pay(ctx context.Context) error {
	d := r.owed
	if d == nil {
		return nil
	}
	if d.letter != nil {
		if _, err := r.client.Send(ctx, *d.letter); err != nil {
			return fmt.Errorf("message %d failed: %w", d.seq, err)
		}
		d.letter = nil
	}
	if _, err := r.client.Ack(context.WithoutCancel(ctx), d.seq); err != nil {
		return fmt.Errorf("message %d is handled: %w", d.seq, err)
	}
	r.owed = nil
	return nil
}

// failure returns the report to send for a failed message. If none may be sent, it calls
// Trouble and returns nil.
func (r *receiver) failure(mail wire.Mail, why error) *wire.SendMessage {
	letter := fatal.Letter(&mail, why)
	if letter == nil {
		r.client.troubled(fatal.GivenUp(&mail, why))
	}
	return letter
}
