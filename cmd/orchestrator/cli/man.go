package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/build"
	"orchestrator/cmd/orchestrator/help"
	"orchestrator/cmd/orchestrator/term"
)

// manCommand returns the man command.
func (a *App) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual as man pages",
		Long: `Writes the manual as man pages into a folder: orchestrator.1, one page for each command, for
example orchestrator-task-add.1, and one for each topic, for example
orchestrator-help-config.1. To find a folder that man searches, run manpath: pages of
section 1 belong into the folder man1 in any of its folders.`,
		Example: "  orchestrator man ~/.local/share/man/man1\n  man orchestrator-task-add",
		Args:    ArgCount(1, 1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(verb *cobra.Command, args []string) error {
			n, err := writeMan(verb.Root(), a.Path(args[0]))
			if err != nil {
				return &Failure{Exit: ExitNo, Code: CodeFailed, Message: "cannot write the manual: " + err.Error()}
			}
			if a.Flags.Quiet {
				return nil
			}
			return a.Print("%s in %s\n", term.Count(n, "page"), args[0])
		},
	}
}

// manWidth is the width of the text of a page. Man indents it on 80 columns.
const manWidth = 72

// writeMan writes the pages and returns their number. Equal programs write equal pages, so they have no date.
func writeMan(root *cobra.Command, dir string) (n int, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, err
	}
	write := func(name, about, text string) error {
		n++
		page := fmt.Sprintf(".TH %q 1 \"\" %q orchestrator\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n%s\n.fi\n",
			strings.ToUpper(name), "orchestrator "+build.Version, roff(name), roff(about), roff(strings.TrimRight(text, "\n")))
		return os.WriteFile(filepath.Join(dir, name+".1"), []byte(page), 0o666)
	}
	var each func(verb *cobra.Command) error
	each = func(verb *cobra.Command) error {
		if verb.Hidden {
			return nil
		}
		verb.InitDefaultHelpFlag()
		text := Overview(root, false)
		if verb != root {
			text = verbHelp(verb, false, manWidth)
		}
		if err := write(strings.ReplaceAll(verb.CommandPath(), " ", "-"), verb.Short, text); err != nil {
			return err
		}
		for _, below := range verb.Commands() {
			if err := each(below); err != nil {
				return err
			}
		}
		return nil
	}
	if err := each(root); err != nil {
		return n, err
	}
	for _, chapter := range help.Chapters {
		text, err := help.ReadTopic(chapter.Topic)
		if err == nil {
			err = write("orchestrator-help-"+chapter.Topic, chapter.About, term.Readable(help.WithSections(chapter.Topic, text), false, manWidth))
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// roff escapes a text for a man page. A line that begins with a dot would be a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`).Replace(text)
	return strings.ReplaceAll("\n"+text, "\n.", "\n\\&.")[1:]
}
