package task

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/hub"
)

// updateFlags are the flags of task update.
type updateFlags struct {
	title, kind, spec, payload string
	priority                   string
	wants                      wantFlags
	details                    detailFlags
}

func taskUpdateCommand(a *cli.App) *cobra.Command {
	var f updateFlags
	verb := &cobra.Command{
		Use:   "update ID",
		Short: "Change the text, the documents or the priority of a task",
		Long: `Changes a task that has not ended. The flags are those of task add, and only the given ones
change the task. --requirements null and --structured-spec null remove the document.

The state is changed by other commands, and dependencies by task deps.`,
		Example: `  orchestrator task update 91c0 --priority high
  orchestrator task update 91c0 --title "API handlers" --spec @spec.md
  orchestrator task update 91c0 --repo shop --language go`,
		Args:              cli.ArgCount(1, 1),
		ValidArgsFunction: completeOneTask(a, false),
		RunE: func(verb *cobra.Command, args []string) error {
			change, err := f.read(a, verb)
			if err != nil {
				return err
			}
			return moveTask(a, args[0], "update-task", func(id string) any {
				change.TaskID = id
				return *change
			})
		},
	}
	set := verb.Flags()
	set.StringVar(&f.title, "title", "", "its new `TITLE`")
	set.StringVar(&f.kind, "type", "", "`KIND` of work")
	set.StringVar(&f.spec, "spec", "", "description of the task: `TEXT`, @FILE or -")
	set.StringVar(&f.payload, "payload", "", "a `JSON` object for the agent; or @FILE or -")
	set.StringVar(&f.priority, "priority", "", "critical, high, normal, low, or a number: `P` 1 comes first")
	f.wants.addTo(a, verb)
	f.details.addTo(verb)
	_ = verb.RegisterFlagCompletionFunc("priority", cobra.FixedCompletions(priorityWords, cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"title", "type"} {
		_ = verb.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return verb
}

// read returns the request for the flags.
func (f *updateFlags) read(a *cli.App, verb *cobra.Command) (*wire.UpdateTask, error) {
	if err := oneFromStdin("spec", f.spec, "payload", f.payload, "structured-spec", f.details.spec, "requirements", f.wants.document); err != nil {
		return nil, err
	}
	own, _ := cli.FlagsOf(verb)
	if !slices.ContainsFunc(cli.FlagNames(verb.Flags()), func(name string) bool { return own.Lookup(name) != nil && verb.Flags().Changed(name) }) {
		return nil, cli.UsageError("no change was given", "List the flags: orchestrator task update --help")
	}
	c := new(wire.UpdateTask)
	if err := f.readWords(a, verb, c); err != nil {
		return nil, err
	}
	return c, f.readDocuments(a, c)
}

func (f *updateFlags) readWords(a *cli.App, verb *cobra.Command, c *wire.UpdateTask) (err error) {
	set := verb.Flags()
	if set.Changed("title") {
		c.Name = &f.title
	}
	if set.Changed("type") {
		c.Type = &f.kind
	}
	if set.Changed("spec") {
		text, err := a.ReadArg("--spec", f.spec)
		if err != nil {
			return err
		}
		c.Description = &text
	}
	if set.Changed("target-repo") {
		c.TargetRepo = &f.details.targetRepo
	}
	if set.Changed("project") {
		c.ProjectID = &f.details.project
	}
	if set.Changed("criterion") {
		c.AcceptanceCriteria = &f.details.criteria
	}
	c.Priority, err = priorityOf(f.priority)
	return err
}

// none is the value of a flag that removes a document.
const none = "null"

func (f *updateFlags) readDocuments(a *cli.App, c *wire.UpdateTask) error {
	if f.details.spec == none {
		c.Without = append(c.Without, "structured_spec")
	} else {
		document, err := a.GivenDocument("structured-spec", f.details.spec)
		if err != nil {
			return err
		}
		if document != nil {
			c.Spec = &hub.Spec{Document: document}
		}
	}
	var err error
	if f.wants.document == none {
		c.Without = append(c.Without, "requirements")
	} else if c.Requirements, err = f.wants.read(a); err != nil {
		return err
	}
	c.Payload, err = a.GivenDocument("payload", f.payload)
	return err
}

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
			text, err := a.ReadArg("TEXT", args[1])
			switch {
			case err != nil:
				return err
			case strings.TrimSpace(text) == "":
				return cli.UsageError("the note is empty", "Write the text of the note")
			}
			return onTask(a, args[0], func(ctx context.Context, a *cli.App, d *client.Client, id string) error {
				return noteTask(ctx, a, d, &wire.AddNote{TaskID: id, Content: text, Urgent: urgent})
			})
		},
	}
	verb.Flags().BoolVar(&urgent, "urgent", false, "notify the agent of the task")
	return verb
}

func noteTask(ctx context.Context, a *cli.App, d *client.Client, note *wire.AddNote) error {
	return cli.Query[wire.NoteReply]{
		Operation: "add-note", Request: note,
		Explain: func(err error) error { return explained(ctx, a, d, err) },
		Quiet:   func(reply *wire.NoteReply) error { return a.Print("%s\n", wire.Visible(reply.Note.ID)) },
		Text: func(reply *wire.NoteReply) error {
			return a.Print("%s has note %s\n", a.Paint(a.Stdout).Strong(term.ID(note.TaskID)), wire.Visible(reply.Note.ID))
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
		RunE:              func(_ *cobra.Command, args []string) error { return onTask(a, args[0], showNotes) },
	}
}

func showNotes(ctx context.Context, a *cli.App, d *client.Client, id string) error {
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
