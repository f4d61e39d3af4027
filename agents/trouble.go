package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"orchestrator/wire"
)

// Error handling of the loops that call functions of the agent's author.

// troubled logs an error, if there is one. It stops the loop only if writing has failed.
func (c *Conn) troubled(stop context.CancelCauseFunc, err error) {
	if err != nil && !errors.Is(err, errTorn) {
		err = c.Log("warn", err.Error(), nil)
	}
	if errors.Is(err, errTorn) {
		stop(err)
	}
}

// panicked reports a panic, with the task if there is one, and returns it as an error.
func (c *Conn) panicked(what, task string, reason any) error {
	err := fmt.Errorf("%s panicked: %v", what, reason)
	_ = c.Tell("error", wire.Trouble{ // a broken stream shows in what is said next
		TaskID: task, Error: err.Error(), Stack: string(debug.Stack()), Recoverable: true,
	})
	return err
}

// parting returns the result of a loop whose context has ended. It is nil after a shutdown that
// left nothing unfinished.
func parting(ctx context.Context, unfinished int) error {
	switch cause := context.Cause(ctx); {
	case !errors.Is(cause, ErrShutdown) && !errors.Is(cause, io.EOF):
		return cause
	case unfinished > 0:
		return fmt.Errorf("%d of the tasks left unfinished: %w", unfinished, cause)
	}
	return nil
}
