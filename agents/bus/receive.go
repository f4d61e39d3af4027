package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"orchestrator/wire"
)

// A Handler handles a message. It may be called more than once for the same message; see the
// package documentation. Its context ends when Receive has to return.
type Handler func(ctx context.Context, received wire.Mail) error

// Handlers maps topics to their handlers.
type Handlers map[string]Handler

// Receive handles the actor's mail, one message at a time, and sends heartbeats meanwhile. It
// returns when ctx ends, with its cause, or when the bus refuses a request for good, for
// example because the token was revoked.
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
	owed     *debt         // what the previous message still needs
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
	slices.SortFunc(received, func(a, b wire.Mail) int { return cmp.Compare(a.Seq, b.Seq) })
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
