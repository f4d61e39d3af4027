package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"syscall"

	"github.com/spf13/cobra"

	"orchestrator/wire"
)

// pipeFlags are who joins, and how.
type pipeFlags struct {
	as           string
	role         choice
	capabilities []string
	echo         bool
}

func (a *app) pipeCommand() *cobra.Command {
	f := pipeFlags{role: choice{of: wire.Roles, open: true, close: true}}
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
		Args:              argCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return a.pipe(f) },
	}
	set := verb.Flags()
	set.StringVar(&f.as, "as", "", "the `NAME` of the agent")
	set.Var(&f.role, "role", "the role of a new agent: worker, planner, reviewer or another word")
	set.StringSliceVar(&f.capabilities, "capability", nil, "what a new agent is able to do: `NAMES`, with commas between them; may be repeated")
	set.BoolVar(&f.echo, "echo", false, "show on stderr, after \"> \", each line as it is sent")
	_ = verb.RegisterFlagCompletionFunc("as", a.completeAgents)
	_ = verb.RegisterFlagCompletionFunc("role", f.role.complete)
	_ = verb.RegisterFlagCompletionFunc("capability", cobra.NoFileCompletions)
	return verb
}

func (f *pipeFlags) query() url.Values {
	return url.Values{"as": {f.as}, "role": {f.role.value}, "capability": f.capabilities}
}

func (a *app) pipe(f pipeFlags) error {
	if f.as == "" {
		return usageError("pipe wants the name of an agent", "Write: orchestrator pipe --as NAME")
	}
	d, err := a.door()
	switch {
	case err == nil:
	case a.mayPipeAlone() && failureOf(err).code == codeNoConfig:
		return a.pipeAlone(f)
	default:
		return err
	}
	link, err := a.join(d, f)
	if noListener(err) && a.mayPipeAlone() {
		return a.pipeAlone(f)
	}
	if err != nil {
		return joinFailed(d, err)
	}
	return a.converse(link, d.target, f, fmt.Sprintf("Joined the orchestrator of %s as %s.", d.target.subject, f.as))
}

// mayPipeAlone reports whether an orchestrator of our own will do. A user who names
// one means that one.
func (a *app) mayPipeAlone() bool {
	if a.flags.host != "" || a.flags.stateDir != "" {
		return false
	}
	return a.flags.config != "" || a.env("ORC_HOST") == "" && a.env("ORC_SOCKET") == ""
}

// noListener reports whether an error means that no orchestrator listens.
func noListener(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// join asks for a pipe, for as long as that may take.
func (a *app) join(d *client, f pipeFlags) (*link, error) {
	ctx, stop := a.begin()
	defer stop()
	done := a.patience("the orchestrator to answer")
	defer done()
	link, err := d.join(ctx, f.query())
	if over := a.ended(ctx); over != nil {
		return nil, over
	}
	return link, err
}

// joinFailed returns why there is no pipe.
func joinFailed(d *client, err error) error {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	return d.failed(context.Background(), err)
}

// pipeTalk tells a person what the pipe does: one who sits at a terminal, or
// asked for more.
func (a *app) pipeTalk(lines ...string) {
	for _, line := range lines {
		if a.flags.verbose || isTerminal(a.stderr) {
			a.note("%s", wire.Visible(line))
		}
	}
}
