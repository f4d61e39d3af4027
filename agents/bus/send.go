package bus

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// pauses are between the attempts to send a message.
var pauses = []time.Duration{2 * time.Second, 10 * time.Second, time.Minute}

// Send sends mail and returns it as it is kept. Who it is from is the client's
// actor, unless it says something else; a key is made for mail that has none, and
// a payload that is nil is an empty object.
//
// It takes its time while the bus cannot be reached: see the package. A *Refusal
// says that the bus does not want the mail. When ctx ends first the mail may or
// may not have been kept; sent again with the same key of the caller's own, it is
// kept once.
func (c *Client) Send(ctx context.Context, mail wire.SendMessage) (wire.Sent, error) {
	mail.From = cmp.Or(mail.From, c.Actor)
	mail.Key = cmp.Or(mail.Key, uuid.NewString())
	if mail.Payload == nil {
		mail.Payload = wire.Raw("{}")
	}
	sent, err := c.send(ctx, &mail)
	if err != nil {
		return wire.Sent{}, fmt.Errorf("sending %s to %s: %w", mail.Topic, mail.To, err)
	}
	return sent, nil
}

func (c *Client) send(ctx context.Context, mail *wire.SendMessage) (sent wire.Sent, err error) {
	if err := c.ready(); err != nil {
		return sent, err
	}
	body, err := object.Encode(mail)
	if err != nil {
		return sent, err
	}
	if err := c.takeTurn(ctx); err != nil {
		return sent, err
	}
	defer func() { <-c.turn }()
	err = c.deliver(ctx, mail, body, &sent)
	return sent, err
}

// takeTurn waits until no other goroutine sends.
func (c *Client) takeTurn(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// deliver is for the one whose turn it is.
func (c *Client) deliver(ctx context.Context, mail *wire.SendMessage, body []byte, sent *wire.Sent) error {
	if err := c.circuit.refuses(c.incidents()); err != nil {
		return err
	}
	between := pauses
	if c.circuit.open() {
		between = nil
	}
	err := c.insist(ctx, body, between, sent)
	switch {
	case err != nil && ctx.Err() != nil: // which says nothing about the bus
		return err
	case passing(err):
		return c.giveUp(mail, len(between)+1, err)
	}
	c.circuit.since = time.Time{}
	return err
}

// insist makes an attempt, and another one after each pause.
func (c *Client) insist(ctx context.Context, body []byte, between []time.Duration, sent *wire.Sent) error {
	for _, pause := range between {
		err := c.call(ctx, http.MethodPost, "/api/bus/send", body, sent)
		if ctx.Err() != nil || !passing(err) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%w, and before that: %w", context.Cause(ctx), err)
		}
	}
	return c.call(ctx, http.MethodPost, "/api/bus/send", body, sent)
}

// giveUp is the end of a message that did not get through. One that its sender
// tries to send again and again stands in the incident file once.
func (c *Client) giveUp(mail *wire.SendMessage, attempts int, err error) error {
	now := time.Now()
	c.circuit.since = now
	file := c.incidents()
	if mail.Key != c.circuit.noted {
		if trouble := note(file, incidentOf(mail, now, attempts, err)); trouble != nil {
			return fmt.Errorf("given up after attempt %d: %w; and that cannot be noted: %w", attempts, err, trouble)
		}
		c.circuit.noted = mail.Key
	}
	return fmt.Errorf("given up after attempt %d, see %s: %w", attempts, file, err)
}
