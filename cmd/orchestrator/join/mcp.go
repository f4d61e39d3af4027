// Package join has the commands that connect other programs with a team: mcp and acp.
package join

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/agents"
	"orchestrator/agents/mcp"
	"orchestrator/cmd/orchestrator/build"
	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

// mcpFlags are the flags of mcp.
type mcpFlags struct {
	cli.Guest
	noMail bool
}

// MCPCommand returns the mcp command.
func MCPCommand(a *cli.App) *cobra.Command {
	var f mcpFlags
	verb := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the team's tools to an MCP client over stdio",
		Long: `Serves tools to a client of the Model Context Protocol: to work on tasks, to review
work, to ask people, and to write to other members. A client that an agent starts acts
as that agent.

With --as NAME, a client that you run yourself joins as a guest: a new agent, or a
stopped one of the file. It gets tasks with --role or --capability, and calls task_next
to wait for one. It leaves when stdin ends; its open task is then given back. If it is
killed, on_exit of its agent decides: requeue for a new one.

Results also have the mail that was not read yet. A question to a person is answered
within 45 seconds; a later answer comes as mail.`,
		Example: `  claude mcp add team -- orchestrator mcp --as ann -c ~/shop/orchestrator.hcl
  orchestrator mcp --as helper --role worker`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return serveMCP(a, f) },
	}
	f.AddFlags(a, verb, "join as a guest with this `NAME`")
	verb.Flags().BoolVar(&f.noMail, "no-mail", false, "keep mail out of results, if the client gets it in another way")
	return verb
}

func serveMCP(a *cli.App, f mcpFlags) error {
	if f.Name == "" && (f.Role.Value != "" || len(f.Capabilities) > 0) {
		return cli.UsageError("--role and --capability are only for guests", "Usage: orchestrator mcp --as NAME --role ROLE")
	}
	d, err := a.Connect()
	if err != nil {
		return err
	}
	ctx, stop := a.Context()
	defer stop()
	o := mcp.Options{Version: build.Version, Agent: cmp.Or(f.Name, a.Getenv("ORC_AGENT_ID")), NoMail: f.noMail}
	if f.Name != "" {
		return serveGuest(ctx, a, d, f, o)
	}
	if d.Target.URL == "" && !d.Target.Inside {
		return cli.UsageError("only an agent has tools, and no agent started this command", "Join as a guest: orchestrator mcp --as NAME")
	}
	o.Files = d.Target.Inside
	return ended(ctx, a, mcp.Serve(ctx, &caller{client: d}, o))
}

// ended returns the error of a server that has ended. The end of stdin is none.
func ended(ctx context.Context, a *cli.App, err error) error {
	if over := a.Ended(ctx); over != nil {
		return over
	}
	if failure, ok := errors.AsType[*cli.Failure](err); ok {
		return failure
	}
	if err != nil && ctx.Err() == nil {
		return &cli.Failure{Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "the client's messages cannot be read: " + err.Error()}
	}
	return nil
}

// A caller is a member that asks over HTTP.
type caller struct{ client *client.Client }

// Ask calls an operation.
func (c *caller) Ask(ctx context.Context, operation string, payload, answer any) error {
	if payload == nil {
		payload = wire.Nothing{}
	}
	text, err := c.client.Ask(ctx, operation, payload)
	if failure, ok := errors.AsType[*cli.Failure](err); ok {
		return &agents.Refusal{Code: agents.Code(strings.ToUpper(string(failure.Code))), Message: failure.Message}
	}
	if err != nil || answer == nil {
		return err
	}
	return object.DecodeOwn(text, answer)
}

// requestTimeout is how long the last requests of a guest may take, and requests of a leader that
// needs no answer.
const requestTimeout = 2 * time.Second

// serveGuest serves a client that is a separate agent.
func serveGuest(ctx context.Context, a *cli.App, d *client.Client, f mcpFlags, o mcp.Options) error {
	q := f.Query()
	q.Set("on_exit", "requeue") // the end of a client, even by a signal, does not fail its task
	link, err := d.Join(ctx, q)
	if err != nil {
		return d.Failed(ctx, err)
	}
	defer link.Close()
	conn := agents.Connect(link, link)
	next := make(chan struct{}, 1)
	serving, over := context.WithCancelCause(ctx)
	defer over(nil)
	o.Next, o.Left, o.Withdraws = next, serving.Done(), true
	var listening sync.WaitGroup
	listening.Go(func() {
		for notice := range conn.News(serving) {
			switch notice.Name {
			case agents.TaskAssigned:
				select {
				case next <- struct{}{}:
				default: // the server looks for all tasks at each signal
				}
			case agents.Shutdown:
				over(errStopped)
			}
		}
		over(errLost)
	})
	err = mcp.Serve(serving, conn, o)
	cause := context.Cause(serving)
	if !errors.Is(cause, errStopped) && !errors.Is(cause, errLost) {
		giveBack(conn)
	}
	over(nil)
	link.Leave()
	listening.Wait()
	switch {
	case errors.Is(cause, errStopped):
		return nil
	case errors.Is(cause, errLost):
		return &cli.Failure{
			Exit: cli.ExitNotRunning, Code: cli.CodeNotRunning,
			Message: "the orchestrator of " + d.Target.Subject + " has ended or closed this connection",
			Hint:    "Check whether it is running: orchestrator status",
		}
	}
	return ended(ctx, a, err)
}

// Why a guest is served no longer.
var (
	errStopped = errors.New("the orchestrator has stopped")
	errLost    = errors.New("the orchestrator is lost")
)

// giveBack returns the open tasks of a guest that leaves, because the end of a pipe would count
// as their end.
func giveBack(conn *agents.Conn) {
	ctx, stop := context.WithTimeout(context.Background(), requestTimeout)
	defer stop()
	full := wire.Raw(`{"capabilities":{"max_concurrent_tasks":0}}`) // or it gets the task again
	if conn.Ask(ctx, "update-capabilities", full, nil) != nil {
		return
	}
	for {
		var answer struct {
			Task struct {
				ID string `json:"id"`
			} `json:"task"`
		}
		if conn.Ask(ctx, "current-task", nil, &answer) != nil {
			return
		}
		if conn.Ask(ctx, "return-task", wire.ReturnTask{TaskID: answer.Task.ID, Reason: "its client has disconnected"}, nil) != nil {
			return
		}
	}
}
