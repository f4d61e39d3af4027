package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/client"
)

// A Query is one operation and how a command shows its answer: unchanged with --json, short
// with --quiet, else as text.
type Query[T any] struct {
	Operation string
	Request   any               // nil sends an empty object
	Awaits    string            // what a long wait is for; "" is for the answer
	Explain   func(error) error // adds to an error; may be nil
	Quiet     func(*T) error    // nil uses Text
	Text      func(*T) error
	Judge     func(*T) error // the error of the command after its answer; may be nil
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
	done := a.ShowWait(cmp.Or(q.Awaits, "the orchestrator to answer"))
	answer, err := d.Ask(ctx, q.Operation, q.Request)
	done()
	return q.Show(a, answer, err)
}

// Show shows the answer of the operation, or explains its error.
func (q Query[T]) Show(a *App, answer []byte, err error) error {
	switch {
	case err != nil && q.Explain != nil:
		return q.Explain(err)
	case err != nil:
		return err
	case a.Flags.JSON && q.Judge == nil:
		return a.Answer(answer)
	}
	reply, err := client.Decode[T](answer)
	switch {
	case err != nil:
		return err
	case a.Flags.JSON:
		err = a.Answer(answer)
	case a.Flags.Quiet && q.Quiet != nil:
		err = q.Quiet(&reply)
	default:
		err = q.Text(&reply)
	}
	if err == nil && q.Judge != nil {
		err = q.Judge(&reply)
	}
	return err
}
