package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/client"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// A Query is one operation and how a command shows its answer: unchanged with --json, short
// with --quiet, else as text.
type Query[T any] struct {
	Operation string
	Request   any               // nil sends an empty object
	Awaits    string            // the goal of a long wait; "" is for the answer
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

// WithClient calls do with a client of the orchestrator. The context ends with Ctrl-C and
// with --timeout.
func (a *App) WithClient(do func(ctx context.Context, d *client.Client) error) error {
	ctx, stop := a.Context()
	defer stop()
	door, err := a.Connect()
	if err != nil {
		return err
	}
	return do(ctx, door)
}

// Ask calls an operation. It prints a note when the answer takes long.
func (a *App) Ask(ctx context.Context, d *client.Client, operation string, request any) ([]byte, error) {
	done := a.ShowWait("the orchestrator to answer")
	defer done()
	return d.Ask(ctx, operation, request)
}

// Answer prints the answer of an operation for programs. It adds format_version to answers without
// one, also to answers of operations for agents.
func (a *App) Answer(text []byte) error {
	text, err := withFormat(text)
	if err != nil {
		return err
	}
	return a.PrintJSON(text)
}

func withFormat(text []byte) ([]byte, error) {
	head, err := client.Decode[struct {
		FormatVersion string `json:"format_version"`
	}](text)
	if err != nil || head.FormatVersion != "" {
		return text, err
	}
	rest := bytes.TrimSpace(text[1:])
	comma := ","
	if rest[0] == '}' {
		comma = ""
	}
	return fmt.Appendf(nil, `{"format_version":%q%s%s`, wire.FormatVersion, comma, rest), nil
}

// WithHint adds a hint to a failure with a code, unless it has one.
func WithHint(err error, code wire.Code, hint string) error {
	if f, ok := errors.AsType[*Failure](err); ok && f.Code == code && f.Hint == "" {
		f.Hint = hint
	}
	return err
}

// Status returns the status of the orchestrator, decoded and as it was received.
func (a *App) Status(ctx context.Context, d *client.Client) (control.Status, []byte, error) {
	text, err := a.Ask(ctx, d, "status", struct{}{})
	if err != nil {
		return control.Status{}, nil, err
	}
	status, err := client.Decode[control.Status](text)
	return status, text, err
}

// Stream calls show for each line of a list of the API. With follow an interrupt is not an
// error, and a note is printed when the orchestrator ends the stream.
func (a *App) Stream(what string, query url.Values, follow bool, show func([]byte) error) error {
	err := a.EachLine(what, query, follow, show)
	switch {
	case follow && leftOff(err):
		return nil
	case follow && err == nil && a.record == nil:
		a.Note("The orchestrator has stopped.")
	}
	return err
}

// EachLine calls show for each document of a stream.
func (a *App) EachLine(what string, query url.Values, follow bool, show func([]byte) error) error {
	ctx, stop := a.Context()
	defer stop()
	door, err := a.Connect()
	if err != nil {
		return err
	}
	done := func() {}
	if !follow { // with follow, waiting is intended
		done = a.ShowWait("the first " + what)
	}
	body, err := door.Get(ctx, what, query)
	done()
	if err != nil {
		return err
	}
	for line, err := range door.Lines(ctx, body) {
		if err == nil {
			err = show(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
