package serve

import (
	"fmt"
	"io"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/line"
)

const (
	// longestShown bounds a line on a terminal. Longer ones are not read
	// there.
	longestShown = 1 << 20
	// longestEcho is how much is shown of a line that is sent.
	longestEcho = 8 << 10
)

// display writes lines to a terminal, or to a person elsewhere: without what a
// terminal would obey, each behind a mark, and cut if it is longer than a person
// reads.
type display struct {
	to    io.Writer
	mark  string
	plain bool // there is no terminal: lines are as they are
	lines *line.Splitter
}

// newDisplay shows what is heard.
func newDisplay(terminal io.Writer) *display {
	return &display{to: terminal, lines: line.NewSplitter(longestShown)}
}

// newEcho shows what is sent.
func newEcho(to io.Writer) *display {
	return &display{to: to, mark: "> ", plain: !term.IsTerminal(to), lines: line.NewSplitter(longestEcho)}
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

// end shows what has no end. A nil display shows nothing.
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
		shown = fmt.Appendf(shown, "… (%s in all)", term.Bytes(line.Size))
	}
	_, err := d.to.Write(append(shown, '\n'))
	return err
}
