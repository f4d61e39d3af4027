package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// downFlags are how the end is to come.
type downFlags struct {
	force, yes, ifRunning bool
}

func (a *app) downCommand() *cobra.Command {
	var f downFlags
	verb := &cobra.Command{
		Use:   "down",
		Short: "Stop the team in order",
		Long: `Stops the running orchestrator and waits for it. Each agent is told, loses its
stdin, is asked by a signal and at last killed, with whatever it started; agents
that others depend on come last.

--force skips all that and kills at once. It asks first; where no person can be
asked it wants --yes.`,
		Example: `  orchestrator down
  orchestrator down --if-running      fine as well when nothing runs
  orchestrator down --force --yes     kill everything now`,
		Args:              argCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return a.down(f) },
	}
	set := verb.Flags()
	set.BoolVar(&f.force, "force", false, "kill at once, without an ordered stop")
	set.BoolVar(&f.yes, "yes", false, "do not ask")
	set.BoolVar(&f.ifRunning, "if-running", false, "exit 0 when no orchestrator is running")
	return verb
}

// notRunning answers programs that nothing runs, where that is fine.
type notRunning struct {
	FormatVersion string `json:"format_version"`
	Running       bool   `json:"running"`
}

func (a *app) down(f downFlags) error {
	ctx, stop := a.begin()
	defer stop()
	door, err := a.door()
	if err != nil {
		return err
	}
	if f.force && !f.yes {
		if err := a.confirm("Kill every agent at once, without letting it finish?"); err != nil {
			return err
		}
	}
	done := a.patience("the orchestrator to stop")
	body, err := door.call(ctx, "down", wire.DownRequest{Force: f.force})
	done()
	if missing, ok := errors.AsType[*failure](err); ok && f.ifRunning && missing.exit == exitNotRunning {
		if a.flags.json {
			return a.document(notRunning{FormatVersion: wire.FormatVersion})
		}
		a.note("%s. Nothing to stop.", missing.message)
		return nil
	}
	if err != nil {
		return err
	}
	show := stopPrinter{app: a}
	for line, err := range door.lines(ctx, body) {
		if err == nil {
			err = show.line(line)
		}
		if err != nil {
			return a.stillStopping(err)
		}
	}
	return a.afterDown(ctx, door, show.stopped)
}

// afterDown waits for the socket to close, which is the last thing that the
// orchestrator does.
func (a *app) afterDown(ctx context.Context, d *client, said bool) error {
	done := a.patience("its socket to close")
	err := d.gone(ctx)
	done()
	switch {
	case err != nil:
		return a.stillStopping(err)
	case !said:
		return &failure{
			exit: exitNo, code: codeFailed,
			message: "the orchestrator ended without saying how",
			hint:    "Left-over agents are found and cleared at the next start: orchestrator up",
		}
	}
	return nil
}

// stillStopping adds to an error that giving up waiting does not undo the stop.
func (a *app) stillStopping(err error) error {
	f, ok := errors.AsType[*failure](err)
	if !ok || f.exit != exitTimeout && f.exit != exitInterrupted && f.exit != exitTerminated && f.exit != exitHungUp {
		return err
	}
	f.hint = "It goes on stopping. Look: orchestrator status     Kill it: orchestrator down --force"
	return f
}

// confirm asks once, in a terminal. Where there is no person to answer it refuses.
func (a *app) confirm(question string) error {
	if !isTerminal(a.stdin) || !isTerminal(a.stderr) || a.flags.json {
		return usageError("this cannot be undone, and there is no terminal to ask at", "If it is meant: add --yes")
	}
	_, _ = fmt.Fprintf(a.stderr, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(a.stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return &failure{exit: exitNo, code: codeFailed, message: "nothing was done"}
}

// stopPrinter shows the events of a stop: one line an agent, and the end.
type stopPrinter struct {
	app     *app
	wide    int
	stopped bool // the orchestrator said that it is done
}

func (s *stopPrinter) line(raw []byte) error {
	event, err := decode[wire.Event](raw)
	if err != nil {
		return err
	}
	s.stopped = s.stopped || event.Kind == wire.EventDown
	switch {
	case s.app.flags.json:
		return s.app.print("%s\n", raw)
	case s.app.flags.quiet, event.Kind == wire.EventStopAsked, event.Kind == wire.EventEnded, event.Kind == wire.EventAgentForgotten, ofMail(&event):
		// said by the lines around it, or no part of the stop
		return nil
	case event.Agent == "":
		return s.app.print("%s\n", sentence(wire.Visible(event.Text)))
	}
	name := wire.Visible(event.Agent)
	s.wide = max(s.wide, plain.Width(name))
	return s.app.print("  %s  %s\n", plain.Pad(name, s.wide), wire.Visible(event.Text))
}
