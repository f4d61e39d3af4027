package inbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/object"
)

func inboxShowCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a question in full",
		Long: `Shows a question: who asks, for which task, and the answers to choose from. A permission
also shows its tool, the command or the changes of files, the paths and the reason.`,
		Example:           "  orchestrator inbox show q9\n  orchestrator inbox show q9 --json",
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: cli.OneArg(a.Completion(completeAnswer)),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.WithClient(func(ctx context.Context, d *client.Client) error { return show(ctx, a, d, args[0]) })
		},
	}
}

func show(ctx context.Context, a *cli.App, d *client.Client, id string) error {
	text, err := a.Ask(ctx, d, "list-questions", struct{}{})
	if err != nil {
		return err
	}
	list, err := client.Decode[wire.QuestionList](text)
	if err != nil {
		return err
	}
	for i := range list.Questions {
		switch q := &list.Questions[i]; {
		case q.ID != id:
		case a.Flags.JSON:
			return a.Answer(object.Spell(q))
		case a.Flags.Quiet:
			return a.Print("%s\n", term.OneLine(q.Question))
		default:
			return a.Print("%s", questionCard(q, a.Paint(a.Stdout), time.Now()))
		}
	}
	return withFate(ctx, d, id, &cli.Failure{
		Exit: cli.ExitNotFound, Code: wire.CodeNotFound, Message: fmt.Sprintf("no question %q is waiting for an answer", id),
		Hint: "List them: orchestrator inbox",
	})
}

// questionCard returns a question in full.
func questionCard(q *wire.Question, p term.Paint, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s asks: %s\n", p.Strong(wire.Visible(q.ID)), term.OneLine(q.Agent), term.OneLine(q.Question))
	var rows [][]term.Cell
	row := func(label, value string) {
		if value != "" {
			rows = append(rows, []term.Cell{term.Text("  " + label), term.Text(term.OneLine(value))})
		}
	}
	if q.Task != "" {
		row("task", term.ID(q.Task))
	}
	row("asked", term.Ago(q.AskedAt, now))
	if left, ok := term.Between(object.Timestamp(now), q.Deadline); ok {
		row("left", term.Duration(max(0, left)))
	}
	if q.Permission != nil {
		row("tool", q.Permission.Tool)
		row("paths", strings.Join(q.Permission.Paths, ", "))
		row("reason", q.Permission.Reason)
	}
	row("context", string(q.Context))
	row("answers", term.OptionWords(q.Options))
	b.WriteString(term.Table(rows))
	if q.Permission == nil {
		return b.String()
	}
	for _, line := range term.PermissionLines(q.Permission) {
		switch {
		case strings.HasPrefix(line, "+"):
			line = p.Good(line)
		case strings.HasPrefix(line, "-"):
			line = p.Bad(line)
		}
		b.WriteString("\n    " + line)
	}
	b.WriteString("\n")
	return b.String()
}
