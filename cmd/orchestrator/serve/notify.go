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
	"orchestrator/supervisor/hub"
	"orchestrator/supervisor/notify"
)

// Notifications reads the configuration of notifications, for a command that starts no team. The
// returned function releases the resources of the command of notify.
func Notifications(ctx context.Context, a *cli.App) (c *config.Config, o notify.Options, release func(), err error) {
	p := new(hub.Place)
	if c, err = ReadTeam(a, p.Run, nil, "notify"); err != nil {
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
	p.StateDir, p.Socket, p.Log = state, a.SocketPath(state), hclog.NewNullLogger()
	if err := p.Start(ctx); err != nil {
		_ = os.RemoveAll(state)
		return nil, o, nil, CannotHold(err, state)
	}
	release = func() {
		p.Stop()
		_ = os.RemoveAll(state)
	}
	o, err = notify.Read(ctx, c, a.Environ, p.Run)
	if err != nil {
		release()
	}
	return c, o, release, err
}
