package agents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"orchestrator/wire"
	"orchestrator/wire/object"
)

// reply is the outcome of a request.
type reply struct {
	payload wire.Raw
	err     error
}

// Errors of a request that was waiting when the stream ended. A request that was not sent has
// no effect; one that was sent may have been carried out.
var (
	errUnasked    = errors.New("not asked")
	errUnanswered = errors.New("asked, but there will be no answer")
)

// Ask sends a request for an operation, such as "get-task", and waits for the answer. The
// payload must encode to a JSON object; nil means an empty one. The answer is decoded into the
// value that answer points to. A *wire.Raw receives the undecoded payload; nil discards it.
//
// The error is a *Refusal if the orchestrator refuses the request. If ctx ends first, a late
// answer is discarded, but the operation may have been carried out. If the stream ends first,
// the error wraps io.EOF and says whether the request was sent.
//
// The orchestrator answers every line that it can read as a request. Ask itself rejects invalid
// JSON and lines of more than 16 MiB. If the orchestrator's max_line or max_depth is lower, a
// request may stay unanswered until ctx ends.
func (c *Conn) Ask(ctx context.Context, operation string, payload, answer any) error {
	if err := c.ask(ctx, operation, payload, answer); err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	return nil
}

func (c *Conn) ask(ctx context.Context, operation string, payload, answer any) error {
	id, line, err := spell("request:"+operation, payload)
	if err != nil {
		return err
	}
	call, err := c.expect(id)
	if err != nil {
		return err
	}
	defer c.forget(id)
	if err := c.write(ctx, line); err != nil {
		return err
	}
	select {
	case r := <-call:
		return r.into(answer)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// expect registers a request and returns the channel of its answer. The channel is buffered, so
// the reader never blocks.
func (c *Conn) expect(id string) (<-chan reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != nil {
		return nil, fmt.Errorf("%w: %w", errUnasked, c.over)
	}
	call := make(chan reply, 1)
	c.waiting[id] = call
	return call, nil
}

// forget unregisters a request: its caller no longer waits for the answer.
func (c *Conn) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// answered passes an answer to the caller that waits for it. It reports whether there was one:
// duplicate, late and malformed answers have none.
func (c *Conn) answered(id string, r reply, wrong *wire.Error) bool {
	if wrong != nil {
		return false
	}
	c.mu.Lock()
	call := c.waiting[id]
	delete(c.waiting, id)
	c.mu.Unlock()
	if call != nil {
		call <- r
	}
	return call != nil
}

// into decodes an answer. It accepts duplicate keys, because an answer may contain documents
// written by other agents.
func (r reply) into(answer any) error {
	if r.err != nil || answer == nil {
		return r.err
	}
	payload := r.payload
	if payload == nil {
		payload = wire.Raw("{}")
	}
	if raw, ok := answer.(*wire.Raw); ok {
		*raw = bytes.Clone(payload)
		return nil
	}
	if err := object.DecodeOwn(payload, answer); err != nil {
		return fmt.Errorf("understanding the answer: %w", err)
	}
	return nil
}

// pause is the wait before a request over the rate limit is repeated. The orchestrator counts
// requests per second.
const pause = time.Second

// askPatiently is Ask for requests that must not be lost to the rate limit. A request over the
// limit has had no effect, so it is repeated.
func (c *Conn) askPatiently(ctx context.Context, operation string, payload, answer any) error {
	for {
		err := c.Ask(ctx, operation, payload, answer)
		if !refusedFor(ReasonLimited, err) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// settle asks for an operation even if the stream has ended. The orchestrator still reads the
// agent's output then, until its time to stop is up, but sends no answers.
func (c *Conn) settle(ctx context.Context, operation string, payload any) error {
	ctx = context.WithoutCancel(ctx) // the work is done, but its result is not reported yet
	err := c.askPatiently(ctx, operation, payload, nil)
	switch {
	case errors.Is(err, errUnasked):
		_, line, err := spell("request:"+operation, payload)
		if err != nil {
			return err
		}
		return c.write(ctx, line)
	case errors.Is(err, errUnanswered):
		return nil
	}
	return err
}
