package task

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
)

func taskNoteCommand(a *cli.App) *cobra.Command {
	var urgent bool
	verb := &cobra.Command{
		Use:   "note ID TEXT|@FILE|-",
		Short: "Add a note to a task",
		Long: `Adds a note to a task, for later readers. With --urgent the agent of the task is
notified at once.

The note is the text itself, @FILE for the contents of a file, or - for stdin.`,
		Example: `  orchestrator task note 91c0 "the staging database is back"
  orchestrator task note 91c0 --urgent "do not touch the schema"`,
		Args:              cli.ArgCount(2, 2),
		ValidArgsFunction: completeOneTask(a, true),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := cli.ReadArg(a, "TEXT", args[1])
			switch {
			case err != nil:
				return err
			case strings.TrimSpace(text) == "":
				return cli.UsageError("the note is empty", "Write what is to be noted")
			}
			return a.WithClient(func(ctx context.Context, d *client.Client) error { return noteTask(ctx, a, d, args[0], text, urgent) })
		},
	}
	verb.Flags().BoolVar(&urgent, "urgent", false, "notify the agent of the task")
	return verb
}

func noteTask(ctx context.Context, a *cli.App, d *client.Client, word, content string, urgent bool) error {
	id, err := NewFinder(a, d).ID(ctx, word)
	if err != nil {
		return err
	}
	return cli.Query[wire.NoteReply]{
		Operation: "add-note", Request: wire.AddNote{TaskID: id, Content: content, Urgent: urgent},
		Explain: func(err error) error { return explained(ctx, a, d, err) },
		Quiet:   func(reply *wire.NoteReply) error { return a.Print("%s\n", wire.Visible(reply.Note.ID)) },
		Text: func(reply *wire.NoteReply) error {
			return a.Print("%s has note %s\n", a.Paint(a.Stdout).Strong(term.ID(id)), wire.Visible(reply.Note.ID))
		},
	}.Send(ctx, a, d)
}

func taskNotesCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:               "notes ID",
		Short:             "List the notes of a task",
		Long:              "Lists the notes of a task, oldest first, with time and author.",
		Example:           "  orchestrator task notes 91c0\n  orchestrator task notes 91c0 --json",
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: completeOneTask(a, true),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.WithClient(func(ctx context.Context, d *client.Client) error { return showNotes(ctx, a, d, args[0]) })
		},
	}
}

func showNotes(ctx context.Context, a *cli.App, d *client.Client, word string) error {
	id, err := NewFinder(a, d).ID(ctx, word)
	if err != nil {
		return err
	}
	return cli.Query[wire.NoteList]{
		Operation: "list-notes", Request: wire.TaskID{TaskID: id},
		Explain: func(err error) error { return explained(ctx, a, d, err) },
		Quiet: func(list *wire.NoteList) error {
			return cli.PrintNames(a, list.Notes, func(n *wire.Note) string { return n.ID })
		},
		Text: func(list *wire.NoteList) error {
			if len(list.Notes) == 0 {
				return a.Print("No notes yet. orchestrator task note %s TEXT\n", term.ID(id))
			}
			return a.Print("%s", term.Table(noteRows(list.Notes, a.Paint(a.Stdout), time.Now())))
		},
	}.Send(ctx, a, d)
}

// noteRows returns the rows of a table with a row for each line of a note.
func noteRows(notes []wire.Note, p term.Paint, now time.Time) [][]term.Cell {
	rows := [][]term.Cell{{term.Text("ID"), term.Text("TIME"), term.Text("WHO"), term.Text("NOTE")}}
	for i := range notes {
		n := &notes[i]
		author := strings.TrimPrefix(n.Author, "agent:")
		head := []term.Cell{{Text: wire.Visible(n.ID), Ink: p.Strong}, term.Text(term.Clock(n.CreatedAt, now, time.TimeOnly)), term.Text(term.OneLine(author))}
		for at, line := range strings.Split(strings.TrimRight(n.Content, "\n"), "\n") {
			said := term.Text(wire.Visible(line))
			if at == 0 && n.Urgent {
				said = term.Text("urgent: " + wire.Visible(line))
			}
			if at > 0 {
				head = []term.Cell{term.Text(""), term.Text(""), term.Text("")}
			}
			rows = append(rows, append(head, said))
		}
	}
	return rows
}
