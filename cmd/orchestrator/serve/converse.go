package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/line"
	"orchestrator/wire/object"
)

// A conversation is the exchange over a pipe, on the side of the joined program. Two
// goroutines copy the lines, one for each direction. A read of stdin cannot be interrupted,
// so its goroutine ends with the program.
type conversation struct {
	app    *cli.App
	link   *client.Link
	target client.Target
	echo   *display // shows sent lines; may be nil

	fed     chan struct{} // closed when stdin is no longer copied
	goodbye chan struct{} // closed when the orchestrator has sent its last line
	heard   chan error    // why hear has ended
}

// converse copies lines until one side ends. It first prints the welcome lines for a
// person.
func converse(a *cli.App, l *client.Link, to client.Target, f pipeFlags, welcome ...string) error {
	defer l.Close()
	c := &conversation{
		app: a, link: l, target: to,
		fed: make(chan struct{}), goodbye: make(chan struct{}), heard: make(chan error, 1),
	}
	if f.echo {
		c.echo = newEcho(a.Stderr)
	}
	signals, deaf := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	// A closed pipe or a full disk must only fail a write: an orchestrator of this process may
	// have to be stopped first.
	signal.Notify(deaf, syscall.SIGPIPE, syscall.SIGXFSZ)
	pipeTalk(a, welcome...)
	if term.IsTerminal(a.Stdin) {
		pipeTalk(a, `Type one JSON object per line, for example {"type":"request:query-agents"}. Ctrl-D ends the input.`)
	}
	go c.feed()
	go c.hear()
	return c.await(signals)
}

// await waits for the end.
func (c *conversation) await(signals <-chan os.Signal) error {
	var timeout, slow <-chan time.Time
	if limit := c.app.Flags.Timeout.Duration; limit > 0 {
		timeout = time.After(limit)
	}
	fed, goodbye := c.fed, c.goodbye
	leaving, over, first := false, false, time.Time{}
	for {
		select {
		case s := <-signals:
			now := time.Now()
			switch {
			case !first.IsZero() && now.Sub(first) < cli.SignalEcho:
				continue
			case leaving:
				return cli.ExitWith(128 + int(s.(syscall.Signal)))
			}
			c.link.Leave()
			leaving, first = true, now
		case <-timeout:
			return c.app.TimedOut()
		case <-slow:
			c.app.Note("Waiting for open answers. Ctrl-C leaves at once.")
		case <-fed:
			fed, leaving = nil, true
		case <-goodbye:
			goodbye, over = nil, true
			c.closeStdout()
		case err := <-c.heard:
			return err
		}
		switch {
		case over && (leaving || !c.mayAnswer()):
			return nil
		case leaving && slow == nil:
			slow = time.After(cli.WaitShownAfter)
		}
	}
}

// mayAnswer reports whether the program that reads stdout may still answer the last line.
// That program may also write stdin. The orchestrator closes the connection after a while.
func (c *conversation) mayAnswer() bool {
	out, ok := c.app.Stdout.(*os.File)
	if !ok || term.IsTerminal(c.app.Stdin) {
		return false
	}
	info, err := out.Stat()
	return err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0 // it may be closed already
}

// closeStdout closes stdout if a program reads it.
func (c *conversation) closeStdout() {
	if out, ok := c.app.Stdout.(*os.File); ok && c.mayAnswer() {
		_ = out.Close()
	}
}

// feed copies stdin to the link, and closes it for writing at the end.
func (c *conversation) feed() {
	defer close(c.fed)
	var to io.Writer = c.link
	if c.echo != nil {
		to = io.MultiWriter(c.echo, c.link)
	}
	if term.IsTerminal(c.app.Stdin) {
		to = &stdinAnswers{to: to}
	}
	_, _ = io.Copy(to, c.app.Stdin) // hear reports an error of the connection
	c.echo.end()
	c.link.Leave()
}

// hear copies the lines of the orchestrator to stdout until the farewell or the end of the
// connection.
func (c *conversation) hear() {
	var out io.Writer = c.app.Stdout
	if term.IsTerminal(out) {
		out = newDisplay(out)
	}
	chunk := make([]byte, 64<<10)
	last := byte('\n')
	for {
		n, err := c.link.Read(chunk)
		text, over := beforeFarewell(chunk[:n], last)
		if n > 0 {
			last = chunk[n-1]
		}
		if _, failed := out.Write(text); failed != nil {
			c.heard <- unwritten(failed, term.IsTerminal(c.app.Stdout))
			return
		}
		if over {
			close(c.goodbye)
			_, _ = io.Copy(io.Discard, c.link) // wait until the orchestrator closes it
			c.heard <- nil
			return
		}
		if err != nil {
			c.heard <- c.lost()
			return
		}
	}
}

