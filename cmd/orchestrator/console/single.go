package console

import (
	"bufio"
	"context"
	"fmt"
	"io"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/output"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/control"
	"orchestrator/wire/events"
	"orchestrator/wire/object"
)

// A Single prints the output of the one agent of run, stdout to stdout and stderr to
// stderr, and problems. The output is the answer of run, so a line that cannot be written
// is a failure.
type Single struct {
	// Valid when Run has returned:
	Unread bool // the reader of stdout is gone
	Broken bool // a line could not be written

	app      *cli.App
	options  SingleOptions
	follower *output.Follower
	out, err sink
}

// SingleOptions are the settings of a Single.
type SingleOptions struct {
	Team     Team
	Agent    string
	StateDir string
	Scripted bool // there are scripted answers
}

// A sink is stdout or stderr. It drops everything after the first failed write, so that the
// output ends there and has no gap.
type sink struct {
	*bufio.Writer
	to     io.Writer
	name   string
	tty    bool
	failed bool
}

func newSink(to io.Writer, name string) sink {
	return sink{Writer: bufio.NewWriter(to), to: to, name: name, tty: term.IsTerminal(to)}
}

// NewSingle returns a Single that follows the agent from now on.
func NewSingle(a *cli.App, o SingleOptions) *Single {
	return &Single{
		app: a, options: o, follower: o.Team.Listen(true), out: newSink(a.Stdout, "stdout"), err: newSink(a.Stderr, "stderr"),
	}
}

// Run prints lines until the team has ended.
func (s *Single) Run() {
	var spare output.Backlog
	for s.follower.Next(context.Background(), &spare, s.show) {
		s.flush(&s.out)
		s.flush(&s.err)
	}
}

// flush writes the buffer of a stream. The first error is printed, or stops the command if
// the reader is gone.
func (s *Single) flush(to *sink) {
	err := to.Flush()
	if err == nil || to.failed {
		return
	}
	to.failed = true
	if term.ReaderGone(err, to.tty) {
		if !s.Unread {
			s.Unread = true
			s.options.Team.Stop("the reader of the output is gone")
		}
		return
	}
	s.Broken = true
	trouble := cli.Failure{
		Message: "cannot write the output of " + s.options.Agent + " to " + to.name + ": " + err.Error(),
		Because: []string{"Its further output is lost."},
	}
	trouble.Print(s.app.Stderr, s.app.Paint(s.app.Stderr))
}

func (s *Single) show(l output.Line) {
	if l.Event != nil {
		s.event(l.Event)
		return
	}
	if s.app.Flags.JSON {
		if text, err := object.Encode(l.Document()); err == nil {
			_, _ = s.out.Write(append(wire.AppendVisibleJSON(nil, text), '\n'))
		}
		return
	}
	if l.Missed > 0 {
		s.missed(l.Missed)
	}
	to, other := &s.out, &s.err
	if l.Stream == control.StreamErr {
		to, other = other, to
	}
	s.flush(other) // keeps the order if both are one terminal
	if entry, ok := activity.LogOf(l.Text); ok && l.Stream == control.StreamOut {
		_, _ = to.WriteString(term.EntryText(entry.Level, entry.Message, entry.Context, s.app.Paint(to.to)) + "\n")
		return
	}
	if to.tty {
		_, _ = to.Write(wire.AppendVisible(nil, l.Text))
	} else {
		_, _ = to.Write(l.Text)
	}
	_ = to.WriteByte('\n')
}

func (s *Single) event(e *wire.Event) {
	switch e.Kind {
	case events.AgentLeftOver, events.AgentHeldOpen, events.AgentLineCut, events.AgentStalled, events.AgentRefused:
		s.say("%s", wire.Visible(e.Text))
	case events.QuestionAsked, events.TaskHelpWanted:
		s.say("asks %s", wire.Visible(e.Text))
		if !s.options.Scripted {
			s.say("%s", s.howToAnswer(e))
		}
	}
}

// howToAnswer returns how to answer a question, and how long it waits.
func (s *Single) howToAnswer(e *wire.Event) string {
	id, deadline := asked(e)
	how := fmt.Sprintf("answer it: orchestrator inbox answer %s ANSWER --state-dir %s", wire.Visible(id), term.Word(s.options.StateDir))
	if rest, ok := term.Between(e.At, deadline); ok {
		how += "     It waits " + term.Duration(rest)
	}
	return how
}

// missed prints a note about missing lines.
func (s *Single) missed(lines int64) {
	s.flush(&s.out)
	s.flush(&s.err)
	if !s.Unread {
		s.say("output was not read in time, so it is incomplete here: %s missing", term.Count(int(lines), "line"))
	}
}

// say prints a note after the lines that were written before.
func (s *Single) say(format string, args ...any) {
	s.flush(&s.out)
	s.flush(&s.err)
	s.app.Note("%s: "+format, append([]any{s.options.Agent}, args...)...)
}
