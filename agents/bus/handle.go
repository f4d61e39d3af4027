package bus

import (
	"context"
	"fmt"
	"runtime/debug"

	"orchestrator/agents/internal/fatal"
	"orchestrator/wire"
)

// Fatal says that a message can never be dealt with, and why; the code is for
// programs. A Handler returns it. It is the same as in package agents.
func Fatal(code string, err error) error { return fatal.New(code, err) }

// debt is what is still to be said of a message that its handler is done with.
// It is kept until it is said, so that the handler is not called again because
// the bus was away.
type debt struct {
	seq    int64
	letter *wire.SendMessage // that it failed, nil when it did not, or that was said
}

// handle deals with a message and acknowledges it.
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

// call calls a handler. A panic would come back with the message each time, and
// nothing behind it would ever be handled.
func (r *receiver) call(ctx context.Context, handler Handler, mail wire.Mail) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			r.client.troubled(fmt.Errorf("the handler of %s panicked: %v\n%s", mail.Topic, reason, debug.Stack()))
			err = Fatal(fatal.Panic, fmt.Errorf("the handler panicked: %v", reason))
		}
	}()
	return handler(ctx, mail)
}

// pay returns what is owed. What has been handled is acknowledged even when ctx has
// ended meanwhile: it would be handled again otherwise.
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

// failure is what is sent because a message has failed, nil when that is only
// told here.
func (r *receiver) failure(mail wire.Mail, why error) *wire.SendMessage {
	letter := fatal.Letter(&mail, why)
	if letter == nil {
		r.client.troubled(fatal.GivenUp(&mail, why))
	}
	return letter
}
