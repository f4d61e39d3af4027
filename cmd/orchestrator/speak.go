package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"orchestrator/wire"
)

// speak opens the API and does there what a verb is for. It ends with Ctrl-C
// and with --timeout.
func (a *app) speak(do func(ctx context.Context, d *client) error) error {
	ctx, stop := a.begin()
	defer stop()
	door, err := a.door()
	if err != nil {
		return err
	}
	return do(ctx, door)
}

// ask calls an operation and says so when the answer takes long.
func (a *app) ask(ctx context.Context, d *client, operation string, request any) ([]byte, error) {
	done := a.patience("the orchestrator to answer")
	defer done()
	return d.ask(ctx, operation, request)
}

// retryPauses are the times between the attempts to reach the bus.
var retryPauses = []time.Duration{2 * time.Second, 10 * time.Second, time.Minute}

// insist is ask for the bus. While no orchestrator answers, or it fails by itself, insist
// asks again, unless once is set.
func (a *app) insist(ctx context.Context, d *client, once bool, operation string, request any) ([]byte, error) {
	for _, pause := range retryPauses {
		text, err := a.ask(ctx, d, operation, request)
		if f, ok := errors.AsType[*failure](err); once || ctx.Err() != nil || !ok || f.exit != exitNotRunning && f.code != wire.CodeInternal {
			return text, err
		}
		a.note("%v: trying again in %s", err, pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, d.ended(ctx)
		}
	}
	return a.ask(ctx, d, operation, request)
}

// answer prints what an operation answered, for programs. The operations that
// agents use as well answer with nothing but their payload; here it gets the
// version that each of our documents begins with.
func (a *app) answer(text []byte) error {
	text, err := withFormat(text)
	if err != nil {
		return err
	}
	return a.print("%s\n", text)
}

func withFormat(text []byte) ([]byte, error) {
	head, err := decode[struct {
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

// hinted adds to a refusal of some kind what to do next, if it says nothing of
// it itself.
func hinted(err error, code wire.Code, hint string) error {
	if f, ok := errors.AsType[*failure](err); ok && f.code == code && f.hint == "" {
		f.hint = hint
	}
	return err
}
