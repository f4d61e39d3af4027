package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"orchestrator/wire"
)

// What the loops have in common that call functions of the agent's author.

// troubled tells what went wrong, if something did. It concerns one thing, and the
// others go on, unless nothing can be said any more.
func (c *Conn) troubled(stop context.CancelCauseFunc, err error) {
	if err != nil && !errors.Is(err, errTorn) {
		err = c.Log("warn", err.Error(), nil)
	}
	if errors.Is(err, errTorn) {
		stop(err)
	}
}

// panicked tells where a function panicked, at a task if there is one, and returns
// what there is to say of it.
func (c *Conn) panicked(what, task string, reason any) error {
	err := fmt.Errorf("%s panicked: %v", what, reason)
	_ = c.Tell("error", wire.Trouble{ // a broken stream shows in what is said next
		TaskID: task, Error: err.Error(), Stack: string(debug.Stack()), Recoverable: true,
	})
	return err
}

// parting is what a loop returns whose context has ended: nil when that is because
// the agent has to go, and nothing was left unfinished.
func parting(ctx context.Context, unfinished int) error {
	switch cause := context.Cause(ctx); {
	case !errors.Is(cause, ErrShutdown) && !errors.Is(cause, io.EOF):
		return cause
	case unfinished > 0:
		return fmt.Errorf("%d of the tasks left unfinished: %w", unfinished, cause)
	}
	return nil
}
