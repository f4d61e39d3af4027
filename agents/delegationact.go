package agents

import (
	"context"
	"errors"
	"fmt"

	"orchestrator/wire"
	"orchestrator/wire/delegation"
)

// Acts about delegated work are not answered one by one: an act waits for the next response. So
// only one act is under way at a time.

// acting is an act under way.
type acting struct {
	toTheEnd bool // it waits for the final response
	done     chan acted
}

// acted is the outcome of an act.
type acted struct {
	response *Response
	err      error
}

// Status asks how the task stands and returns the next response, which Responses yields as
// well. If the task is over, Status sends nothing and returns the final response.
func (d *Delegation) Status(ctx context.Context) (*Response, error) {
	r, err := d.say(ctx, delegation.Act{Type: delegation.ActStatus})
	if errors.Is(err, errOver) {
		return r, nil
	}
	return r, err
}

// Update sends the input that the task requires, which may be any value. It returns at the next
// response, or with a *Refusal if the task waits for no input.
func (d *Delegation) Update(ctx context.Context, input any) error {
	text, err := value(input)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", delegation.ActUpdate, errUnsaid, err)
	}
	_, err = d.say(ctx, delegation.Act{Type: delegation.ActUpdate, Input: text})
	return err
}

// Cancel asks to cancel the task and waits for its final response. The reason may be "".
func (d *Delegation) Cancel(ctx context.Context, reason string) error {
	_, err := d.say(ctx, delegation.Act{Type: delegation.ActCancel, Reason: reason})
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}

// errOver reports that the task takes no more acts or responses.
var errOver = errors.New("the task is over")

// say sends an act when its turn comes, and waits for its outcome.
func (d *Delegation) say(ctx context.Context, act delegation.Act) (*Response, error) {
	r, err := d.saying(ctx, act)
	if err != nil {
		err = fmt.Errorf("%s of task %s: %w", act.Type, d.ID, err)
	}
	return r, err
}

func (d *Delegation) saying(ctx context.Context, act delegation.Act) (*Response, error) {
	act.ID = d.ID
	line := delegation.AppendAct(nil, &act)
	if _, wrong := wire.ReadTaskAct(line, depth); wrong != nil {
		return nil, fmt.Errorf("%w: %w", errUnsaid, wrong)
	}
	if len(line) > maxLine {
		return nil, fmt.Errorf("%w: %w", errUnsaid, errTooLong)
	}
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-d.turn }()
	a := &acting{toTheEnd: act.Type == delegation.ActCancel, done: make(chan acted, 1)}
	if last, err := d.begin(a); err != nil {
		return last, err
	}
	if err := d.conn.write(ctx, line); err != nil {
		d.forget(a)
		return nil, err
	}
	select {
	case came := <-a.done:
		return came.response, came.err
	case <-ctx.Done():
		return nil, context.Cause(ctx) // a late outcome has no receiver and is discarded
	}
}

// begin registers an act. It fails if the task is over or was lost.
func (d *Delegation) begin(a *acting) (last *Response, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.last != nil:
		return d.last, fmt.Errorf("%w: %w", errUnsaid, errOver)
	case errors.Is(d.lost, errUnanswered):
		return nil, fmt.Errorf("%w: %w", errUnasked, d.conn.ending())
	case d.lost != nil:
		return nil, d.lost
	}
	d.act = a
	return nil, nil
}

func (d *Delegation) forget(a *acting) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.act == a {
		d.act = nil
	}
}

// acted passes an outcome to the act under way. The caller holds the lock.
func (d *Delegation) acted(r *Response, err error) {
	if d.act != nil {
		d.act.done <- acted{response: r, err: err}
		d.act = nil
	}
}

// reasonReused is the reason of a refusal if another task has the request's id.
const reasonReused = "id_reused"

// declined reports whether a refusal is about delegated work. It passes the refusal to the
// waiting act, or fails the delegation if the request itself was refused.
func (c *Conn) declined(id string, why *Refusal) bool {
	d := c.delegation(id)
	if d == nil {
		return false
	}
	if !d.declined(why) {
		c.dismiss(d)
		d.lose(why)
	}
	return true
}

// declined returns false if the refusal is about the request.
func (d *Delegation) declined(why *Refusal) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if why.Reason() == reasonReused {
		return false
	}
	if d.act == nil {
		return d.heard
	}
	d.acted(nil, why)
	return true
}
