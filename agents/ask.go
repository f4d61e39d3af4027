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

// reply is what came of a request.
type reply struct {
	payload wire.Raw
	err     error
}

// What the end of the stream means for a request: one that was not asked has no
// effect, one that was may have.
var (
	errUnasked    = errors.New("not asked")
	errUnanswered = errors.New("asked, but there will be no answer")
)

// Ask asks for an operation, such as "get-task", and waits for its answer. The
// payload must become a JSON object; nil is an empty one. The answer is decoded
// into what answer points to; a *wire.Raw gets it as it came, and nil is for
// those who only want to know that it was granted.
//
// A request that is refused gives a *Refusal. When ctx ends first the answer is
// passed over when it comes, but the orchestrator may have done what was asked.
// When the stream ends first, the error wraps io.EOF and says which of the two
// it is. The orchestrator answers everything that it can read as a request, and
// what it could not read is refused here: a payload that is no valid JSON, or a
// line of more than 16 MiB. Where its max_line or max_depth are set lower, ctx
// alone ends the waiting.
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

// expect makes room for the answer to a request. The channel has room for it, so
// so that the reader never waits.
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

// forget says that no caller waits for an answer any more.
func (c *Conn) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// answered brings an answer to the caller that waits for it. A second one, one that is
// late and one that makes no sense find no caller: then it is false.
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

// into decodes an answer. There are documents of others in it, in which keys may
// stand twice: they are not ours to judge.
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

// pause is how long one waits who has asked too much: the orchestrator counts by
// the second.
const pause = time.Second

// askPatiently is Ask for what must not get lost because the agent has said too
// much of other things: a request over the limit had no effect, and is asked
// again.
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

// settle asks for what must be heard even when no answer comes any more: after
// the end of the stream the orchestrator still listens, for as long as it grants
// the agent.
func (c *Conn) settle(ctx context.Context, operation string, payload any) error {
	ctx = context.WithoutCancel(ctx) // the work is over, what came of it is not told yet
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
