package agent

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/task"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// eventFlags are the flags of events.
type eventFlags struct {
	follow bool
	since  string
	kind   string
	agent  string
	task   string
}

// EventsCommand returns the events command.
func EventsCommand(a *cli.App) *cobra.Command {
	var f eventFlags
	verb := &cobra.Command{
		Use:   "events",
		Short: "Show events: starts, exits, tasks, questions",
		Long: `Shows events, oldest first: number, time, agent, kind and text. The numbers only grow.

To miss no event, a program remembers the last number and continues from there with
--since, even after a restart of the orchestrator.`,
		Example: `  orchestrator events                        what is kept
  orchestrator events -f --type 'agent.*'     starts, exits and the like, as they happen
  orchestrator events --task 91c0            the story of a task
  orchestrator events --since 412 --json      all after number 412
  orchestrator events --since 10m --agent coder`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return showEvents(a, f) },
	}
	set := verb.Flags()
	set.BoolVarP(&f.follow, "follow", "f", false, "continue with new events until Ctrl-C")
	set.StringVar(&f.since, "since", "", "events after `SEQ|TIME`: a number, 10m ago, 14:33, \"2026-11-20 14:33\"")
	set.StringVar(&f.kind, "type", "", "only kinds that match `GLOB`, such as 'agent.*'")
	set.StringVar(&f.agent, "agent", "", "only events about `AGENT`")
	set.StringVar(&f.task, "task", "", "only events about the task `ID`")
	_ = verb.RegisterFlagCompletionFunc("agent", a.CompleteAgents)
	_ = verb.RegisterFlagCompletionFunc("task", task.CompleteTasks(a, true))
	_ = verb.RegisterFlagCompletionFunc("type", cobra.FixedCompletions([]cobra.Completion{"actor.*", "agent.*", "message.*", "orchestrator.*", "question.*", "task.*"}, cobra.ShellCompDirectiveNoFileComp))
	return verb
}

func showEvents(a *cli.App, f eventFlags) error {
	query, err := f.query(time.Now())
	if err != nil {
		return err
	}
	if f.task != "" {
		err := a.WithClient(func(ctx context.Context, d *client.Client) error {
			ids, err := task.TaskIDs(ctx, a, d, []string{f.task})
			query["task"] = ids
			return err
		})
		if err != nil {
			return err
		}
	}
	show := eventPrinter{app: a, paint: a.Paint(a.Stdout), now: time.Now(), who: len("orchestrator"), kind: len(events.QuestionAnswered)}
	return a.Stream("events", query, f.follow, show.line)
}

func (f *eventFlags) query(now time.Time) (url.Values, error) {
	query := url.Values{}
	if seq, err := strconv.ParseUint(f.since, 10, 63); err == nil {
		query.Set("since", strconv.FormatUint(seq, 10))
	} else if f.since != "" {
		at, err := cli.ParseTime("since", f.since, now)
		if err != nil {
			return nil, err
		}
		query.Set("after", object.Timestamp(at))
	}
	if f.kind != "" {
		query.Set("type", f.kind)
	}
	if f.agent != "" {
		query.Set("agent", f.agent)
	}
	if f.follow {
		query.Set("follow", "true")
	}
	return query, nil
}

// An eventPrinter prints events in columns that only grow.
type eventPrinter struct {
	app       *cli.App
	paint     term.Paint
	now       time.Time
	headed    bool
	at        int // column widths so far
	who, kind int
}

func (e *eventPrinter) line(raw []byte) error {
	if e.app.Flags.JSON {
		return e.app.Print("%s\n", raw)
	}
	event, err := client.Decode[wire.Event](raw)
	if err != nil {
		return err
	}
	at := term.Clock(event.At, e.now, "15:04:05.000")
	e.at = max(e.at, len(at))
	if !e.headed && !e.app.Flags.Quiet {
		e.headed = true
		if err := e.row("SEQ", "TIME", "", "WHO", "KIND", "WHAT"); err != nil {
			return err
		}
	}
	who := event.Agent
	if who == "" {
		who = "orchestrator"
	}
	return e.row(strconv.FormatInt(event.Seq, 10), at, event.Agent,
		wire.Visible(who), wire.Visible(event.Kind), wire.Visible(event.Text))
}

func (e *eventPrinter) row(seq, at, agent, who, kind, what string) error {
	e.at = max(e.at, len(at))
	e.who, e.kind = max(e.who, term.Width(who)), max(e.kind, term.Width(kind))
	whose := term.Pad(who, e.who)
	if agent != "" {
		whose = e.paint.Agent(agent, whose)
	}
	line := strings.Repeat(" ", max(0, 6-len(seq))) + seq + "  " + e.paint.Dim(term.Pad(at, e.at)) + "  " + whose + "  " + term.Pad(kind, e.kind) + "  " + what
	return e.app.Print("%s\n", strings.TrimRight(line, " "))
}
