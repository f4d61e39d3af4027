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
)

// Delegation is work that the agent has delegated. Its methods may be called at the
// same time.
type Delegation struct {
	ID string // of the task

	conn  *Conn
	aside func() (back func(context.Context)) // called around waiting; nil: there is no need
	turn  chan struct{}                       // has room for the act that is under way

	mu      sync.Mutex
	fresh   []*Response // not taken yet
	size    int         // of their lines
	heard   bool        // something has come
	last    *Response   // the final one; nil: it has not come
	lost    error       // why it will not come
	act     *acting     // which waits for what comes next
	changed chan struct{}
}

// Delegate asks another agent for work: the target that the request names, or one
// that can do what its type says. A request needs no more than a type. Its id is a
// new UUID, unless one is given; asking once more with the same one, after a restart
// perhaps, asks for the same work. Which agent it comes from the orchestrator says.
//
// It returns when the request is written. What becomes of it is in the Delegation:
// that the request was refused, too.
func (c *Conn) Delegate(ctx context.Context, request wire.TaskRequest) (*Delegation, error) {
	return c.delegate(ctx, request, nil)
}

func (c *Conn) delegate(ctx context.Context, request wire.TaskRequest, aside func() func(context.Context)) (*Delegation, error) {
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

// spellRequest makes a whole line of a request, and looks at it as the orchestrator
// will.
func spellRequest(request wire.TaskRequest) ([]byte, error) {
	request.Document = nil // the way it came is not the way it goes
	err := onlyObjects(request.Payload, request.Observability.Baggage)
	var read *wire.TaskRequest
	if err == nil {
		var wrong *wire.Error
		if read, wrong = wire.ReadTaskRequest(request.Forwarded(wire.Forwarding{}), depth); wrong != nil {
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

// onlyObjects checks what is put into a line as it is.
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

// entrust makes room for what will be said of a delegation.
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

// dismiss forgets a delegation of which nothing more is to be heard.
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

// responded brings a response to the caller that waits for it.
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

// hear keeps a response for the caller that takes it. What is not taken makes room for what
// comes after it.
func (d *Delegation) hear(r *Response) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard = true
	if r.final() {
		d.last = r
	}
	d.fresh = append(d.fresh, r)
	d.size += len(r.Document)
	for len(d.fresh) > 1 && (len(d.fresh) > mostTidings || d.size > mostLately) {
		d.size -= len(d.fresh[0].Document)
		d.fresh = slices.Delete(d.fresh, 0, 1)
	}
	if d.act != nil && (r.final() || !d.act.toTheEnd) {
		d.acted(r, nil)
	}
	d.ring()
}

// lose says that the final response will not come.
func (d *Delegation) lose(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost = why
	d.acted(nil, why)
	d.ring()
}

// ring tells all who wait that something is new.
func (d *Delegation) ring() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// Responses are what is said of the work, one after the other up to the final
// response, each to one taker. It ends earlier when ctx does, when the request is
// refused and when the stream has ended: Wait says why. Of what is not taken the
// latest are kept.
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

// take takes the oldest response; over says that there is none to wait for.
func (d *Delegation) take() (r *Response, over bool) {
	if len(d.fresh) == 0 {
		return nil, d.last != nil
	}
	r = d.fresh[0]
	d.fresh = slices.Delete(d.fresh, 0, 1)
	d.size -= len(r.Document)
	return r, true
}

// Wait waits for the final response, and takes nothing from Responses. Work that
// failed or was cancelled gives the Err of its response as well, one that was refused
// a *Refusal. While the agent waits for a person or for others to go on, so does Wait:
// who wants to bring it input takes Responses.
func (d *Delegation) Wait(ctx context.Context) (*Response, error) {
	r, err := d.await(ctx, func() (*Response, bool) { return d.last, d.last != nil })
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", d.ID, err)
	}
	return r, r.Err()
}

// await waits until something is found, or will never be.
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

// look looks for something, and says what to wait for when it is not there.
func (d *Delegation) look(find func() (*Response, bool)) (r *Response, over bool, changed <-chan struct{}, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r, over = find(); !over && d.lost != nil {
		over, err = true, d.lost
	}
	return r, over, d.changed, err
}
