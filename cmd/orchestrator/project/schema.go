package project

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/object"
	"orchestrator/wire/schema"
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
	var list bool
	var check string
	verb := &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Show the schemas of messages and check yours",
		Long: `Lists the messages and documents between agents and the orchestrator, or prints the
JSON Schema of one. The name of a message is its type; "submit-task" is short for
"request:submit-task".

--check reads lines as the orchestrator would. It prints every invalid message with its
place and the reason. Other lines are log lines and are valid; -v shows those that look
like a message.`,
		Example: `  orchestrator schema
  orchestrator schema submit-task > submit-task.json
  ./my-agent | orchestrator schema --check -     is what it says right?`,
		Args: cli.ArgCount(0, 1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeSchemas(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(verb *cobra.Command, args []string) error {
			switch checks := verb.Flags().Changed("check"); {
			case checks && (list || len(args) > 0):
				return cli.UsageError("--check stands alone: the messages say themselves what they are", "Write it as: orchestrator schema --check FILE")
			case checks:
				return checkMessages(a, check)
			case list && len(args) > 0:
				return cli.UsageError("--list and a name exclude each other", "Leave one out")
			case len(args) > 0:
				return showSchema(a, args[0])
			}
			return listSchemas(a)
		},
	}
	verb.Flags().BoolVar(&list, "list", false, "list the schemas, as without a name")
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
			Message: fmt.Sprintf("there is no schema %q%s", word, cli.DidYouMean(word, known)),
			Hint:    "See what there is: orchestrator schema",
		}
	}
	return "", &cli.Failure{
		Exit: cli.ExitNotFound, Code: wire.CodeNotFound,
		Message: fmt.Sprintf("%q fits several schemas: %s", word, strings.Join(found, ", ")),
		Hint:    "Say which: orchestrator schema " + found[0],
	}
}
