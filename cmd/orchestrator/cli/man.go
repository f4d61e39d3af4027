package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"orchestrator/cmd/orchestrator/help"
	"orchestrator/cmd/orchestrator/term"
)

// manCommand returns the man command.
func manCommand(a *App) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual as man pages",
		Long: `Writes the manual as man pages into a folder: orchestrator.1, one page for each command,
such as orchestrator-task-add.1, and one for each topic, such as orchestrator-help-config.1.
Folders that man searches are printed by manpath.`,
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

// manDate is that of all pages, so that equal programs write equal pages.
var manDate = time.Date(2026, time.November, 28, 0, 0, 0, 0, time.UTC)

// writeMan writes the pages and returns their number.
func writeMan(root *cobra.Command, dir string) (n int, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, err
	}
	root.DisableAutoGenTag = true
	header := doc.GenManHeader{Section: "1", Source: "orchestrator " + Version, Manual: "orchestrator", Date: &manDate}
	if err := doc.GenManTree(root, &header, dir); err != nil {
		return 0, err
	}
	for _, chapter := range help.Chapters {
		text, err := help.ReadTopic(chapter.Topic)
		if err != nil {
			return 0, err
		}
		name := "orchestrator-help-" + chapter.Topic
		page := fmt.Sprintf(".TH %q 1 %q %q orchestrator\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n%s.fi\n",
			strings.ToUpper(name), manDate.Format("Jan 2006"), header.Source, name, chapter.About, roff(term.Readable(text, false, 72)))
		if err := os.WriteFile(filepath.Join(dir, name+".1"), []byte(page), 0o666); err != nil {
			return 0, err
		}
	}
	entries, err := os.ReadDir(dir)
	return len(entries), err
}

// roff returns a text with which a man page shows it as it is. A line that begins with a dot would be a request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`).Replace(text)
	return strings.ReplaceAll("\n"+text, "\n.", "\n\\&.")[1:]
}
