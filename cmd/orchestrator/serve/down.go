package serve

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
)

// downFlags are the flags of down.
type downFlags struct {
	force, yes, ifRunning bool
}

// DownCommand returns the down command.
func DownCommand(a *cli.App) *cobra.Command {
	var f downFlags
	verb := &cobra.Command{
		Use:   "down",
		Short: "Shut the team down cleanly",
		Long: `Stops the running orchestrator and waits for its end. Each agent is notified, its stdin
is closed, it gets a signal, and finally it is killed with all its processes. Agents
that others depend on are stopped last.

--force kills at once. It asks for confirmation. Without a terminal it requires --yes.`,
		Example: `  orchestrator down
  orchestrator down --if-running      succeeds when nothing runs
  orchestrator down --force --yes     kill everything now`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return down(a, f) },
	}
	set := verb.Flags()
	set.BoolVar(&f.force, "force", false, "kill at once, without a clean shutdown")
	set.BoolVar(&f.yes, "yes", false, "do not ask")
	set.BoolVar(&f.ifRunning, "if-running", false, "exit 0 when no orchestrator is running")
	return verb
}

// notRunning is the JSON answer when no orchestrator runs and that is not an error.
type notRunning struct {
	FormatVersion string `json:"format_version"`
	Running       bool   `json:"running"`
}

func down(a *cli.App, f downFlags) error {
	ctx, stop := a.Context()
	defer stop()
	door, err := a.Connect()
	if err != nil {
		return err
	}
	if f.force && !f.yes {
		if err := a.Confirm("Kill every agent at once, without letting it finish?"); err != nil {
			return err
		}
	}
	done := a.ShowWait("the orchestrator to stop")
	body, err := door.Call(ctx, "down", control.DownRequest{Force: f.force})
	done()
	if missing, ok := errors.AsType[*cli.Failure](err); ok && f.ifRunning && missing.Exit == cli.ExitNotRunning {
		if a.Flags.JSON {
			return a.Document(notRunning{FormatVersion: wire.FormatVersion})
		}
		a.Note("%s. Nothing to stop.", missing.Message)
		return nil
	}
	if err != nil {
		return err
	}
	show := stopPrinter{app: a}
	for line, err := range door.Lines(ctx, body) {
		if err == nil {
			err = show.line(line)
		}
		if err != nil {
			return stillStopping(err)
		}
	}
	return afterDown(ctx, a, door, show.stopped)
}

// afterDown waits for the socket to be removed, the last step of a stop.
func afterDown(ctx context.Context, a *cli.App, d *client.Client, said bool) error {
	done := a.ShowWait("its socket to close")
	err := d.WaitGone(ctx)
	done()
	switch {
	case err != nil:
		return stillStopping(err)
	case !said:
		return &cli.Failure{
			Exit: cli.ExitNo, Code: cli.CodeFailed,
			Message: "the orchestrator ended without reporting the result",
			Hint:    "The next start stops agents that are still running: orchestrator up",
		}
	}
	return nil
}

// stillStopping adds to the error of an aborted wait that the stop continues.
func stillStopping(err error) error {
	f, ok := errors.AsType[*cli.Failure](err)
	if !ok || f.Exit != cli.ExitTimeout && f.Exit != cli.ExitInterrupted && f.Exit != cli.ExitTerminated && f.Exit != cli.ExitHungUp {
		return err
	}
	f.Hint = "It continues to stop. See: orchestrator status     Kill it: orchestrator down --force"
	return f
}

// A stopPrinter prints the events of a stop: a line for each agent, and the end.
type stopPrinter struct {
	app     *cli.App
	wide    int
	stopped bool // the orchestrator has reported its end
}

func (s *stopPrinter) line(raw []byte) error {
	event, err := client.Decode[wire.Event](raw)
	if err != nil {
		return err
	}
	s.stopped = s.stopped || event.Kind == events.OrchestratorStopped
	switch {
	case s.app.Flags.JSON:
		return s.app.PrintJSON(raw)
	case s.app.Flags.Quiet, event.Kind == events.AgentStopping, event.Kind == events.AgentEnded, event.Kind == events.AgentForgotten, term.OfMail(event.Kind):
		// reported by another line, or not part of the stop
		return nil
	case event.Agent == "":
		return s.app.Print("%s\n", term.Sentence(wire.Visible(event.Text)))
	}
	name := wire.Visible(event.Agent)
	s.wide = max(s.wide, term.Width(name))
	return s.app.Print("  %s  %s\n", term.Pad(name, s.wide), wire.Visible(event.Text))
}
