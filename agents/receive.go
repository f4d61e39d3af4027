package agents

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"orchestrator/agents/internal/fatal"
	"orchestrator/wire"
)

// Fatal is an error with a code for programs, for the Mail of a Worker: the
// message can never be dealt with, and why. It is the same as in package bus.
func Fatal(code string, err error) error { return fatal.New(code, err) }

// receive deals with the agent's mail, message after message, until ctx ends.
func (w *work) receive(ctx context.Context) {
	for mail, ok := w.conn.letter(ctx); ok; mail, ok = w.conn.letter(ctx) {
		err := w.read(ctx, mail)
		if gaveUp(ctx, err) {
			return
		}
		w.conn.dealtWith(mail.Seq)
		w.troubled(w.close(ctx, mail, err))
	}
}

// read has the worker deal with a message. One that makes it panic takes nothing
// with it; where it did is told apart from the letter, as trouble.
func (w *work) read(ctx context.Context, mail wire.Mail) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = Fatal(fatal.Panic, w.panicked("", reason))
		}
	}()
	return w.worker.Mail(ctx, mail)
}

// close acknowledges a message, when GO has been told if it failed. One of which
// GO cannot be told is not acknowledged, and the log says so; that is all that can
// be done, because the next one is acknowledged with all before it.
func (w *work) close(ctx context.Context, mail wire.Mail, failed error) error {
	if failed != nil {
		letter := fatal.Letter(&mail, failed)
		if letter == nil {
			w.troubled(fatal.GivenUp(&mail, failed))
		} else if err := w.conn.settle(ctx, "send-message", letter); err != nil {
			return fmt.Errorf("message %d on %s failed: %w; and %s cannot be told: %w", mail.Seq, mail.Topic, failed, wire.ActorGlobal, err)
		}
	}
	if err := w.conn.settle(ctx, "ack-messages", wire.AckMessages{Seq: mail.Seq}); err != nil {
		return fmt.Errorf("message %d on %s is dealt with: %w", mail.Seq, mail.Topic, err)
	}
	return nil
}

// beat sends a heartbeat now and then one each time it is due, until ctx ends. One
// that is refused says nothing about the next.
func (w *work) beat(ctx context.Context) {
	due := time.NewTicker(cmp.Or(w.worker.Beat, time.Minute))
	defer due.Stop()
	for ctx.Err() == nil {
		var beat wire.Beat
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
