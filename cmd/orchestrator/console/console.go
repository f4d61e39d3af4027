// Package console prints the progress of a running team: lines of output and events, the rows at the
// bottom of a terminal, and at the end a summary and a report.
//
// A [Console] is the output of up, and a [Single] the output of run. Both only read the team.
package console

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/control"
	"orchestrator/wire/object"
)

// A Team is the view of a console on a running team. A supervisor.Supervisor is one.
type Team interface {
	Listen(lines bool) *output.Follower
	Dashboard(ctx context.Context, tasks, questions int) (supervisor.Dashboard, error)
	Left(most int) (tasks []wire.Task, open int)
	Unmerged() []wire.Task
	DroppedOutput() supervisor.DroppedOutput
	Seq() int64
	Stop(reason string)
}

// Options are the settings of a Console.
type Options struct {
	Team     Team
	Log      hclog.Logger
	Agents   []string                 // names of agents, for the width of their column
	JSON     bool                     // each line is a document, as with --json
	Output   bool                     // print the output of agents, not only events
	Pinned   string                   // stays visible below the rows of a terminal, or ""
	Volatile bool                     // the event log is lost at the end
	Hurry    <-chan struct{}          // closed near the end: output is no longer shown
	Signal   func(*wire.Event) string // the signal of an event for the person at the terminal, such as a bell

	// Messages returns the number of messages of agents, and the number of refused ones.
	Messages func() (heard, refused int64)
}

// A Console prints the output of agents and events, one line each, escaped and with the
// agent's name. Agents may have to wait for it.
//
// In the background it prints only events. Output is in the agents' log files, and a second
// copy would fill the disk.
type Console struct {
	hurry    <-chan struct{}
	signal   func(*wire.Event) string
	follower *output.Follower
	out      term.Outlet
	log      hclog.Logger
	paint    term.Paint
	json     bool
	quiet    bool
	tty      bool
	named    string    // the flags of commands for this team
	width    int       // width of the widest name so far
	unknown  string    // the last unregistered topic that was reported
	rows     *liveRows // the rows below the lines, or nil
	tally    *tally    // summary of events, or nil
}

// widest is the maximum width of the column of names.
const widest = 24

// New returns a console that follows the team from now on. It opens the rows at the bottom
// of the terminal.
func New(a *cli.App, o Options) *Console {
	c := &Console{
		hurry:    o.Hurry,
		signal:   o.Signal,
		follower: o.Team.Listen(o.Output && !a.Flags.Quiet),
		log:      o.Log,
		paint:    a.Paint(a.Stdout),
		json:     a.Flags.JSON || o.JSON,
		quiet:    a.Flags.Quiet,
		tty:      term.IsTerminal(a.Stdout),
		named:    a.Named(),
	}
	if !c.json && !c.quiet {
		c.tally = newTally(o)
	}
	c.out = term.Outlet{
		To:   a.Stdout,
		TTY:  c.tty,
		Note: c.note,
		OnError: func(err error) {
			o.Log.Warn("cannot write to stdout: counting lines until it works again", "error", err)
		},
		OnReaderGone: func() { o.Team.Stop("the reader of the output is gone") },
	}
	for _, name := range o.Agents {
		c.width = min(widest, max(c.width, len(name)))
	}
	if c.rows = openRows(a, o); c.rows != nil {
		c.out.To = c.rows.region
	} else if c.quiet {
		c.follower.Skip(calmKind)
	}
	return c
}

// Typed returns the lines that are typed in the rows at the bottom of the terminal, or nil
// without rows.
func (c *Console) Typed() <-chan string {
	if c.rows == nil {
		return nil
	}
	return c.rows.region.Typed()
}

// Close erases the rows and restores the terminal.
func (c *Console) Close() { c.rows.close() }

// Drain waits until all lines so far are printed, at most patience, and erases the rows. Another
// program goes on with the terminal.
func (c *Console) Drain(patience time.Duration) {
	for end := time.Now().Add(patience); !c.follower.IsDrained() && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	c.rows.close()
}

// gathering is how long lines are collected before they are written above the rows. Each
// write redraws the rows.
const gathering = 20 * time.Millisecond

// Run prints lines until the team has ended.
func (c *Console) Run() {
	defer c.rows.close() // also after a panic
	var spare output.Backlog
	for c.follower.Next(context.Background(), &spare, c.show) {
		if c.rows != nil {
			c.gather(&spare)
		}
		c.out.Flush()
	}
	c.rows.close()
	c.summary()
	if missing := c.out.Close(); missing > 0 {
		c.log.Warn("some output could not be written to stdout", "missing_lines", missing)
	}
}

// gather collects the lines of the next moment.
func (c *Console) gather(spare *output.Backlog) {
	ctx, enough := context.WithTimeout(context.Background(), gathering)
	defer enough()
	for ctx.Err() == nil && c.follower.Next(ctx, spare, c.show) {
	}
}

