package main

import (
	"context"
	"iter"
	"net/url"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/watch"
	"orchestrator/wire"
)

func (a *app) watchCommand() *cobra.Command {
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
		Args:              argCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return a.watch() },
	}
}

func (a *app) watch() error {
	if a.flags.json || !isTerminal(a.stdin) || !isTerminal(a.stdout) {
		return usageError("watch wants a terminal", `Without one use "status --watch" or "events -f --json"`)
	}
	if a.env("TERM") == "dumb" {
		return usageError("this terminal shows no full screen (TERM=dumb)", `Use "status --watch" or "events -f"`)
	}
	return a.speak(func(ctx context.Context, d *client) error {
		status, _, err := a.status(ctx, d)
		if err != nil {
			return err
		}
		shown, given := signal.NotifyContext(ctx, syscall.SIGHUP) // a hangup gives the terminal back, too
		defer given()
		err = watch.Run(shown, a.watched(d), &status, watch.Terminal{
			In: a.stdin, Out: a.stdout, Environ: a.environ, Color: bool(a.paint(a.stdout)),
		})
		if err != nil {
			return err
		}
		a.note("Left %s: its agents were not touched. Look again: orchestrator watch", wire.Visible(status.Name))
		return unlessLeft(a.ended(ctx))
	})
}

// watched is the orchestrator behind a door, for those who watch it.
func (a *app) watched(d *client) watch.Orchestrator {
	return watch.Orchestrator{
		Ask: d.ask,
		Follow: func(ctx context.Context, list string, query url.Values) iter.Seq2[[]byte, error] {
			return func(yield func([]byte, error) bool) {
				body, err := d.get(ctx, list, query)
				if err != nil {
					yield(nil, err)
					return
				}
				d.lines(ctx, body)(yield)
			}
		},
		Answer: func(ctx context.Context, question, answer string) (string, error) {
			text, err := d.ask(ctx, "answer-question", wire.AnswerQuestion{QuestionID: question, Answer: answer})
			if err != nil {
				return "", err
			}
			reply, err := decode[wire.QuestionReply](text)
			return answeredWords(&reply), err
		},
		Run:  a.runWithin,
		Tree: treeRows,
	}
}

// treeRows is the tree of graph, for a screen that puts its own colours.
func treeRows(tasks []wire.Task, all bool) (rows []watch.Row, left int) {
	seen := make([]taskSeen, len(tasks))
	for i := range tasks {
		seen[i].Task = tasks[i]
	}
	g := newGraph(seen)
	if all {
		g.choose(func(int) bool { return true })
	} else {
		g.chooseOpen()
	}
	t := newTree(g, mostWatched, false)
	t.grow()
	texts := strings.Split(table(t.rows), "\n")
	for i, n := range t.of {
		rows = append(rows, watch.Row{Task: g.tasks[n].ID, State: g.tasks[n].State, Text: texts[i]})
	}
	return rows, t.left()
}

// mostWatched is how many tasks a tree has that can be walked through.
const mostWatched = 2000
