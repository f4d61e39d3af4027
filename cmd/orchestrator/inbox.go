package main

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

func (a *app) inboxCommand() *cobra.Command {
	verb := &cobra.Command{
		Use:   "inbox",
		Short: "List and answer the questions of agents",
		Long: `Lists the questions that agents ask: whose, for how long, how much time is left for
an answer, and what can be answered if it is not free; and the task that waits for
it, if one does. What an agent says about a question is in the JSON.`,
		Example: `  orchestrator inbox
  orchestrator inbox answer q7 oauth
  orchestrator inbox watch`,
		Args: cobra.ArbitraryArgs,
		RunE: func(verb *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownVerb(verb, args)
			}
			return a.inbox()
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	verb.AddCommand(a.inboxListCommand(), a.inboxAnswerCommand(), a.inboxWatchCommand())
	return verb
}

func (a *app) inboxListCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "ls",
		Short:             "List the questions",
		Long:              `Lists the questions that wait for a person, as "orchestrator inbox" does.`,
		Example:           "  orchestrator inbox ls\n  orchestrator inbox ls -q        ids alone\n  orchestrator inbox ls --json",
		Args:              argCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return a.inbox() },
	}
}

func (a *app) inbox() error {
	return a.speak(func(ctx context.Context, d *client) error {
		text, err := a.ask(ctx, d, "list-questions", struct{}{})
		if err != nil {
			return err
		}
		return a.showInbox(text)
	})
}

func (a *app) showInbox(raw []byte) error {
	if a.flags.json {
		return a.answer(raw)
	}
	list, err := decode[wire.QuestionList](raw)
	if err != nil {
		return err
	}
	if a.flags.quiet {
		return printNames(a, list.Questions, func(q *wire.Question) string { return q.ID })
	}
	if len(list.Questions) == 0 {
		return a.print("No open questions.\n")
	}
	p, now := a.paint(a.stdout), time.Now()
	head := []cell{text("ID"), text("AGENT"), figure("AGE"), figure("LEFT"), text("QUESTION")}
	about := slices.ContainsFunc(list.Questions, func(q wire.Question) bool { return q.Task != "" })
	if about {
		head = slices.Insert(head, 2, text("TASK"))
	}
	rows := [][]cell{head}
	for i := range list.Questions {
		q := &list.Questions[i]
		row := questionRow(q, p, now)
		if about {
			row = slices.Insert(row, 2, text(cmp.Or(plain.ID(q.Task), "-")))
		}
		rows = append(rows, row)
	}
	return a.print("%s", table(rows))
}

func questionRow(q *wire.Question, p paint, now time.Time) []cell {
	stamp := wire.Timestamp(now)
	age, left := "-", "-"
	if passed, ok := between(q.AskedAt, stamp); ok {
		age = plain.Duration(max(0, passed))
	}
	if rest, ok := between(stamp, q.Deadline); ok {
		left = plain.Duration(max(0, rest))
	}
	asked := plain.OneLine(q.Question)
	if len(q.Options) > 0 {
		asked += "   " + optionWords(q.Options)
	}
	return []cell{{text: wire.Visible(q.ID), ink: p.strong}, text(plain.OneLine(q.Agent)), figure(age), figure(left), text(asked)}
}

// optionWords are the answers that a question allows, as they are typed, and
// what they stand for if that is something else.
func optionWords(options []wire.Option) string {
	var words []string
	for _, o := range options {
		word := plain.OneLine(o.Value)
		if o.Label != "" && o.Label != o.Value {
			word += ": " + plain.OneLine(o.Label)
		}
		words = append(words, "["+word+"]")
	}
	return strings.Join(words, " ")
}

func (a *app) inboxWatchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "watch",
		Short: "Show the questions as they come and go",
		Long: `Shows the questions that wait for a person until Ctrl-C. In a terminal the list
stays in place; elsewhere it is printed again when another question is open.`,
		Example:           "  orchestrator inbox watch\n  orchestrator inbox watch --json     a document for each change",
		Args:              argCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return a.speak(a.watchInbox) },
	}
}

func (a *app) watchInbox(ctx context.Context, d *client) error {
	clear := a.clearing()
	var before []byte
	return a.everySecond(ctx, func() error {
		text, err := a.ask(ctx, d, "list-questions", struct{}{})
		if err != nil {
			return err
		}
		first := before == nil
		if clear == "" && bytes.Equal(text, before) {
			return nil
		}
		before = text
		switch {
		case clear != "":
			err = a.print("%s", clear)
		case !first && !a.flags.json && !a.flags.quiet:
			err = a.print("\n")
		}
		if err != nil {
			return err
		}
		return a.showInbox(text)
	})
}
