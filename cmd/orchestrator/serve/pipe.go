package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"syscall"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// pipeFlags are who joins, and how.
type pipeFlags struct {
	as           string
	role         cli.Choice
	capabilities []string
	echo         bool
}

// PipeCommand makes the command pipe.
func PipeCommand(a *cli.App) *cobra.Command {
	f := pipeFlags{role: cli.Choice{Of: wire.Roles, Open: true, Close: true}}
	verb := &cobra.Command{
		Use:   "pipe --as NAME",
		Short: "Join the team as an agent on this stdin and stdout",
		Long: `Joins the running orchestrator as an agent: what comes in on stdin is what the
agent says, and what it is told comes out on stdout, one line each. Where no
orchestrator runs, it starts one of its own for as long as it lasts; an
orchestrator that is named (--host, --state-dir, $ORC_HOST, $ORC_SOCKET) must
run.

NAME is an agent of the file that does not run, and then its role and its
capabilities are those of the file; or a new name, and then the agent exists as
long as the pipe does. A new agent is given tasks only with --role or
--capability: one that asks a question and goes must not take work with it.

When stdin ends, or at Ctrl-C, what is still to be answered is answered, and
then it ends with 0: the task that it has counts as done. A pipe that is killed,
or that --timeout ends, fails its task. When the orchestrator stops, the notice
and the end of stdout come first, and the exit code is 0; 5 when it is gone
without that, and 141 when the reader of stdout has gone.

In a terminal you may leave out "id" and "timestamp".`,
		Example: `  producer | orchestrator pipe --as producer
  orchestrator pipe --as me --capability go
  coproc orchestrator pipe --as me; worker <&"${COPROC[0]}" >&"${COPROC[1]}"`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return pipe(a, f) },
	}
	set := verb.Flags()
	set.StringVar(&f.as, "as", "", "the `NAME` of the agent")
	set.Var(&f.role, "role", "the role of a new agent: worker, planner, reviewer or another word")
	set.StringSliceVar(&f.capabilities, "capability", nil, "what a new agent is able to do: `NAMES`, with commas between them; may be repeated")
	set.BoolVar(&f.echo, "echo", false, "show on stderr, after \"> \", each line as it is sent")
	_ = verb.RegisterFlagCompletionFunc("as", a.CompleteAgents)
	_ = verb.RegisterFlagCompletionFunc("role", f.role.Complete)
	_ = verb.RegisterFlagCompletionFunc("capability", cobra.NoFileCompletions)
	return verb
}

func (f *pipeFlags) query() url.Values {
	return url.Values{"as": {f.as}, "role": {f.role.Value}, "capability": f.capabilities}
}

func pipe(a *cli.App, f pipeFlags) error {
	if f.as == "" {
		return cli.UsageError("pipe wants the name of an agent", "Write: orchestrator pipe --as NAME")
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
	return converse(a, link, d.Target, f, fmt.Sprintf("Joined the orchestrator of %s as %s.", d.Target.Subject, f.as))
}

// mayPipeAlone reports whether an orchestrator of our own will do. A user who names
// one means that one.
func mayPipeAlone(a *cli.App) bool {
	if a.Flags.Host != "" || a.Flags.StateDir != "" {
		return false
	}
	return a.Flags.Config != "" || a.Env("ORC_HOST") == "" && a.Env("ORC_SOCKET") == ""
}

// noListener reports whether an error means that no orchestrator listens.
func noListener(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// join asks for a pipe, for as long as that may take.
func join(a *cli.App, d *cli.Client, f pipeFlags) (*cli.Link, error) {
	ctx, stop := a.Context()
	defer stop()
	done := a.ShowWait("the orchestrator to answer")
	defer done()
	link, err := d.Join(ctx, f.query())
	if over := a.Ended(ctx); over != nil {
		return nil, over
	}
	return link, err
}

// joinFailed returns why there is no pipe.
func joinFailed(d *cli.Client, err error) error {
	if f, ok := errors.AsType[*cli.Failure](err); ok {
		return f
	}
	return d.Failed(context.Background(), err)
}

// pipeTalk tells a person what the pipe does: one who sits at a terminal, or
// asked for more.
func pipeTalk(a *cli.App, lines ...string) {
	for _, line := range lines {
		if a.Flags.Verbose || term.IsTerminal(a.Stderr) {
			a.Note("%s", wire.Visible(line))
		}
	}
}