// summary prints the summary at the end.
func (c *Console) summary() {
	if c.tally != nil {
		_, _ = c.out.WriteString(c.tally.text(c.paint))
	}
}

// note returns the line that replaces lines that could not be written.
func (c *Console) note(missing int64) []byte {
	text := fmt.Sprintf("%d lines before this one could not be written", missing)
	if c.json {
		line, _ := object.Encode(control.LogLine{At: object.Timestamp(time.Now()), Stream: control.StreamOwn, Text: text, Missed: missing})
		return append(line, '\n')
	}
	return []byte(c.paint.Dim(time.Now().Format(time.TimeOnly)) + " " + c.paint.Warn(text) + "\n")
}

func (c *Console) show(l output.Line) {
	if c.out.Len() >= term.MaxOutlet {
		c.out.Flush()
	}
	c.tally.see(l)
	select {
	case <-c.hurry: // the remaining output is in the log files
		if l.Event == nil {
			return
		}
	default:
	}
	if l.Event != nil {
		c.rows.happened()
		if c.tty && !c.json && c.signal != nil {
			_, _ = c.out.WriteString(c.signal(l.Event))
		}
	}
	switch {
	case c.quiet && l.Event != nil && calm(l.Event):
	case c.json:
		c.document(l)
	case l.Event != nil:
		c.event(l)
	default:
		if l.Missed > 0 {
			c.put(l.At, l.Agent, c.paint.Warn("!"), c.paint.Dim(fmt.Sprintf("%d lines are not shown here. All lines: orchestrator logs %s", l.Missed, l.Agent)))
		}
		mark := "|"
		if l.Stream == control.StreamErr {
			mark = c.paint.Warn(":")
		}
		c.put(l.At, l.Agent, mark, "")
		if entry, ok := activity.LogOf(l.Text); ok && l.Stream == control.StreamOut {
			_, _ = c.out.WriteString(term.EntryText(entry.Level, entry.Message, entry.Context, c.paint))
		} else {
			_, _ = c.out.Write(wire.AppendVisible(c.out.AvailableBuffer(), l.Text))
		}
		_ = c.out.WriteByte('\n')
	}
}

// put writes the beginning of a line, and its text if there is one. A line that is not
// about an agent has no name.
func (c *Console) put(at time.Time, agent, mark, text string) {
	c.width = min(widest, max(c.width, len(agent)))
	_, _ = c.out.WriteString(c.paint.Dim(at.Local().Format(time.TimeOnly)))
	if agent != "" {
		_, _ = fmt.Fprintf(&c.out, " %s %s ", c.paint.Agent(agent, fmt.Sprintf("%-*s", c.width, agent)), mark)
	} else {
		_ = c.out.WriteByte(' ')
		if mark != "" {
			_, _ = c.out.WriteString(mark + " ")
		}
	}
	if text != "" {
		_, _ = c.out.WriteString(text + "\n")
	}
}

// document writes an event or a line of output as JSON.
func (c *Console) document(l output.Line) {
	var text []byte
	var err error
	if l.Event != nil {
		text, err = object.Encode(l.Event)
	} else {
		text, err = object.Encode(l.Document())
	}
	if err == nil && len(text) > 0 {
		_, _ = c.out.Write(append(wire.AppendVisibleJSON(nil, text), '\n'))
	}
}

// stillFor is the silence after which Standby prints the reason for the wait of the team.
const stillFor = 10 * time.Second

// Standby prints the reason for the wait of a team that ends with its work, as long as no event
// arrives. It is used without rows at the bottom of a terminal, and ends with ctx.
func Standby(ctx context.Context, a *cli.App, t Team) {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	heard, since, said := t.Seq(), time.Now(), false
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		if seq := t.Seq(); seq != heard {
			heard, since, said = seq, time.Now(), false
		}
		if said || time.Since(since) < stillFor {
			continue
		}
		said = true
		scene, err := t.Dashboard(ctx, 1, 1)
		if err != nil {
			return
		}
		if words := standbyWords(a.Named(), scene.Tasks, scene.Questions, scene.Status.Agents); words != "" {
			a.Note("%s", words)
		}
	}
}

// standbyWords returns the first thing that the team waits for, or "" if an agent works.
func standbyWords(named string, tasks []wire.Task, questions []wire.Question, agents []control.AgentView) string {
	switch {
	case len(questions) > 0:
		return "Waiting for an answer: orchestrator inbox answer " + wire.Visible(questions[0].ID) + " VALUE" + named
	case len(tasks) == 0:
		for i := range agents {
			if a := &agents[i]; a.Awaited != "" {
				return "Waiting for " + term.OneLine(a.Name) + " to end: it " + a.Awaited
			}
		}
		return ""
	case tasks[0].State == wire.TaskRunning:
		return ""
	}
	first := &tasks[0]
	return "Waiting for " + term.TaskLabel(first.ID, first.Name) + ", " + wire.Visible(string(first.State)) +
		": orchestrator why " + term.ID(first.ID)
}
