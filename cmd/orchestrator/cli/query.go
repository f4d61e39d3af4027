package cli

import (
	"context"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/client"
)

// A Query is one operation and how a command shows its answer: unchanged with --json, short
// with --quiet, else as text.
type Query[T any] struct {
	Operation string
	Request   any               // nil sends an empty object
	Explain   func(error) error // adds to an error; may be nil
	Quiet     func(*T) error    // nil uses Text
	Text      func(*T) error
}

// Command completes verb, a command without arguments, so that it runs the query.
func (q Query[T]) Command(a *App, verb *cobra.Command) *cobra.Command {
	verb.Args = ArgCount(0, 0)
	verb.ValidArgsFunction = cobra.NoFileCompletions
	verb.RunE = func(*cobra.Command, []string) error { return q.Run(a) }
	return verb
}

// Run sends the query to the orchestrator that the flags select, and shows the answer.
func (q Query[T]) Run(a *App) error {
	return a.WithClient(func(ctx context.Context, d *client.Client) error { return q.Send(ctx, a, d) })
}

// Send sends the query with a client and shows the answer.
func (q Query[T]) Send(ctx context.Context, a *App, d *client.Client) error {
	if q.Request == nil {
		q.Request = struct{}{}
	}
	answer, err := a.Ask(ctx, d, q.Operation, q.Request)
	return q.Show(a, answer, err)
}

// Show shows the answer of the operation, or explains its error.
func (q Query[T]) Show(a *App, answer []byte, err error) error {
	switch {
	case err != nil && q.Explain != nil:
		return q.Explain(err)
	case err != nil:
		return err
	case a.Flags.JSON:
		return a.Answer(answer)
	}
	reply, err := client.Decode[T](answer)
	switch {
	case err != nil:
		return err
	case a.Flags.Quiet && q.Quiet != nil:
		return q.Quiet(&reply)
	}
	return q.Text(&reply)
}
