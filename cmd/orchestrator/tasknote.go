package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

func (a *app) taskNoteCommand() *cobra.Command {
	var urgent bool
	verb := &cobra.Command{
		Use:   "note ID TEXT|@FILE|-",
		Short: "Add a note to a task",
		Long: `Adds a note to a task, for later readers. With --urgent the agent that
has the task is told at once.

The note is the text itself, @FILE for what is in a file, or - for what comes on
stdin.`,
		Example: `  orchestrator task note 91c0 "the staging database is back"
  orchestrator task note 91c0 --urgent "do not touch the schema"`,
		Args:              argCount(2, 2),
		ValidArgsFunction: a.completeOneTask(true),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := a.readArg("TEXT", args[1])
			switch {
			case err != nil:
				return err
			case strings.TrimSpace(text) == "":
				return usageError("the note is empty", "Write what is to be noted")
			}
			return a.speak(func(ctx context.Context, d *client) error { return a.noteTask(ctx, d, args[0], text, urgent) })
		},
	}
	verb.Flags().BoolVar(&urgent, "urgent", false, "tell the agent that has the task")
	return verb
}

func (a *app) noteTask(ctx context.Context, d *client, word, content string, urgent bool) error {
	id, err := a.finder(d).id(ctx, word)
	if err != nil {
		return err
	}
	text, err := a.ask(ctx, d, "add-note", wire.AddNote{TaskID: id, Content: content, Urgent: urgent})
	if err != nil {
		return a.explained(ctx, d, err)
	}
	if a.flags.json {
		return a.answer(text)
	}
	reply, err := decode[wire.NoteReply](text)
	switch {
	case err != nil:
		return err
	case a.flags.quiet:
		return a.print("%s\n", wire.Visible(reply.Note.ID))
	}
	return a.print("%s has note %s\n", a.paint(a.stdout).strong(plain.ID(id)), wire.Visible(reply.Note.ID))
}

func (a *app) taskNotesCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "notes ID",
		Short:             "List the notes of a task",
		Long:              "Shows the notes of a task, oldest first: when, who, and what was noted.",
		Example:           "  orchestrator task notes 91c0\n  orchestrator task notes 91c0 --json",
		Args:              argCount(1, 1),
		ValidArgsFunction: a.completeOneTask(true),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.speak(func(ctx context.Context, d *client) error { return a.showNotes(ctx, d, args[0]) })
		},
	}
}

func (a *app) showNotes(ctx context.Context, d *client, word string) error {
	id, err := a.finder(d).id(ctx, word)
	if err != nil {
		return err
	}
	text, err := a.ask(ctx, d, "list-notes", wire.TaskID{TaskID: id})
	if err != nil {
		return a.explained(ctx, d, err)
	}
	if a.flags.json {
		return a.answer(text)
	}
	list, err := decode[wire.NoteList](text)
	switch {
	case err != nil:
		return err
	case a.flags.quiet:
		return printNames(a, list.Notes, func(n *wire.Note) string { return n.ID })
	case len(list.Notes) == 0:
		return a.print("No notes yet. orchestrator task note %s TEXT\n", plain.ID(id))
	}
	return a.print("%s", table(noteRows(list.Notes, a.paint(a.stdout), time.Now())))
}

// noteRows have a row for each line of a note.
func noteRows(notes []wire.Note, p paint, now time.Time) [][]cell {
	rows := [][]cell{{text("ID"), text("TIME"), text("WHO"), text("NOTE")}}
	for i := range notes {
		n := &notes[i]
		author := strings.TrimPrefix(n.Author, "agent:")
		head := []cell{{text: wire.Visible(n.ID), ink: p.strong}, text(plain.Clock(n.CreatedAt, now, time.TimeOnly)), text(plain.OneLine(author))}
		for at, line := range strings.Split(strings.TrimRight(n.Content, "\n"), "\n") {
			said := text(wire.Visible(line))
			if at == 0 && n.Urgent {
				said = text("urgent: " + wire.Visible(line))
			}
			if at > 0 {
				head = []cell{text(""), text(""), text("")}
			}
			rows = append(rows, append(head, said))
		}
	}
	return rows
}
