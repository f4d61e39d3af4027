package serve

import (
	"fmt"
	"io"

	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/line"
)

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
		shown = fmt.Appendf(shown, "… (%s in all)", term.Bytes(line.Size))
	}
	_, err := d.to.Write(append(shown, '\n'))
	return err
}
