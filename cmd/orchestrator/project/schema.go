package project

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
	"orchestrator/wire/line"
	"orchestrator/wire/object"
	"orchestrator/wire/schema"
	"orchestrator/wire/stdio"
)

// schemaList is the JSON answer of schema. It has the schemas themselves, so that
// references can be resolved by $id.
type schemaList struct {
	FormatVersion string         `json:"format_version"`
	Schemas       []listedSchema `json:"schemas"`
}

// schemaReply is the JSON answer of schema NAME.
type schemaReply struct {
	FormatVersion string `json:"format_version"`
	listedSchema
}

type listedSchema struct {
	Name   string   `json:"name"`
	Title  string   `json:"title"`
	Schema wire.Raw `json:"schema"`
}

// SchemaCommand returns the schema command.
func SchemaCommand(a *cli.App) *cobra.Command {
	var list, ofConfig bool
	var check string
	verb := &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Show the schemas of messages and check yours",
		Long: `Lists the messages and documents between agents and the orchestrator, or prints the
JSON Schema of one. The name of a message is its type; "submit-task" is short for
"request:submit-task".

--check reads lines as the orchestrator would. It prints every invalid message with its
place and the reason. Other lines are log lines and are valid; -v shows those that look
like a message.

--config prints the JSON Schema of the configuration file in its JSON form,
orchestrator.hcl.json, for editors: orchestrator help config.`,
		Example: `  orchestrator schema
  orchestrator schema --config > orchestrator.schema.json
  orchestrator schema submit-task > submit-task.json
  ./my-agent | orchestrator schema --check -     check its output`,
		Args: cli.ArgCount(0, 1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeSchemas(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(verb *cobra.Command, args []string) error {
			switch checks := verb.Flags().Changed("check"); {
			case ofConfig && (checks || list || len(args) > 0):
				return cli.UsageError("--config prints the schema of the file here, and cannot be combined with a file or a flag", "Usage: orchestrator schema --config")
			case ofConfig && a.Flags.JSON:
				return a.Document(schemaReply{FormatVersion: wire.FormatVersion, listedSchema: listedSchema{Name: "config", Title: "orchestrator.hcl.json", Schema: config.Schema}})
			case ofConfig:
				return a.Print("%s", config.Schema)
			case checks && (list || len(args) > 0):
				return cli.UsageError("--check takes no schema name: each message has its type", "Usage: orchestrator schema --check FILE")
			case checks:
				return checkMessages(a, check)
			case list && len(args) > 0:
				return cli.UsageError("--list and a name cannot be combined", "Leave one out")
			case len(args) > 0:
				return showSchema(a, args[0])
			}
			return listSchemas(a)
		},
	}
	verb.Flags().BoolVar(&list, "list", false, "list the schemas, as without a name")
	verb.Flags().BoolVar(&ofConfig, "config", false, "print the schema of the configuration file in its JSON form")
	verb.Flags().StringVar(&check, "check", "", "check the messages in `FILE`, or in stdin with -; exit 1 if one is invalid")
	return verb
}

// completeSchemas completes the names of schemas. Shells such as bash end a word at a
// colon, so it also offers the part after the colon if that is unique.
func completeSchemas() []cobra.Completion {
	var offered []cobra.Completion
	for _, name := range schema.Names() {
		title := listed(name).Title
		if _, short, ok := strings.Cut(name, ":"); ok {
			if full, err := schemaName(short); err == nil && full == name {
				offered = append(offered, cobra.CompletionWithDesc(short, title))
			}
		}
		offered = append(offered, cobra.CompletionWithDesc(name, title))
	}
	return offered
}

// listed returns an existing schema with its title.
func listed(name string) listedSchema {
	text, _ := schema.Text(name)
	var said struct {
		Title string `json:"title"`
	}
	_ = object.Decode(text, &said) // tested: every schema has one
	return listedSchema{Name: name, Title: said.Title, Schema: text}
}

func listSchemas(a *cli.App) error {
	answer := schemaList{FormatVersion: wire.FormatVersion}
	rows := make([][]term.Cell, 0, len(schema.Names()))
	for _, name := range schema.Names() {
		one := listed(name)
		answer.Schemas = append(answer.Schemas, one)
		row := []term.Cell{term.Text(name), term.Text(one.Title)}
		if a.Flags.Quiet {
			row = row[:1]
		}
		rows = append(rows, row)
	}
	if a.Flags.JSON {
		return a.Document(answer)
	}
	return a.Print("%s", term.Table(rows))
}

func showSchema(a *cli.App, word string) error {
	name, err := schemaName(word)
	if err != nil {
		return err
	}
	one := listed(name)
	if a.Flags.JSON {
		return a.Document(schemaReply{FormatVersion: wire.FormatVersion, listedSchema: one})
	}
	return a.Print("%s", one.Schema)
}

// schemaName returns the schema that a word names, by its full name or the part after the
// colon.
func schemaName(word string) (string, error) {
	names := schema.Names()
	if slices.Contains(names, word) {
		return word, nil
	}
	var found, known []string
	for _, name := range names {
		_, short, _ := strings.Cut(name, ":")
		switch {
		case short == word && word != "":
			found = append(found, name)
		case strings.Contains(word, ":") || short == "":
			known = append(known, name)
		default:
			known = append(known, short)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", &cli.Failure{
			Exit: cli.ExitNotFound, Code: wire.CodeNotFound,
			Message: fmt.Sprintf("schema %q does not exist%s", word, cli.DidYouMean(word, known)),
			Hint:    "List the schemas: orchestrator schema",
		}
	}
	return "", &cli.Failure{
		Exit: cli.ExitNotFound, Code: wire.CodeNotFound,
		Message: fmt.Sprintf("%q matches several schemas: %s", word, strings.Join(found, ", ")),
		Hint:    "Name one: orchestrator schema " + found[0],
	}
}

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
	Hint    string    `json:"hint,omitzero"` // a correct value
}

// A messageCheck checks lines one after the other.
type messageCheck struct {
	app    *cli.App
	reader stdio.Reader
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
	c := messageCheck{app: a, reader: stdio.Reader{Depth: CheckedDepth}}
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
		if err := c.app.Print("%s: valid\n", r.sizes()); err != nil {
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
