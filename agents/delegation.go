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
	"orchestrator/wire/object"
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
// Delegate returns when the request is written. The Delegation reports the responses, even the
// refusal of the request.
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
	case c.ending() != nil:
		return fmt.Errorf("%w: %w", errUnasked, c.ending())
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

// take takes the oldest response. over reports that none will follow.
func (d *Delegation) take() (r *Response, over bool) {
	if len(d.fresh) == 0 {
		return nil, d.last != nil
	}
	r = d.fresh[0]
	d.fresh = slices.Delete(d.fresh, 0, 1)
	d.size -= len(r.Document)
	return r, true
}

// Wait waits for the final response; it takes no response from Responses. A failed or cancelled
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

// look calls find. Before the result it returns the channel to wait for.
func (d *Delegation) look(find func() (*Response, bool)) (r *Response, over bool, changed <-chan struct{}, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r, over = find(); !over && d.lost != nil {
		over, err = true, d.lost
	}
	return r, over, d.changed, err
}

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

// Status asks for the state of the task and returns the next response, which Responses yields as
// well. If the task is over, Status returns the final response without asking.
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

// Response is a status or the outcome of delegated work. The status of the final response is
// wire.ResponseCompleted, wire.ResponseFailed or wire.ResponseCancelled.
type Response struct {
	*delegation.Response
	Message string // free text; may be ""
}

// Read decodes the result.
func (r *Response) Read(into any) error { return reply{payload: r.Result}.into(into) }

// Err returns the error of failed or cancelled work, otherwise nil. It wraps a *Fault if the
// response has one, and ErrCancelled if the work was cancelled.
func (r *Response) Err() error {
	var why error
	if r.Fault != nil {
		why = (*Fault)(r.Fault)
	}
	switch {
	case r.Status != delegation.Failed && r.Status != delegation.Cancelled:
		return nil
	case r.Status == delegation.Cancelled && why == nil && r.Message != "":
		why = fmt.Errorf("%w: %s", ErrCancelled, r.Message)
	case r.Status == delegation.Cancelled && why == nil:
		why = ErrCancelled
	case r.Status == delegation.Cancelled:
		why = fmt.Errorf("%w: %w", ErrCancelled, why)
	}
	return fmt.Errorf("task %s: %w", r.ID, why)
}

// final reports whether this is the last response.
func (r *Response) final() bool {
	return r.Status == delegation.Completed || r.Status == delegation.Failed || r.Status == delegation.Cancelled
}

// readResponse reads a response as the orchestrator does.
func readResponse(line []byte) (*Response, error) {
	read, wrong := wire.ReadTaskResponse(line, depth)
	if wrong != nil {
		return nil, wrong
	}
	var whole object.Reader
	if wrong := whole.Read(read.Document, depth, ""); wrong != nil {
		return nil, wrong
	}
	return &Response{Response: read, Message: whole.Text("message")}, nil
}

// Fault is the error of failed delegated work. A Skill can return one; the delegating agent
// gets it from Response.Err.
type Fault struct {
	Code        string   // such as wire.FaultInvalidInput; the list is open
	Message     string   // for people
	Details     wire.Raw // an object, or nil
	Recoverable bool     // a retry may succeed
}

// Error returns the message and the code.
func (f *Fault) Error() string { return fmt.Sprintf("%s (%s)", f.Message, f.Code) }
