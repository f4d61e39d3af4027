package bus

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"orchestrator/agents/internal/fatal"
	"orchestrator/wire"
	"orchestrator/wire/mail"
)

// A Handler handles a message. It may be called more than once for the same message; see the
// package documentation. Its context ends when Receive has to return.
type Handler func(ctx context.Context, received mail.Message) error

// Handlers maps topics to their handlers.
type Handlers map[string]Handler

// Receive handles the actor's mail, one message at a time, and sends heartbeats. It returns when
// ctx ends, with its cause, or when the bus refuses a request for good, for example because the
// token was revoked.
func (c *Client) Receive(ctx context.Context, handlers Handlers) error {
	if err := c.ready(); err != nil {
		return err
	}
	r := &receiver{
		client: c, handlers: handlers, bell: make(chan struct{}, 1), lately: time.Now(),
		active: cmp.Or(c.PollActive, 10*time.Second), idle: cmp.Or(c.PollIdle, time.Minute),
	}
	ctx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() {
		if err := c.Beat(ctx); ctx.Err() == nil {
			c.troubled(fmt.Errorf("there are no more heartbeats: %w", err))
		}
	})
	if !c.PollOnly {
		beside.Go(func() { r.listen(ctx) })
	}
	return r.receive(ctx)
}

// receiver is one call of Receive.
type receiver struct {
	client   *Client
	handlers Handlers
	active   time.Duration
	idle     time.Duration
	bell     chan struct{} // rings when there may be mail
	lately   time.Time     // when mail was last handled
	owed     *debt         // the unsent reply to the previous message
}

// page is the number of messages in a poll, so that a full mailbox need not fit into memory.
const page = 100

// errHeld reports that a message stays because its handler failed, which was reported.
var errHeld = errors.New("a message stays")

func (r *receiver) receive(ctx context.Context) error {
	for {
		some, err := r.round(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case final(err):
			return err
		case err != nil:
			if !errors.Is(err, errHeld) {
				r.client.troubled(err)
			}
			r.wait(ctx, r.active, nil) // new mail would not help
		case !some:
			r.wait(ctx, r.interval(), r.bell)
		}
	}
}

// round handles a page of mail. It reports whether there was any.
func (r *receiver) round(ctx context.Context) (some bool, err error) {
	if err := r.pay(ctx); err != nil {
		return false, err
	}
	received, err := r.client.Poll(ctx, wire.PollMessages{Limit: page})
	if err != nil {
		return false, err
	}
	// Acknowledging a message acknowledges all before it, so the order must not depend on the
	// server.
	slices.SortFunc(received, func(a, b mail.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, m := range received {
		err := r.handle(ctx, m)
		r.lately = time.Now()
		if err != nil || ctx.Err() != nil {
			return true, err
		}
	}
	return len(received) > 0, nil
}

// interval returns the pause before the next poll.
func (r *receiver) interval() time.Duration {
	if time.Since(r.lately) < r.idle {
		return r.active
	}
	return r.idle
}

// wait waits until its time is over or the bell rings.
func (r *receiver) wait(ctx context.Context, long time.Duration, bell <-chan struct{}) {
	over := time.NewTimer(long)
	defer over.Stop()
	select {
	case <-over.C:
	case <-bell:
	case <-ctx.Done():
	}
}

// Fatal returns an error with a code, for a Handler to return. It means that retrying the
// message cannot help. It is the same as agents.Fatal.
func Fatal(code string, err error) error { return fatal.New(code, err) }

// debt is the unsent part of the reply to a message after its handler has returned. It is kept
// until it is sent, so that an unreachable bus does not cause a second call of the handler.
type debt struct {
	seq    int64
	letter *wire.SendMessage // the report of a failure, or nil, also after it was sent
}

// handle calls the handler of a message and acknowledges the message.
func (r *receiver) handle(ctx context.Context, mail mail.Message) error {
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
func (r *receiver) call(ctx context.Context, handler Handler, mail mail.Message) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			r.client.troubled(fmt.Errorf("the handler of %s panicked: %v\n%s", mail.Topic, reason, debug.Stack()))
			err = Fatal(fatal.Panic, fmt.Errorf("the handler panicked: %v", reason))
		}
	}()
	return handler(ctx, mail)
}

// pay sends the rest of the reply to the last message. The acknowledgment is sent even if ctx has
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
func (r *receiver) failure(mail mail.Message, why error) *wire.SendMessage {
	letter := fatal.Letter(&mail, why)
	if letter == nil {
		r.client.troubled(fatal.GivenUp(&mail, why))
	}
	return letter
}

// listen rings the bell at every event of the stream and when the stream opens, because mail
// may have arrived before. If the bus refuses the stream, listen stops.
func (r *receiver) listen(ctx context.Context) {
	for {
		err := r.hear(ctx)
		if final(err) {
			r.client.troubled(fmt.Errorf("mail is polled alone: %w", err))
			return
		}
		r.wait(ctx, r.active, nil)
		if ctx.Err() != nil {
			return
		}
	}
}

// hear opens the event stream and listens until it ends. A temporary failure is not reported,
// because the polls will report it.
func (r *receiver) hear(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	late := time.AfterFunc(patience, func() { stop(errSilent) })
	response, err := r.client.open(ctx, http.MethodGet, "/api/sse/events?"+url.Values{"actor": {r.client.Actor}}.Encode(), nil)
	late.Stop()
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind != "text/event-stream" {
		return &Refusal{Status: response.StatusCode, Message: fmt.Sprintf("%q is no stream of events", kind)}
	}
	r.ring()
	return r.follow(response.Body)
}

// follow rings for each line that begins with data. A long line is not kept in memory.
func (r *receiver) follow(stream io.Reader) error {
	lines := bufio.NewReader(stream)
	begins := true
	for {
		line, more, err := lines.ReadLine()
		if err != nil {
			return fmt.Errorf("reading the stream of events: %w", err)
		}
		if begins && bytes.HasPrefix(line, []byte("data")) {
			r.ring()
		}
		begins = !more
	}
}

// ring signals that there may be mail. A signal that is still pending is enough.
func (r *receiver) ring() {
	select {
	case r.bell <- struct{}{}:
	default:
	}
}
