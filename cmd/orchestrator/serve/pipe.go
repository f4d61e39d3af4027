package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/hub"
	"orchestrator/wire"
)

// pipeFlags are the flags of pipe.
type pipeFlags struct {
	cli.Guest
	echo bool
}

// PipeCommand returns the pipe command.
func PipeCommand(a *cli.App) *cobra.Command {
	var f pipeFlags
	verb := &cobra.Command{
		Use:   "pipe --as NAME",
		Short: "Join the team as an agent on this stdin and stdout",
		Long: `Joins the running orchestrator as an agent. Lines on stdin are the agent's output, and
lines for the agent are written to stdout. If no orchestrator runs, pipe starts its own
and stops it at the end. An orchestrator that is named (--host, --state-dir, $ORC_HOST,
$ORC_SOCKET) must run.

NAME is a stopped agent of the file, with its role and capabilities, or a new name. A
new agent exists as long as the pipe. It gets tasks only with --role or --capability,
so that a pipe for a single question takes no work.

When stdin ends, or at Ctrl-C, pipe waits for outstanding answers and exits with 0; its
open task counts as done. A killed pipe, or one that --timeout ends, fails its task.
When the orchestrator stops, pipe writes the notice, closes stdout and exits with 0. It
exits with 5 if the orchestrator is lost, and with 141 if stdout has no reader.

On a terminal you may leave out "id" and "timestamp".`,
		Example: `  producer | orchestrator pipe --as producer
  orchestrator pipe --as me --capability go
  coproc orchestrator pipe --as me; worker <&"${COPROC[0]}" >&"${COPROC[1]}"`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return pipe(a, f) },
	}
	f.AddFlags(a, verb, "the `NAME` of the agent")
	verb.Flags().BoolVar(&f.echo, "echo", false, "show on stderr, after \"> \", each line as it is sent")
	return verb
}

func pipe(a *cli.App, f pipeFlags) error {
	if f.Name == "" {
		return cli.UsageError("pipe requires the name of an agent", "Usage: orchestrator pipe --as NAME")
	}
	d, err := a.Connect()
	switch {
	case err == nil:
	case mayPipeAlone(a) && cli.FailureOf(err).Code == cli.CodeNoConfig:
		return pipeAlone(a, f)
	default:
		return err
	}
	link, err := join(a, d, f)
	if noListener(err) && mayPipeAlone(a) {
		return pipeAlone(a, f)
	}
	if err != nil {
		return joinFailed(d, err)
	}
	return converse(a, link, d.Target, f, fmt.Sprintf("Joined the orchestrator of %s as %s.", d.Target.Subject, f.Name))
}

// mayPipeAlone reports whether pipe may start its own orchestrator. It may not if the user
// has named one.
func mayPipeAlone(a *cli.App) bool {
	if a.Flags.Host != "" || a.Flags.StateDir != "" {
		return false
	}
	return a.Flags.Config != "" || a.Getenv("ORC_HOST") == "" && a.Getenv("ORC_SOCKET") == ""
}

// noListener reports whether an error means that no orchestrator listens.
func noListener(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// join opens a pipe, within --timeout.
func join(a *cli.App, d *client.Client, f pipeFlags) (*client.Link, error) {
	ctx, stop := a.Context()
	defer stop()
	if d.Target.URL != "" {
		return nil, cli.UsageError("a pipe goes through a socket, and "+d.Target.URL+" is on another machine", "Run it on the machine of the orchestrator, or register over HTTP: orchestrator help http")
	}
	done := a.ShowWait("the orchestrator to answer")
	defer done()
	link, err := d.Join(ctx, f.Query())
	if over := a.Ended(ctx); over != nil {
		return nil, over
	}
	return link, err
}

// joinFailed returns the failure for an error of join.
func joinFailed(d *client.Client, err error) error {
	if f, ok := errors.AsType[*cli.Failure](err); ok {
		return f
	}
	return d.Failed(context.Background(), err)
}

// pipeTalk prints notes on the pipe if stderr is a terminal or with --verbose.
func pipeTalk(a *cli.App, lines ...string) {
	for _, line := range lines {
		if a.Flags.Verbose || term.IsTerminal(a.Stderr) {
			a.Note("%s", wire.Visible(line))
		}
	}
}

// pipeAlone starts an orchestrator with a temporary state directory, joins it, and stops it
// after the pipe.
func pipeAlone(a *cli.App, f pipeFlags) error {
	stateDir, err := os.MkdirTemp("", "orchestrator-pipe-")
	if err != nil {
		return fmt.Errorf("making a place for its state: %w", err)
	}
	defer os.RemoveAll(stateDir)
	c := config.Alone(a.Dir, stateDir, "pipe", nil)
	c.Agents = nil
	c.Store.Kind = "memory" // the state directory is temporary
	t := NewHub(a, new(hub.Place), hub.NewFile(), c, logger(a, c, a.Flags.JSON))
	ctx := context.Background()
	if err := t.Hold(ctx); err != nil {
		return CannotHold(err, stateDir)
	}
	defer t.Stop()
	t.File.Config = c
	if err := t.Supervise(ctx, supervisor.Options{Name: "pipe"}); err != nil {
		return CannotRecord(err, c.Store)
	}
	t.Serve()
	ran := make(chan error, 1)
	go func() { ran <- t.Super.Run(ctx) }()
	err = pipeInto(a, t, f)
	t.Super.Stop("its pipe has ended")
	if failed := <-ran; err == nil {
		err = failed
	}
	t.Shut()
	return err
}

// pipeInto joins a team in this process through its socket.
func pipeInto(a *cli.App, t *hub.Hub, f pipeFlags) error {
	to := client.Target{Socket: t.Place.Socket, Subject: "this pipe"}
	d := a.NewClient(to)
	link, err := join(a, d, f)
	if err != nil {
		return joinFailed(d, err)
	}
	return converse(a, link, to, f,
		fmt.Sprintf("No orchestrator is running here: %s has joined a temporary one, which ends with this pipe.", f.Name),
		"See its status: orchestrator status --host "+to.Socket)
}
