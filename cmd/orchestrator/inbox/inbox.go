// Package inbox holds the commands on agents' questions to people.
package inbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// Command returns the inbox command.
func Command(a *cli.App) *cobra.Command {
	verb := &cobra.Command{
		Use:   "inbox",
		Short: "List and answer the questions of agents",
		Long: `Lists the open questions of agents: the agent, the age, the time left, the question and
its options. The TASK column shows the task that waits for the answer. The context
that the agent gave is part of the JSON.`,
		Example: `  orchestrator inbox
  orchestrator inbox show q9
  orchestrator inbox answer q7 oauth
  orchestrator inbox watch`,
		Args: cobra.ArbitraryArgs,
		RunE: func(verb *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.UnknownVerb(verb, args)
			}
			return listing(a).Run(a)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	verb.AddCommand(cli.OnRecord(inboxListCommand(a)), cli.OnRecord(inboxShowCommand(a)), inboxAnswerCommand(a), inboxWatchCommand(a))
	return cli.OnRecord(verb)
}

func inboxListCommand(a *cli.App) *cobra.Command {
	return listing(a).Command(a, &cobra.Command{
		Use:     "ls",
		Short:   "List the questions",
		Long:    `Lists the questions that wait for a person, as orchestrator inbox does.`,
		Example: "  orchestrator inbox ls\n  orchestrator inbox ls -q        only the ids\n  orchestrator inbox ls --json",
	})
}

// listing returns the query for the open questions.
func listing(a *cli.App) cli.Query[wire.QuestionList] {
	return cli.Query[wire.QuestionList]{
		Operation: "list-questions",
		Quiet: func(list *wire.QuestionList) error {
			return cli.PrintNames(a, list.Questions, func(q *wire.Question) string { return q.ID })
		},
		Text: func(list *wire.QuestionList) error { return showInbox(a, list) },
	}
}

func showInbox(a *cli.App, list *wire.QuestionList) error {
	if len(list.Questions) == 0 {
		return a.Print("No open questions.\n")
	}
	p, now := a.Paint(a.Stdout), time.Now()
	head := []term.Cell{term.Text("ID"), term.Text("AGENT"), term.Figure("AGE"), term.Figure("LEFT"), term.Text("QUESTION")}
	about := slices.ContainsFunc(list.Questions, func(q wire.Question) bool { return q.Task != "" })
	if about {
		head = slices.Insert(head, 2, term.Text("TASK"))
	}
	rows := [][]term.Cell{head}
	for i := range list.Questions {
		q := &list.Questions[i]
		row := questionRow(q, p, now)
		if about {
			row = slices.Insert(row, 2, term.Text(cmp.Or(term.ID(q.Task), "-")))
		}
		rows = append(rows, row)
	}
	return a.Print("%s", term.Table(rows))
}

// noLimit is the distance of a deadline that stands for no limit: the question waits as long as its
// agent.
const noLimit = 180 * 24 * time.Hour

func questionRow(q *wire.Question, p term.Paint, now time.Time) []term.Cell {
	stamp := object.Timestamp(now)
	age, left := "-", "-"
	if passed, ok := term.Between(q.AskedAt, stamp); ok {
		age = term.Duration(max(0, passed))
	}
	if rest, ok := term.Between(stamp, q.Deadline); ok && rest < noLimit {
		left = term.Duration(max(0, rest))
	}
	asked := term.OneLine(q.Question)
	if q.Permission != nil {
		if lines := term.PermissionLines(q.Permission); len(lines) > 1 {
			asked += fmt.Sprintf("   (%d lines: orchestrator inbox show %s)", len(lines), wire.Visible(q.ID))
		}
	}
	if len(q.Options) > 0 {
		asked += "   " + term.OptionWords(q.Options)
	}
	return []term.Cell{{Text: wire.Visible(q.ID), Ink: p.Strong}, term.Text(term.OneLine(q.Agent)), term.Figure(age), term.Figure(left), term.Text(asked)}
}

func inboxWatchCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "watch",
		Short: "Show open questions as they come and go",
		Long: `Shows the open questions until Ctrl-C. On a terminal the list stays in place. Elsewhere
it is printed again when it changes.`,
		Example:           "  orchestrator inbox watch\n  orchestrator inbox watch --json     one document for each change",
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			return a.WithClient(func(ctx context.Context, d *client.Client) error { return watchInbox(ctx, a, d) })
		},
	}
}

func watchInbox(ctx context.Context, a *cli.App, d *client.Client) error {
	clear := a.ClearScreen()
	var before []byte
	return a.EverySecond(ctx, func() error {
		text, err := a.Ask(ctx, d, "list-questions", struct{}{})
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
			err = a.Print("%s", clear)
		case !first && !a.Flags.JSON && !a.Flags.Quiet:
			err = a.Print("\n")
		}
		if err != nil {
			return err
		}
		return listing(a).Show(a, text, nil)
	})
}

