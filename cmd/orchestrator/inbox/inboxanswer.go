package inbox

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

func inboxAnswerCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "answer ID VALUE|-",
		Short: "Answer a question",
		Long: `Answers the question of an agent. If the question has options, the answer must be one
of them; otherwise it is any text. "-" reads the answer from stdin.`,
		Example: `  orchestrator inbox answer q7 oauth
  orchestrator inbox answer q8 - < answer.txt`,
		Args:              cli.ArgCount(2, 2),
		ValidArgsFunction: cli.Completion(a, completeAnswer),
		RunE: func(_ *cobra.Command, args []string) error {
			value := args[1]
			if value == "-" {
				text, err := cli.ReadArg(a, "VALUE", value)
				if err != nil {
					return err
				}
				value = text
			}
			return answerQuestion(a, args[0], value)
		},
	}
}

func answerQuestion(a *cli.App, id, value string) error {
	return cli.Query[wire.QuestionReply]{
		Operation: "answer-question", Request: wire.AnswerQuestion{QuestionID: id, Answer: value}, Explain: cli.WithAnswers,
		Quiet: func(*wire.QuestionReply) error { return nil },
		Text:  func(reply *wire.QuestionReply) error { return a.Print("%s\n", AnsweredWords(reply)) },
	}.Run(a)
}

// AnsweredWords returns a sentence on the effect of an answer.
func AnsweredWords(r *wire.QuestionReply) string {
	agent := term.OneLine(r.Question.Agent)
	said := fmt.Sprintf("Answered %s: %s.", agent, strings.TrimSuffix(term.Clip(term.OneLine(r.Answer), 100), "."))
	switch {
	case r.Question.Task != "" && !r.Question.Blocking:
		return said + " Task " + term.ID(r.Question.Task) + " goes on."
	case r.Told:
		return said
	case r.Question.Blocking:
		return said + " It does not wait for it any more; the answer is on record."
	}
	return said + " It did not wait for an answer; it is on record."
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
