package watch

import (
	"context"
	"iter"
	"net/url"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/inbox"
	"orchestrator/cmd/orchestrator/task"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// Command returns the watch command.
func Command(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "watch",
		Short: "Watch the team on the full screen",
		Long: `Shows the running orchestrator on the full screen and updates it: agents, tasks and
their dependencies, questions, messages and output. Keys answer questions and run
commands; ":" runs any command, and "?" lists the keys.

Quitting with q does not stop the agents. While the orchestrator does not answer, watch
shows the last known state and reconnects.`,
		Example: `  orchestrator watch
  orchestrator watch --host https://build.example.com:7433`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return runWatch(a) },
	}
}

func runWatch(a *cli.App) error {
	if a.Flags.JSON || !term.IsTerminal(a.Stdin) || !term.IsTerminal(a.Stdout) {
		return cli.UsageError("watch wants a terminal", `Without one use "status --watch" or "events -f --json"`)
	}
	if a.Getenv("TERM") == "dumb" {
		return cli.UsageError("this terminal shows no full screen (TERM=dumb)", `Use "status --watch" or "events -f"`)
	}
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		status, _, err := a.Status(ctx, d)
		if err != nil {
			return err
		}
		shown, given := signal.NotifyContext(ctx, syscall.SIGHUP) // restore the terminal after a hangup, too
		defer given()
		err = Run(shown, newOrchestrator(a, d), &status, Terminal{
			In: a.Stdin, Out: a.Stdout, Environ: a.Environ, Color: bool(a.Paint(a.Stdout)),
		})
		if err != nil {
			return err
		}
		a.Note("Left %s: its agents were not touched. Look again: orchestrator watch", wire.Visible(status.Name))
		return cli.UnlessLeft(a.Ended(ctx))
	})
}

// newOrchestrator returns the Orchestrator behind a client.
func newOrchestrator(a *cli.App, d *client.Client) Orchestrator {
	return Orchestrator{
		Ask: d.Ask,
		Follow: func(ctx context.Context, list string, query url.Values) iter.Seq2[[]byte, error] {
			return func(yield func([]byte, error) bool) {
				body, err := d.Get(ctx, list, query)
				if err != nil {
					yield(nil, err)
					return
				}
				d.Lines(ctx, body)(yield)
			}
		},
		Answer: func(ctx context.Context, question, answer string) (string, error) {
			text, err := d.Ask(ctx, "answer-question", wire.AnswerQuestion{QuestionID: question, Answer: answer})
			if err != nil {
				return "", err
			}
			reply, err := client.Decode[wire.QuestionReply](text)
			return inbox.AnsweredWords(&reply), err
		},
		Run: func(ctx context.Context, args []string, columns int) (text string, exit int) {
			return runWithin(ctx, a, args, columns)
		},
		Tree: treeRows,
	}
}

// treeRows returns the rows of the tree that graph prints, without color.
func treeRows(tasks []wire.Task, all bool) (rows []Row, left int) {
	seen := make([]task.Seen, len(tasks))
	for i := range tasks {
		seen[i].Task = tasks[i]
	}
	g := task.NewGraph(seen)
	if all {
		g.Choose(func(int) bool { return true })
	} else {
		g.ChooseOpen()
	}
	t := task.NewTree(g, maxWatched, false)
	t.Grow()
	texts := strings.Split(term.Table(t.Rows), "\n")
	for i, n := range t.Of {
		rows = append(rows, Row{Task: g.Tasks[n].ID, State: g.Tasks[n].State, Text: texts[i]})
	}
	return rows, t.Left()
}

// maxWatched is the maximum number of tasks in a tree on the screen.
const maxWatched = 2000