// beforeFarewell returns the text before the farewell, and reports whether there is one.
// last is the byte before text.
func beforeFarewell(text []byte, last byte) (before []byte, over bool) {
	for at := 0; ; {
		next := bytes.IndexByte(text[at:], wire.Farewell[0])
		if next < 0 {
			return text, false
		}
		at += next
		if at == 0 && last == '\n' || at > 0 && text[at-1] == '\n' {
			return text[:at], true
		}
		at++
	}
}

// lost returns the failure for a connection that ended without a farewell.
func (c *conversation) lost() *cli.Failure {
	return &cli.Failure{
		Exit: cli.ExitNotRunning, Code: cli.CodeNotRunning,
		Message: "the orchestrator of " + c.target.Subject + " has ended or closed this pipe",
		Because: []string{"Requests without an answer may or may not have been processed."},
		Hint:    "Check whether it is running: orchestrator status",
	}
}

// unwritten returns the failure for an error of stdout.
func unwritten(err error, terminal bool) *cli.Failure {
	if term.ReaderGone(err, terminal) {
		return cli.ExitWith(cli.ExitBrokenPipe)
	}
	if failed, ok := errors.AsType[*os.PathError](err); ok {
		err = failed.Err
	}
	return &cli.Failure{Exit: cli.ExitNo, Code: cli.CodeFailed, Message: fmt.Sprintf("cannot write answers to stdout: %v", err)}
}

const (
	// maxShown is the maximum length of a line on a terminal.
	maxShown = 1 << 20
	// maxEcho is the maximum length of a sent line that is shown.
	maxEcho = 8 << 10
)

// A display writes lines for people: escaped for a terminal, with a mark, and cut to a
// maximum length.
type display struct {
	to    io.Writer
	mark  string
	plain bool // not a terminal: lines are not escaped
	lines *line.Splitter
}

// newDisplay returns a display for received lines.
func newDisplay(terminal io.Writer) *display {
	return &display{to: terminal, lines: line.NewSplitter(maxShown)}
}

// newEcho returns a display for sent lines.
func newEcho(to io.Writer) *display {
	return &display{to: to, mark: "> ", plain: !term.IsTerminal(to), lines: line.NewSplitter(maxEcho)}
}

// Write shows the lines that text completes.
func (d *display) Write(text []byte) (int, error) {
	d.lines.Feed(text)
	for line, ok := d.lines.Next(); ok; line, ok = d.lines.Next() {
		if err := d.show(line); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}

// end shows a last line without a line end. It has no effect on nil.
func (d *display) end() {
	if d == nil {
		return
	}
	if line, ok := d.lines.Rest(); ok {
		_ = d.show(line)
	}
}

func (d *display) show(line line.Line) error {
	shown := []byte(d.mark)
	if d.plain {
		shown = append(shown, line.Text...)
	} else {
		shown = wire.AppendVisible(shown, line.Text)
	}
	if line.Cut {
		shown = fmt.Appendf(shown, "… (%s in total)", term.Bytes(line.Size))
	}
	_, err := d.to.Write(append(shown, '\n'))
	return err
}

// stdinAnswers copies typed lines and completes requests and events with an id and a
// timestamp. A terminal delivers whole lines.
type stdinAnswers struct {
	to    io.Writer
	typed int // messages that were given an id
}

func (s *stdinAnswers) Write(text []byte) (int, error) {
	for line := range bytes.Lines(text) {
		if _, err := s.to.Write(s.complete(line, time.Now())); err != nil {
			return 0, err
		}
	}
	return len(text), nil
}

// complete adds the fields that a message lacks. It returns other lines unchanged.
func (s *stdinAnswers) complete(line []byte, now time.Time) []byte {
	trimmed := bytes.TrimSpace(line)
	var given struct {
		Type      string   `json:"type"`
		ID        wire.Raw `json:"id"`
		Timestamp wire.Raw `json:"timestamp"`
	}
	if object.Decode(trimmed, &given) != nil || !strings.HasPrefix(given.Type, "request:") && !strings.HasPrefix(given.Type, "event:") {
		return line
	}
	var more []byte
	if given.ID == nil {
		s.typed++
		more = fmt.Appendf(more, `"id":"%d",`, s.typed)
	}
	if given.Timestamp == nil {
		more = fmt.Appendf(more, `"timestamp":%q,`, object.Timestamp(now))
	}
	return fmt.Appendf(nil, "{%s%s\n", more, trimmed[1:])
}
