package agents

import (
	"context"
	"errors"
	"fmt"

	"orchestrator/wire"
)

// What is said about work that was delegated has no answer of its own: the agent that says
// it waits for what comes next, and so one thing is said at a time.

// acting is something that was said.
type acting struct {
	toTheEnd bool // it waits for the final response
	done     chan acted
}

// acted is what came of it.
type acted struct {
	response *Response
	err      error
}

// Status asks how the work stands, and gives the next response, whatever that is:
// Responses has it as well. Once it is over that is the final one, and nothing is
// asked.
func (d *Delegation) Status(ctx context.Context) (*Response, error) {
	r, err := d.say(ctx, wire.TaskAct{Type: wire.ActStatus})
	if errors.Is(err, errOver) {
		return r, nil
	}
	return r, err
}

// Update brings the work the input that it requires, which may be any value. It
// returns when something is said of the work after that, or with a *Refusal when
// no caller wants it.
func (d *Delegation) Update(ctx context.Context, input any) error {
	text, err := value(input)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", wire.ActUpdate, errUnsaid, err)
	}
	_, err = d.say(ctx, wire.TaskAct{Type: wire.ActUpdate, Input: text})
	return err
}

// Cancel asks to give the work up, and waits until it is over, whatever it came to.
// The reason may be "".
func (d *Delegation) Cancel(ctx context.Context, reason string) error {
	_, err := d.say(ctx, wire.TaskAct{Type: wire.ActCancel, Reason: reason})
	if errors.Is(err, errOver) {
		return nil
	}
	return err
}

// errOver says that nothing can be said of a task any more.
var errOver = errors.New("the task is over")

// say says something when it is its turn, and waits for what comes of it.
func (d *Delegation) say(ctx context.Context, act wire.TaskAct) (*Response, error) {
	r, err := d.saying(ctx, act)
	if err != nil {
		err = fmt.Errorf("%s of task %s: %w", act.Type, d.ID, err)
	}
	return r, err
}

func (d *Delegation) saying(ctx context.Context, act wire.TaskAct) (*Response, error) {
	act.ID = d.ID
	line := wire.AppendTaskAct(nil, &act)
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
	a := &acting{toTheEnd: act.Type == wire.ActCancel, done: make(chan acted, 1)}
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
		return nil, context.Cause(ctx) // what comes of it finds no caller, and is not taken for something else
	}
}

// begin makes room for what will come of an act. There is none for one about a task
// that is over, or will not be heard of.
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

// acted tells the caller that acts what came of it. The caller holds the lock.
func (d *Delegation) acted(r *Response, err error) {
	if d.act != nil {
		d.act.done <- acted{response: r, err: err}
		d.act = nil
	}
}

// reasonReused is why a request is refused whose id another task has.
const reasonReused = "id_reused"

// declined reports whether it is about work that was delegated that something is
// refused, and tells the caller that said it: the act that waits, or the request if nothing
// was heard of it.
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

// declined is false for a refusal of the request.
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
