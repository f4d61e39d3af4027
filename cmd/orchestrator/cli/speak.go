package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"orchestrator/cmd/orchestrator/client"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

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

// Answer prints the answer of an operation for programs. It adds format_version to answers
// without one, those of operations that agents use too.
func (a *App) Answer(text []byte) error {
	text, err := withFormat(text)
	if err != nil {
		return err
	}
	return a.Print("%s\n", text)
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
