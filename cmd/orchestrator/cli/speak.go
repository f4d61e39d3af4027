package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"orchestrator/wire"
)

// WithClient opens the API and does there what a verb is for. It ends with Ctrl-C
// and with --timeout.
func (a *App) WithClient(do func(ctx context.Context, d *Client) error) error {
	ctx, stop := a.Context()
	defer stop()
	door, err := a.Connect()
	if err != nil {
		return err
	}
	return do(ctx, door)
}

// Ask calls an operation and says so when the answer takes long.
func (a *App) Ask(ctx context.Context, d *Client, operation string, request any) ([]byte, error) {
	done := a.ShowWait("the orchestrator to answer")
	defer done()
	return d.Ask(ctx, operation, request)
}

// retryPauses are the times between the attempts to reach the bus.
var retryPauses = []time.Duration{2 * time.Second, 10 * time.Second, time.Minute}

// AskBus is ask for the bus. While no orchestrator answers, or it fails by itself, insist
// asks again, unless once is set.
func (a *App) AskBus(ctx context.Context, d *Client, once bool, operation string, request any) ([]byte, error) {
	for _, pause := range retryPauses {
		text, err := a.Ask(ctx, d, operation, request)
		if f, ok := errors.AsType[*Failure](err); once || ctx.Err() != nil || !ok || f.Exit != ExitNotRunning && f.Code != wire.CodeInternal {
			return text, err
		}
		a.Note("%v: trying again in %s", err, pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, d.ended(ctx)
		}
	}
	return a.Ask(ctx, d, operation, request)
}

// Answer prints what an operation answered, for programs. The operations that
// agents use as well answer with nothing but their payload; here it gets the
// version that each of our documents begins with.
func (a *App) Answer(text []byte) error {
	text, err := withFormat(text)
	if err != nil {
		return err
	}
	return a.Print("%s\n", text)
}

func withFormat(text []byte) ([]byte, error) {
	head, err := Decode[struct {
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

// WithHint adds to a refusal of some kind what to do next, if it says nothing of
// it itself.
func WithHint(err error, code wire.Code, hint string) error {
	if f, ok := errors.AsType[*Failure](err); ok && f.Code == code && f.Hint == "" {
		f.Hint = hint
	}
	return err
}

// Status asks for the state of everything: as a document, and as it came.
func (a *App) Status(ctx context.Context, d *Client) (wire.Status, []byte, error) {
	done := a.ShowWait("the orchestrator to answer")
	text, err := d.Ask(ctx, "status", struct{}{})
	done()
	if err != nil {
		return wire.Status{}, nil, err
	}
	status, err := Decode[wire.Status](text)
	return status, text, err
}
