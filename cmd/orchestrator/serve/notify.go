package serve

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/notify"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
)

// tell begins to tell people what happens, as a configuration says. It replaces what told them before.
func (t *Instance) tell(c *config.Config) {
	o, err := notify.Read(context.Background(), c, t.Base, t.runCommand)
	if err != nil {
		t.log.Error("people are not told everything", "error", err)
	}
	if t.notifier != nil {
		t.notifier.Close()
		o.Told = t.notifier.Told()
	}
	o.Latest, o.Log = t.Super.Seq(), t.log.Named("notify")
	o.Events = func(ctx context.Context, since int64, send func(wire.Event) error) error {
		return t.Super.Events(ctx, output.EventQuery{Since: since, Follow: true}, send)
	}
	t.notifier = notify.Start(o)
	t.terminal.Store(notify.OfTerminal(c, os.Getenv))
}

// signal returns what is written to the terminal because of an event.
func (t *Instance) signal(e *wire.Event) string { return t.terminal.Load().Signal(e) }

// Notifications reads how people are told, for a command that starts no team. The returned function releases
// what the command of notify needs.
func Notifications(ctx context.Context, a *cli.App) (c *config.Config, o notify.Options, release func(), err error) {
	t := NewTeam()
	if c, err = ReadTeam(a, t.runCommand, nil, "notify"); err != nil {
		return nil, o, nil, err
	}
	own := slices.DeleteFunc(c.Commands(), func(one config.Command) bool { return one.Of != "notify" && !strings.HasPrefix(one.Of, "secret ") })
	if err := a.CheckTrust(c, own, false, "Read them, then run this on a terminal"); err != nil {
		return nil, o, nil, err
	}
	state, err := os.MkdirTemp("", "orchestrator-notify-")
	if err != nil {
		return nil, o, nil, fmt.Errorf("making a place for its state: %w", err)
	}
	if err := t.Hold(state, a.SocketPath(state), hclog.NewNullLogger()); err != nil {
		_ = os.RemoveAll(state)
		return nil, o, nil, CannotHold(err, state)
	}
	release = func() {
		t.Release()
		_ = os.RemoveAll(state)
	}
	o, err = notify.Read(ctx, c, a.Environ, t.runCommand)
	if err != nil {
		release()
	}
	return c, o, release, err
}
