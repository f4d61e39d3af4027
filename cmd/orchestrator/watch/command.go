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
	"orchestrator/cmd/orchestrator/inbox"
	"orchestrator/cmd/orchestrator/task"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

// Command makes the command watch.
func Command(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "watch",
		Short: "Watch the team on the full screen",
		Long: `Shows the running orchestrator on the full screen, and keeps up with it: agents,
tasks and what waits for what, questions, messages and output. Keys answer
questions, ask why, and do what verbs do; ":" takes any command, and "?" says
which keys there are.

It only looks on: q leaves, and the agents go on. When the orchestrator cannot be
reached it keeps what was seen last, and waits for it.`,
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
	if a.Env("TERM") == "dumb" {
		return cli.UsageError("this terminal shows no full screen (TERM=dumb)", `Use "status --watch" or "events -f"`)
	}
	return a.WithClient(func(ctx context.Context, d *cli.Client) error {
		status, _, err := a.Status(ctx, d)
		if err != nil {
			return err
		}
		shown, given := signal.NotifyContext(ctx, syscall.SIGHUP) // a hangup gives the terminal back, too
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

// newOrchestrator makes what the screen asks of the orchestrator behind a client.
func newOrchestrator(a *cli.App, d *cli.Client) Orchestrator {
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
			reply, err := cli.Decode[wire.QuestionReply](text)
			return inbox.AnsweredWords(&reply), err
		},
		Run: func(ctx context.Context, args []string, columns int) (text string, exit int) {
			return runWithin(ctx, a, args, columns)
		},
		Tree: treeRows,
	}
}

// treeRows is the tree of graph, for a screen that puts its own colours.
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
	t := task.NewTree(g, mostWatched, false)
	t.Grow()
	texts := strings.Split(term.Table(t.Rows), "\n")
	for i, n := range t.Of {
		rows = append(rows, Row{Task: g.Tasks[n].ID, State: g.Tasks[n].State, Text: texts[i]})
	}
	return rows, t.Left()
}

// mostWatched is how many tasks a tree has that can be walked through.
const mostWatched = 2000
