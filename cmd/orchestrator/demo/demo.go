// Package demo is the built-in team of the program: it builds the website of a lighthouse, with a few real pages, in
// its own folder. It needs no model, no network, and no other program.
package demo

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/serve"
	"orchestrator/cmd/orchestrator/term"
)

// team is the file of the team. The program of its agents is play.
//
//go:embed demo.hcl
var team string

// Command returns the demo command.
func Command(a *cli.App) *cobra.Command {
	keep := ""
	verb := &cobra.Command{
		Use:   "demo",
		Short: "Run the built-in demo team",
		Long: `Runs a team of four agents for twenty seconds. It needs no model, no network and no other
program. The agents build the website of a lighthouse: an architect assigns tasks, a writer
crashes on purpose and its task goes back to the queue, a designer asks you a question, and a
reviewer checks every link. Type an answer, or let the question expire. Ctrl-C stops everything.

While it runs, open orchestrator ui in the browser, or orchestrator watch in another terminal.
The team works in a temporary folder, which is removed at the end. With --keep, its file and
the site stay.`,
		Example: `  orchestrator demo
  orchestrator demo --keep lighthouse    keep the team and its site`,
		Args: cli.ArgCount(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error { return run(a, keep) },
	}
	verb.Flags().StringVar(&keep, "keep", "", "keep the team and its site in the new folder `DIR`")
	verb.AddCommand(&cobra.Command{
		Use: "play ROLE [FLAG…]", Short: "Play a member of the team", Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return Play(context.Background(), args) },
	})
	return verb
}

// patience is how long the question waits for the person at a terminal.
const patience = "1m"

func run(a *cli.App, keep string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	dir, err := folder(a, keep)
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	if keep == "" {
		defer os.RemoveAll(dir)
	}
	file := filepath.Join(dir, "orchestrator.hcl")
	text := strings.Replace(team, "[\"orchestrator\", \"demo\", \"play\"]", fmt.Sprintf("[%q, \"demo\", \"play\"]", self), 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("writing the file of the team: %w", err)
	}
	a.Flags.Config, a.Unnamed = file, a.FindableAnywhere()
	if term.IsTerminal(a.Stdin) && term.IsTerminal(a.Stdout) && a.Getenv("ORC_VAR_patience") == "" {
		a.Flags.Vars = append([]string{"patience=" + patience}, a.Flags.Vars...)
	}
	a.Note("See it in the browser: orchestrator ui%[1]s     In another terminal: orchestrator watch%[1]s", a.Named())
	err = serve.UpUntilIdle(a, fmt.Sprintf("Browser: orchestrator ui%[1]s     Terminal: orchestrator watch%[1]s", a.Named()))
	if keep == "" {
		a.Note("Keep the team and its site next time: orchestrator demo --keep DIR")
	} else {
		a.Note("The team is %s, and its site %s.", term.OneLine(file), term.OneLine(filepath.Join(dir, ".orchestrator", "site", "index.html")))
	}
	return err
}

// folder makes the folder of the team.
func folder(a *cli.App, keep string) (string, error) {
	if keep == "" {
		return os.MkdirTemp("", cli.DemoPrefix)
	}
	return a.Path(keep), os.Mkdir(a.Path(keep), 0o700)
}
