package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/build"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/hub"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// UpgradeCommand returns the upgrade command.
func UpgradeCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "upgrade [PROGRAM]",
		Short: "Replace the running program, and keep its agents running",
		Long: `Replaces the running orchestrator with another version. Its agents keep running, with
their stdin and stdout, and no confirmed work is lost. Without an argument, it executes
the file of the running program again, which may be new.

The upgrade is refused if the new program cannot read the file or the record, if the
file has changed, or while an agent is starting or stopping. Coding agents, agents on
hosts, and agents that joined with pipe or mcp cannot be kept running: stop them first.
An agent that doesn't read its stdin blocks an upgrade: decisions wait up to 3 seconds
for it, then the upgrade is refused. If an upgrade fails, the old program continues.
Open HTTP requests and streams are closed.`,
		Example: `  orchestrator upgrade
  orchestrator upgrade ./orchestrator-new`,
		Args: cli.ArgCount(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			program := ""
			if len(args) > 0 {
				program = a.Path(args[0])
			}
			return a.WithClient(func(ctx context.Context, d *client.Client) error { return upgradeRunning(ctx, a, d, program) })
		},
	}
}

// upgradeRunning asks for an upgrade and waits for its end.
func upgradeRunning(ctx context.Context, a *cli.App, d *client.Client, program string) error {
	text, err := a.Ask(ctx, d, "upgrade", control.UpgradeRequest{Program: program})
	if err != nil {
		return err
	}
	asked, err := client.Decode[control.Upgrade](text)
	if err != nil {
		return err
	}
	u, err := awaitUpgrade(ctx, a, d, &asked)
	if err != nil {
		return err
	}
	return showUpgrade(a, u)
}

const (
	upgradeTime = time.Minute     // how long an upgrade may take for the one who has asked for it
	lookTime    = 2 * time.Second // how long it waits for a status, because a program that hangs gives none
)

// awaitUpgrade waits for the end of an upgrade. Until then connections wait, and some are cut off.
func awaitUpgrade(ctx context.Context, a *cli.App, d *client.Client, asked *control.Upgrade) (*control.Upgrade, error) {
	defer a.ShowWait("the new program to take over")()
	process, err := child.Observe(asked.PID)
	if err == nil {
		defer process.Close()
	}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	limit := time.NewTimer(upgradeTime)
	defer limit.Stop()
	for {
		how, ended := process.Ended() // before the look: the last look is after the end
		if u := lookAtUpgrade(ctx, d); u != nil && u.ID == asked.ID && u.State != hub.UpgradeRuns {
			return u, nil
		}
		if ended {
			return nil, endedMidway(a, how)
		}
		select {
		case <-again.C:
		case <-limit.C:
			return nil, &cli.Failure{
				Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "the upgrade is not finished after a minute",
				Because: []string{fmt.Sprintf("Process %d is running but does not report its progress.", asked.PID)}, Hint: "See: orchestrator status",
			}
		case <-ctx.Done():
			return nil, a.Ended(ctx)
		}
	}
}

// lookAtUpgrade returns the latest upgrade, or nil if the orchestrator does not answer at the moment.
func lookAtUpgrade(ctx context.Context, d *client.Client) *control.Upgrade {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	text, err := d.Ask(ctx, "status", struct{}{})
	if err != nil {
		return nil
	}
	status, err := client.Decode[control.Status](text)
	if err != nil {
		return nil
	}
	return status.Upgrade
}

// endedMidway returns the failure for a program that has ended before it went on.
func endedMidway(a *cli.App, how string) *cli.Failure {
	f := &cli.Failure{
		Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "the new program has ended",
		Because: []string{"Its agents end with it. No confirmed data is lost."}, Hint: "Start the team again: orchestrator up" + a.Named(),
	}
	if how != "" {
		f.Message += " (" + how + ")"
	}
	return f
}

func showUpgrade(a *cli.App, u *control.Upgrade) error {
	if u.State == hub.UpgradeFailed {
		return &cli.Failure{
			Exit: cli.ExitConflict, Code: wire.CodeConflict, Message: "the upgrade has failed: " + u.Error,
			Because: []string{"The team continues with version " + u.From + "."}, Hint: u.Hint,
		}
	}
	if a.JSON() {
		return a.Document(u)
	}
	versions := "Upgraded from " + u.From + " to " + u.To
	if u.From == u.To { // maybe the same file
		versions = "Restarted version " + u.To
	}
	return a.Print("%s in %d ms. %s kept running.\n", versions, u.TookMS, term.Count(u.Agents, "running agent"))
}

// handedOver returns the handover of the program before this one, or nil.
func handedOver(a *cli.App) (*hub.Handover, error) {
	value := a.Getenv(hub.UpgradeEnv)
	if value == "" {
		return nil, nil
	}
	fd, err := strconv.Atoi(value)
	if err != nil {
		return nil, cli.UsageError(fmt.Sprintf("%s is %q", hub.UpgradeEnv, wire.Visible(value)), "Unset it: only orchestrator upgrade uses it")
	}
	return hub.TakenOver(fd)
}

// readsRecord prints whether this program could go on with a configuration and its record.
func readsRecord(a *cli.App, c *config.Config) error {
	text, err := json.Marshal(hub.GoesOn(c, build.Version))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(os.Stdout, "%s\n", text)
	return err
}
