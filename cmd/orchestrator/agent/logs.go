package agent

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/task"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// logFlags are the flags of logs.
type logFlags struct {
	follow       bool
	last         string
	since, until string
	grep         string
	stream       cli.Choice
	level        cli.Choice
	raw          bool
	wire         bool
}

// LogsCommand returns the logs command.
func LogsCommand(a *cli.App) *cobra.Command {
	f := logFlags{stream: cli.Choice{Of: []string{control.StreamOut, control.StreamErr, control.StreamOwn}}, level: cli.Choice{Of: levels}}
	verb := &cobra.Command{
		Use:   "logs [AGENT…]",
		Short: "Show what agents print",
		Long: `Shows the output of agents, oldest first: time, agent and line. Lines of stdout are
marked "|" and lines of stderr ":". Lines of the orchestrator about the agent are marked
".", or "!" for a failure. Control characters are escaped, so that output cannot affect
your terminal; --raw writes the unchanged bytes.

Without names the lines of all agents are shown. With --since or --until every line of
that time is shown, otherwise the last 200 of each agent.`,
		Example: `  orchestrator logs coder             its last 200 lines
  orchestrator logs -f                 new lines of all agents
  orchestrator logs --since 10m --grep 'panic|error'
  orchestrator logs coder --json | jq -r .text
  orchestrator logs coder --wire      the traffic with its program`,
		ValidArgsFunction: a.CompleteAgents,
		RunE: func(_ *cobra.Command, names []string) error {
			if f.wire {
				return wireLog(a, names)
			}
			return logs(a, names, f)
		},
	}
	set := verb.Flags()
	set.BoolVarP(&f.follow, "follow", "f", false, "continue with new lines until Ctrl-C")
	set.StringVarP(&f.last, "lines", "n", "", "only the last `N` lines of each agent, or all (200 without --since and --until)")
	set.StringVar(&f.since, "since", "", "lines after `TIME`: 10m ago, 14:33, \"2026-11-20 14:33\"")
	set.StringVar(&f.until, "until", "", "lines before `TIME`")
	set.StringVar(&f.grep, "grep", "", "only lines that match the regular expression `RE`")
	set.Var(&f.stream, "stream", "only one stream: stdout, stderr or own")
	set.BoolVar(&f.raw, "raw", false, "the unchanged text, without time and name; not on a terminal")
	set.Var(&f.level, "level", "only lines of event:log at this level or above: info, warn or error")
	set.BoolVar(&f.wire, "wire", false, "the lines between the orchestrator and the program of a coding agent")
	_ = verb.RegisterFlagCompletionFunc("stream", f.stream.Complete)
	_ = verb.RegisterFlagCompletionFunc("level", f.level.Complete)
	return verb
}

// wireLog prints the lines of the protocol of a coding agent, oldest first. It reads the files
// itself, on the machine of the orchestrator.
func wireLog(a *cli.App, names []string) error {
	if len(names) != 1 {
		return cli.UsageError("--wire needs the name of one agent", "Name it: orchestrator logs coder --wire")
	}
	return a.WithClient(func(ctx context.Context, d *client.Client) error {
		status, _, err := a.Status(ctx, d)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(status.Agents, func(v control.AgentView) bool { return v.Name == names[0] })
		if i < 0 {
			return cli.UsageError(fmt.Sprintf("agent %q does not exist", names[0]), "List them: orchestrator ps")
		}
		found := false
		for _, file := range []string{"wire-0.jsonl", "wire-1.jsonl"} { // see adapter.WireLog
			text, err := os.ReadFile(filepath.Join(filepath.Dir(status.Agents[i].Output.File), file))
			if err != nil {
				continue
			}
			found = true
			for line := range strings.Lines(string(text)) {
				if err := a.Print("%s\n", wire.Visible(strings.TrimSuffix(line, "\n"))); err != nil {
					return err
				}
			}
		}
		if !found {
			return &cli.Failure{
				Exit: cli.ExitNotFound, Code: wire.CodeNotFound, Message: fmt.Sprintf("no protocol lines of %q are stored here", names[0]),
				Hint: "Only coding agents on this machine have them, unless wire_log = false: orchestrator help real-agents",
			}
		}
		return nil
	})
}

func logs(a *cli.App, names []string, f logFlags) error {
	query, err := f.query(names, time.Now())
	if err != nil {
		return err
	}
	match, err := regexp.Compile(f.grep)
	if err != nil {
		return cli.UsageError(fmt.Sprintf("--grep is not a regular expression: %v", err), `Escape literal characters: --grep '\[1\]'`)
	}
	if err := checkRaw(a, f.raw); err != nil {
		return err
	}
	show := logPrinter{app: a, raw: f.raw, match: match, paint: a.Paint(a.Stdout), now: time.Now(), level: levelOf(f.level.Value)}
	return a.Stream("logs", query, f.follow, show.line)
}

// checkRaw returns an error for --raw on a terminal or with --json.
func checkRaw(a *cli.App, raw bool) error {
	switch {
	case raw && a.Flags.JSON:
		return cli.UsageError("--raw and --json cannot be combined", "Leave out one of them: the JSON has the original text")
	case raw && term.IsTerminal(a.Stdout):
		return cli.UsageError("--raw does not print to a terminal: the output could control it", "Redirect it: orchestrator logs --raw > FILE")
	}
	return nil
}

