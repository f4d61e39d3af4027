package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

func (a *app) inboxAnswerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "answer ID VALUE|-",
		Short: "Answer a question",
		Long: `Gives an agent the answer that it waits for. Where a question has options the
answer is one of them; otherwise it is any text. "-" takes it from stdin.`,
		Example: `  orchestrator inbox answer q7 oauth
  orchestrator inbox answer q8 - < answer.txt`,
		Args:              argCount(2, 2),
		ValidArgsFunction: a.completeAnswer,
		RunE: func(_ *cobra.Command, args []string) error {
			value := args[1]
			if value == "-" {
				text, err := a.readArg("VALUE", value)
				if err != nil {
					return err
				}
				value = text
			}
			return a.answerQuestion(args[0], value)
		},
	}
}

func (a *app) answerQuestion(id, value string) error {
	return a.speak(func(ctx context.Context, d *client) error {
		text, err := a.ask(ctx, d, "answer-question", wire.AnswerQuestion{QuestionID: id, Answer: value})
		if err != nil {
			return notAnswered(err)
		}
		if a.flags.json {
			return a.answer(text)
		}
		reply, err := decode[wire.QuestionReply](text)
		if err != nil || a.flags.quiet {
			return err
		}
		return a.print("%s\n", answeredWords(&reply))
	})
}

func answeredWords(r *wire.QuestionReply) string {
	agent := plain.OneLine(r.Question.Agent)
	said := fmt.Sprintf("Answered %s: %s.", agent, strings.TrimSuffix(plain.Clip(plain.OneLine(r.Answer), 100), "."))
	switch {
	case r.Question.Task != "":
		return said + " Task " + plain.ID(r.Question.Task) + " goes on."
	case r.Told:
		return said
	case r.Question.Blocking:
		return said + " It does not wait for it any more; the answer is on record."
	}
	return said + " It did not wait for an answer; it is on record."
}

// notAnswered adds to a refusal what could be answered, or asked for.
func notAnswered(err error) error {
	if f, ok := errors.AsType[*failure](err); ok && f.code == wire.CodeInvalid {
		if options := textsOf(f.details["options"]); len(options) > 0 {
			f.because = append(f.because, "The answers are: "+strings.Join(options, ", "))
		}
	}
	return hinted(err, wire.CodeNotFound, "See which there are: orchestrator inbox")
}

// completeAnswer offers the ids of questions, and then what can be answered.
func (a *app) completeAnswer(_ *cobra.Command, already []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var offered []cobra.Completion
	for _, q := range a.questionsForShell(len(already)) {
		if len(already) == 0 {
			offered = append(offered, cobra.CompletionWithDesc(q.ID, plain.OneLine(q.Agent)+": "+plain.Clip(plain.OneLine(q.Question), 60)))
			continue
		}
		for _, o := range q.Options {
			switch {
			case q.ID != already[0]:
			case o.Label == o.Value:
				offered = append(offered, o.Value)
			default:
				offered = append(offered, cobra.CompletionWithDesc(o.Value, plain.OneLine(o.Label)))
			}
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

// questionsForShell asks for the questions, as long as a shell waits at a Tab.
func (a *app) questionsForShell(words int) []wire.Question {
	a.flags.quiet = true
	door, err := a.door()
	if err != nil || words > 1 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
	defer cancel()
	text, err := a.ask(ctx, door, "list-questions", struct{}{})
	if err != nil {
		return nil
	}
	list, _ := decode[wire.QuestionList](text)
	return list.Questions
}
