package notify

import (
	"context"
	"fmt"
	"time"

	"orchestrator/supervisor/config"
	"orchestrator/supervisor/config/storeurl"
)

// runLimit is how long the command may run.
const runLimit = 30 * time.Second

// Run runs a command in a folder with an environment, and returns its output.
type Run func(ctx context.Context, command []string, dir string, env []string) ([]byte, error)

// Read returns the options that a configuration has. env is the environment of this program, and run
// runs the command.
func Read(ctx context.Context, c *config.Config, env []string, run Run) (Options, error) {
	n := &c.Notify
	o := Options{Team: c.Orchestrator.Name, On: n.On, From: n.From, To: n.To, Dir: c.Orchestrator.StateDir, URL: n.Webhook}
	if n.Command != nil {
		o.Command = func(ctx context.Context, text string, document []byte) error {
			ctx, cancel := context.WithTimeoutCause(ctx, runLimit, fmt.Errorf("it has run for %s", runLimit))
			defer cancel()
			_, err := run(ctx, append(n.Command[:len(n.Command):len(n.Command)], text), c.Dir, append(env[:len(env):len(env)], "ORC_NOTIFICATION="+string(document)))
			return err
		}
	}
	if n.HookFrom != "" {
		text, err := c.SecretOf(ctx, "notify.webhook", env)
		if err != nil {
			return o, err
		}
		if !storeurl.IsWebhook(text) {
			return o, fmt.Errorf("notify.webhook: secret %q is not an https:// URL", n.HookFrom)
		}
		o.URL = text
	}
	var err error
	o.Key, err = c.SecretOf(ctx, "notify.secret", env)
	return o, err
}

// OfTerminal returns the Terminal that a configuration has.
func OfTerminal(c *config.Config, getenv func(string) string) *Terminal {
	n := &c.Notify
	return &Terminal{On: n.On, Bell: n.Bell, OSC: n.OSC, From: n.From, To: n.To, Getenv: getenv}
}