// query returns the query for the API. Without n the API returns all lines.
func (f *logFlags) query(names []string, now time.Time) (url.Values, error) {
	query := url.Values{}
	for _, name := range names {
		query.Add("agent", name)
	}
	usual := "all"
	if f.since == "" && f.until == "" && f.grep == "" {
		usual = "200"
	}
	n, err := cli.ParseCount(cmp.Or(f.last, usual), "lines", 0, -1)
	if err != nil {
		return nil, err
	}
	if n >= 0 {
		query.Set("n", strconv.Itoa(n))
	}
	if f.since != "" {
		at, err := cli.ParseTime("since", f.since, now)
		if err != nil {
			return nil, err
		}
		query.Set("after", object.Timestamp(at))
	}
	if f.until != "" {
		at, err := cli.ParseTime("until", f.until, now)
		if err != nil {
			return nil, err
		}
		query.Set("until", object.Timestamp(at))
	}
	if f.stream.Value != "" {
		query.Set("stream", f.stream.Value)
	}
	if f.follow {
		query.Set("follow", "true")
	}
	return query, nil
}

// A logPrinter prints log lines. The column of names only grows.
type logPrinter struct {
	app   *cli.App
	raw   bool
	match *regexp.Regexp
	paint term.Paint
	now   time.Time
	wide  int
	level int // lines below it are left out
}

// levels are the levels of event:log and of --level, in rising order.
var levels = []string{"info", "warn", "error"}

// levelOf returns the rank of a level. A plain line has the level info.
func levelOf(level string) int { return max(0, slices.Index(levels, level)) }

func (l *logPrinter) line(raw []byte) error {
	line, err := client.Decode[control.LogLine](raw)
	if err != nil {
		return err
	}
	if line.Missed > 0 && !l.app.Flags.JSON {
		l.app.Note("%s of %s are missing here: this reader is too slow", term.Count(int(line.Missed), "line"), wire.Visible(line.Agent))
	}
	switch {
	case !l.match.MatchString(line.Text), l.level > levelOf(line.Level):
		return nil
	case l.app.Flags.JSON:
		return l.app.PrintJSON(raw)
	case l.raw:
		return l.app.Print("%s\n", line.Text)
	case term.Redundant(&line):
		return nil
	}
	name := wire.Visible(line.Agent)
	l.wide = max(l.wide, term.Width(name))
	return l.app.Print("%s %s %s %s\n",
		l.paint.Dim(term.Clock(line.At, l.now, time.TimeOnly)),
		l.paint.Agent(name, term.Pad(name, l.wide)),
		l.mark(&line), term.EntryText(line.Level, line.Text, line.Context, l.paint))
}

// mark returns the mark between the name and the line.
func (l *logPrinter) mark(line *control.LogLine) string {
	switch line.Stream {
	case control.StreamErr:
		return l.paint.Warn(":")
	case control.StreamOwn:
		if line.Trouble {
			return l.paint.Bad(term.OwnMark(line))
		}
		return l.paint.Dim(term.OwnMark(line))
	}
	return l.paint.Dim("|")
}

// eventFlags are the flags of events.
type eventFlags struct {
	follow bool
	last   string // how many, or all
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
  orchestrator events -n 20 -f               the last 20, then new ones
  orchestrator events -f --type 'agent.*'     the events of agents
  orchestrator events --task 91c0            the history of a task
  orchestrator events --since 412 --json      all after number 412
  orchestrator events --since 10m --agent coder`,
		Args:              cli.ArgCount(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return showEvents(a, f) },
	}
	set := verb.Flags()
	set.BoolVarP(&f.follow, "follow", "f", false, "continue with new events until Ctrl-C")
	set.StringVarP(&f.last, "lines", "n", "all", "only the last `N` events")
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
			id, err := task.NewFinder(a, d).ID(ctx, f.task)
			query.Set("task", id)
			return err
		})
		if err != nil {
			return err
		}
	}
	show := eventPrinter{app: a, paint: a.Paint(a.Stdout), now: time.Now(), who: len("orchestrator"), kind: len(events.QuestionAnswered)}
	n, err := cli.ParseCount(f.last, "events", 0, -1)
	if err != nil {
		return err
	}
	if n >= 0 {
		seq, err := showLast(a, query, n, show.line)
		if err != nil || !f.follow {
			return err
		}
		if seq > 0 {
			query.Set("since", strconv.FormatInt(seq, 10))
		}
	}
	if f.follow {
		query.Set("follow", "true")
	}
	return a.Stream("events", query, f.follow, show.line)
}

// showLast shows the last n events. It returns the number of the last one, or 0 without events.
func showLast(a *cli.App, query url.Values, n int, show func([]byte) error) (seq int64, err error) {
	var last [][]byte // a ring once it has n
	var latest []byte
	seen := 0
	err = a.EachLine("events", query, false, func(raw []byte) error {
		latest = bytes.Clone(raw)
		if len(last) < n {
			last = append(last, latest)
		} else if n > 0 {
			last[seen%n] = latest
		}
		seen++
		return nil
	})
	if err != nil || seen == 0 {
		return 0, err
	}
	for i := range last {
		if err := show(last[(seen+i)%len(last)]); err != nil {
			return 0, err
		}
	}
	event, err := client.Decode[wire.Event](latest)
	return event.Seq, err
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
		return e.app.PrintJSON(raw)
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
	text, below := term.FirstAndLast(event.Text)
	if err := e.row(strconv.FormatInt(event.Seq, 10), at, event.Agent, wire.Visible(who), wire.Visible(event.Kind), text); err != nil {
		return err
	}
	for _, line := range below { // of the output of a failed command
		if err := e.app.Print("%s%s\n", strings.Repeat(" ", len("123456  ")+e.at+e.who+e.kind+len("      ")+2), e.paint.Dim(line)); err != nil {
			return err
		}
	}
	return nil
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