func inboxAnswerCommand(a *cli.App) *cobra.Command {
	var message string
	verb := &cobra.Command{
		Use:   "answer ID VALUE|-",
		Short: "Answer a question",
		Long: `Answers the question of an agent. If the question has options, the answer must be one
of them; otherwise it is any text. "-" reads the answer from stdin. The answer to a
permission may have a message, for example the reason for a denial.`,
		Example: `  orchestrator inbox answer q7 oauth
  orchestrator inbox answer q9 deny -m 'The tests must stay'
  orchestrator inbox answer q8 - < answer.txt`,
		Args:              cli.ArgCount(2, 2),
		ValidArgsFunction: a.Completion(completeAnswer),
		RunE: func(verb *cobra.Command, args []string) error {
			if err := cli.NotEmpty(verb, "message"); err != nil {
				return err
			}
			value := args[1]
			if value == "-" {
				text, err := a.ReadArg("VALUE", value)
				if err != nil {
					return err
				}
				value = text
			}
			return answerQuestion(a, wire.AnswerQuestion{QuestionID: args[0], Answer: value, Message: message})
		},
	}
	verb.Flags().StringVarP(&message, "message", "m", "", "message to the agent, with the answer to a permission: `TEXT`")
	_ = verb.RegisterFlagCompletionFunc("message", cobra.NoFileCompletions)
	return verb
}

func answerQuestion(a *cli.App, answer wire.AnswerQuestion) error {
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		return cli.Query[wire.QuestionReply]{
			Operation: "answer-question", Request: answer,
			Explain: func(err error) error { return cli.WithAnswers(withFate(ctx, d, answer.QuestionID, err)) },
			Quiet:   func(*wire.QuestionReply) error { return nil },
			Text:    func(reply *wire.QuestionReply) error { return a.Print("%s\n", AnsweredWords(reply)) },
		}.Send(ctx, a, d)
	})
}

// withFate adds the outcome of a closed question to the error about it, if the record has the
// outcome.
func withFate(ctx context.Context, d *client.Client, id string, err error) error {
	f, ok := errors.AsType[*cli.Failure](err)
	if !ok || f.Code != wire.CodeNotFound {
		return err
	}
	found, _ := client.Collect(ctx, d, "events", url.Values{"type": {"question.*"}}, func(e *wire.Event) bool {
		about, _ := client.Decode[struct {
			ID string `json:"question_id"`
		}](e.Payload)
		return about.ID == id && e.Kind != events.QuestionAsked && e.Kind != events.QuestionRejoined
	})
	if n := len(found); n > 0 {
		f.Because = append(f.Because, fmt.Sprintf("%s (%s)", term.Clip(term.OneLine(found[n-1].Text), 100), term.Ago(found[n-1].At, time.Now())))
	}
	return err
}

// AnsweredWords returns a sentence on the effect of an answer.
func AnsweredWords(r *wire.QuestionReply) string {
	agent := term.OneLine(r.Question.Agent)
	said := fmt.Sprintf("Answered %s: %s.", agent, strings.TrimSuffix(term.Clip(term.OneLine(r.Answer), 100), "."))
	switch {
	case r.Question.Task != "" && !r.Question.Blocking:
		return said + " Task " + term.ID(r.Question.Task) + " continues."
	case r.Told:
		return said
	case r.Question.Blocking:
		return said + " It no longer waits for the answer; the answer is on record."
	}
	return said + " It did not wait for an answer; the answer is on record."
}

// completeAnswer completes the id of a question, and then its options.
func completeAnswer(a *cli.App, _ *cobra.Command, already []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var offered []cobra.Completion
	for _, q := range questionsForShell(a, len(already)) {
		if len(already) == 0 {
			offered = append(offered, cobra.CompletionWithDesc(q.ID, term.OneLine(q.Agent)+": "+term.Clip(term.OneLine(q.Question), 60)))
			continue
		}
		for _, o := range q.Options {
			switch {
			case q.ID != already[0]:
			case o.Label == o.Value:
				offered = append(offered, o.Value)
			default:
				offered = append(offered, cobra.CompletionWithDesc(o.Value, term.OneLine(o.Label)))
			}
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

// questionsForShell returns the open questions for completion.
func questionsForShell(a *cli.App, words int) []wire.Question {
	if words > 1 {
		return nil
	}
	return cli.CompletionList[wire.QuestionList](a, "list-questions", struct{}{}).Questions
}
