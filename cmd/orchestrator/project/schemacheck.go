package project

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/line"
)

// The limits of a line, as in a configuration without settings for them.
const (
	checkedLine  = 16 << 20
	CheckedDepth = 64
)

const (
	// maxFindings is how many findings a document holds. All are counted, but there may be
	// more than fit into memory.
	maxFindings = 1000
	// maxExcuse is how much of a message's own text is repeated.
	maxExcuse = 400
)

// checked is the JSON answer of schema --check.
type checked struct {
	FormatVersion string    `json:"format_version"`
	OK            bool      `json:"ok"`
	Messages      int64     `json:"messages"`
	LogLines      int64     `json:"log_lines"`
	WrongCount    int64     `json:"wrong_count"`
	Wrong         []finding `json:"wrong"`          // the first of them
	DoubtfulCount int64     `json:"doubtful_count"` // log lines that look like a message
	Doubtful      []finding `json:"doubtful"`
}

// A finding is a line and a remark on it.
type finding struct {
	Line    int64     `json:"line"`
	Type    string    `json:"type,omitzero"`
	Code    wire.Code `json:"code,omitzero"`
	Pointer string    `json:"pointer,omitzero"`
	Message string    `json:"message"`
	Hint    string    `json:"hint,omitzero"` // what would be right
}

// A messageCheck checks lines one after the other.
type messageCheck struct {
	app    *cli.App
	reader wire.Reader
	line   int64
	result checked
}

func checkMessages(a *cli.App, name string) error {
	source := a.Stdin
	if name != "-" {
		file, err := os.Open(a.Path(name))
		if err != nil {
			return cannotRead(name, err)
		}
		defer file.Close()
		source = file
	}
	c := messageCheck{app: a, reader: wire.Reader{Depth: CheckedDepth}}
	c.result.FormatVersion = wire.FormatVersion
	if err := c.read(source, name); err != nil {
		return err
	}
	return c.conclude()
}

func cannotRead(name string, err error) error {
	if name == "-" {
		name = "stdin"
	}
	return &cli.Failure{Exit: cli.ExitNo, Code: cli.CodeFailed, Message: "cannot read " + name, Because: []string{rootOf(err)}}
}

// read checks the lines of source. It prints findings at once, because the source may be an
// agent that runs for days.
func (c *messageCheck) read(source io.Reader, name string) error {
	lines := line.NewSplitter(checkedLine)
	chunk := make([]byte, 64<<10)
	for {
		n, failed := source.Read(chunk)
		lines.Feed(chunk[:n])
		for line, ok := lines.Next(); ok; line, ok = lines.Next() {
			if err := c.see(line); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(failed, io.EOF):
			if line, ok := lines.Rest(); ok {
				return c.see(line)
			}
			return nil
		case failed != nil:
			return cannotRead(name, failed)
		}
	}
}

// see checks a line and prints a finding.
func (c *messageCheck) see(line line.Line) error {
	c.line++
	r := &c.result
	if line.Cut {
		return c.doubt(fmt.Sprintf("it is longer than %s", term.Bytes(checkedLine)))
	}
	switch m := c.reader.Check(line.Text).(type) {
	case wire.Log:
		if m.Why != "" {
			return c.doubt(m.Why)
		}
		r.LogLines++
	case *wire.Refused:
		return c.wrong(m.Type, m.Err)
	case *wire.Answered:
		if m.Err != nil {
			return c.wrong(m.Method, m.Err)
		}
		r.Messages++
	default:
		r.Messages++
	}
	return nil
}

// wrong counts an invalid message.
func (c *messageCheck) wrong(kind string, err *wire.Error) error {
	r := &c.result
	r.Messages++
	r.WrongCount++
	pointer, _ := err.Details["pointer"].(string)
	f := finding{
		Line: c.line, Type: excerpt(kind), Code: err.Code, Pointer: excerpt(pointer),
		Message: excerpt(err.Message), Hint: err.Hint,
	}
	if len(r.Wrong) < maxFindings {
		r.Wrong = append(r.Wrong, f)
	}
	return c.say(f)
}

// doubt counts a log line that an agent may have meant as a message.
func (c *messageCheck) doubt(why string) error {
	r := &c.result
	r.LogLines++
	r.DoubtfulCount++
	f := finding{Line: c.line, Message: excerpt(why)}
	if len(r.Doubtful) < maxFindings {
		r.Doubtful = append(r.Doubtful, f)
	}
	if !c.app.Flags.Verbose {
		return nil
	}
	f.Type = "log"
	return c.say(f)
}

func (c *messageCheck) say(f finding) error {
	if c.app.Flags.JSON {
		return nil
	}
	said := fmt.Sprintf("line %d  %s  ", f.Line, f.Type)
	if f.Pointer != "" {
		said += f.Pointer + ": "
	}
	said += f.Message
	if f.Hint != "" {
		said += " (" + f.Hint + ")"
	}
	return c.app.Print("%s\n", wire.Visible(said))
}

// conclude prints the result.
func (c *messageCheck) conclude() error {
	r := &c.result
	r.OK = r.WrongCount == 0
	switch {
	case c.app.Flags.JSON:
		if err := c.app.Document(r); err != nil {
			return err
		}
	case r.OK && !c.app.Flags.Quiet:
		if err := c.app.Print("%s: fine\n", r.sizes()); err != nil {
			return err
		}
	}
	if !r.OK {
		return cli.ExitWith(cli.ExitNo)
	}
	return nil
}

// sizes returns the number of messages and log lines.
func (c *checked) sizes() string {
	said := term.Count(int(c.Messages), "message") + ", " + term.Count(int(c.LogLines), "log line")
	switch {
	case c.DoubtfulCount == 1:
		said += " (one looks like a message: see it with -v)"
	case c.DoubtfulCount > 1:
		said += fmt.Sprintf(" (%d look like messages: see them with -v)", c.DoubtfulCount)
	}
	return said
}

// excerpt returns the beginning of a text.
func excerpt(text string) string {
	if len(text) <= maxExcuse {
		return text
	}
	end := maxExcuse
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
