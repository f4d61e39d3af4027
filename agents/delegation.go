package agents

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/google/uuid"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// A Delegation is a task that the agent has delegated. Its methods may be called concurrently.
type Delegation struct {
	ID string // of the task

	conn  *Conn
	aside func() (back func(context.Context)) // called around a wait; may be nil
	turn  chan struct{}                       // held by the act under way

	mu      sync.Mutex
	fresh   []*Response // not taken yet
	size    int         // of the lines of fresh
	heard   bool        // a response has come
	last    *Response   // the final response; nil until it comes
	lost    error       // why no final response will come
	act     *acting     // waits for the next response
	changed chan struct{}
}

// Delegate sends a task request to the target that it names, or to an agent that offers its
// type. Only the type is required. The default id is a new UUID. Repeating a request with the
// same id, perhaps after a restart, asks for the same work. The orchestrator fills in the
// source.
//
// Delegate returns when the request is written. The Delegation reports what follows, even that
// the request was refused.
func (c *Conn) Delegate(ctx context.Context, request delegation.Request) (*Delegation, error) {
	return c.delegate(ctx, request, nil)
}

func (c *Conn) delegate(ctx context.Context, request delegation.Request, aside func() func(context.Context)) (*Delegation, error) {
	if request.ID == "" {
		request.ID = uuid.NewString()
	}
	d := &Delegation{ID: request.ID, conn: c, aside: aside, turn: make(chan struct{}, 1), changed: make(chan struct{})}
	line, err := spellRequest(request)
	if err == nil {
		err = c.entrust(d)
	}
	if err == nil {
		if err = c.write(ctx, line); err != nil {
			c.dismiss(d)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("delegating %s: %w", request.Type, err)
	}
	return d, nil
}

// spellRequest returns the line of a request, validated as the orchestrator will.
func spellRequest(request delegation.Request) ([]byte, error) {
	request.Document = nil // the document of a received request is not sent
	err := onlyObjects(request.Payload, request.Observability.Baggage)
	var read *delegation.Request
	if err == nil {
		var wrong *wire.Error
		if read, wrong = wire.ReadTaskRequest(request.Forwarded(delegation.Forwarding{}), depth); wrong != nil {
			err = wrong
		} else if len(read.Document) > maxLine {
			err = errTooLong
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnsaid, err)
	}
	return append(read.Document, '\n'), nil
}

// onlyObjects checks documents that are copied into a line unchanged.
func onlyObjects(documents ...wire.Raw) error {
	for _, document := range documents {
		if document == nil {
			continue
		}
		if _, err := asObject(document); err != nil {
			return err
		}
	}
	return nil
}

var errAsked = errors.New("it was asked for, and is not over")

// entrust registers a delegation for the responses to come.
func (c *Conn) entrust(d *Delegation) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over != nil:
		return fmt.Errorf("%w: %w", errUnasked, c.over)
	case c.delegations[d.ID] != nil:
		return fmt.Errorf("%w: %w", errUnsaid, errAsked)
	}
	c.delegations[d.ID] = d
	return nil
}

// dismiss forgets a delegation that gets no more responses.
func (c *Conn) dismiss(d *Delegation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.delegations[d.ID] == d {
		delete(c.delegations, d.ID)
	}
}

func (c *Conn) delegation(id string) *Delegation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.delegations[id]
}

// responded passes a response to its delegation.
func (c *Conn) responded(line []byte) {
	r, err := readResponse(line)
	if err != nil {
		return
	}
	d := c.delegation(r.ID)
	if d == nil {
		return
	}
	if r.final() {
		c.dismiss(d)
	}
	d.hear(r)
}

// hear keeps a response until it is taken. When there are too many, the oldest are dropped.
func (d *Delegation) hear(r *Response) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard = true
	if r.final() {
		d.last = r
	}
	d.fresh = append(d.fresh, r)
	d.size += len(r.Document)
	for len(d.fresh) > 1 && (len(d.fresh) > maxTidings || d.size > maxLately) {
		d.size -= len(d.fresh[0].Document)
		d.fresh = slices.Delete(d.fresh, 0, 1)
	}
	if d.act != nil && (r.final() || !d.act.toTheEnd) {
		d.acted(r, nil)
	}
	d.ring()
}

// lose records why the final response will not come.
func (d *Delegation) lose(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost = why
	d.acted(nil, why)
	d.ring()
}

// ring wakes all waiting calls.
func (d *Delegation) ring() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// Responses iterates over the responses up to the final one. Each response goes to one caller.
// The iteration ends early when ctx ends, when the request is refused or when the stream ends;
// Wait returns the reason. If responses are not taken, only the latest are kept.
func (d *Delegation) Responses(ctx context.Context) iter.Seq[*Response] {
	return func(yield func(*Response) bool) {
		for {
			r, _ := d.await(ctx, d.take)
			if r == nil || !yield(r) {
				return
			}
		}
	}
}

// take takes the oldest response. over reports that there is none to wait for.
func (d *Delegation) take() (r *Response, over bool) {
	if len(d.fresh) == 0 {
		return nil, d.last != nil
	}
	r = d.fresh[0]
	d.fresh = slices.Delete(d.fresh, 0, 1)
	d.size -= len(r.Document)
	return r, true
}

// Wait waits for the final response; it takes nothing from Responses. A failed or cancelled
// task also yields the Err of its response, a refused request a *Refusal. Wait goes on waiting
// while the task needs input. To send that input, range over Responses.
func (d *Delegation) Wait(ctx context.Context) (*Response, error) {
	r, err := d.await(ctx, func() (*Response, bool) { return d.last, d.last != nil })
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", d.ID, err)
	}
	return r, r.Err()
}

// await waits until find reports over, or until the delegation is lost.
func (d *Delegation) await(ctx context.Context, find func() (r *Response, over bool)) (*Response, error) {
	r, over, changed, err := d.look(find)
	if over {
		return r, err
	}
	if d.aside != nil {
		defer d.aside()(ctx)
	}
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if r, over, changed, err = d.look(find); over {
			return r, err
		}
	}
}

// look calls find. If there is no result yet, it returns the channel to wait for.
func (d *Delegation) look(find func() (*Response, bool)) (r *Response, over bool, changed <-chan struct{}, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r, over = find(); !over && d.lost != nil {
		over, err = true, d.lost
	}
	return r, over, d.changed, err
}
