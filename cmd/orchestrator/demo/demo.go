// Package demo is a team that is inside the program: it builds the web site of a lighthouse, with a few real pages, in
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

// team is the file of the team, in which the program of the agents is play.
//
//go:embed demo.hcl
var team string

// Command returns the demo command.
func Command(a *cli.App) *cobra.Command {
	verb := &cobra.Command{
		Use:   "demo",
		Short: "Run a team that is inside this program",
		Long: `Runs a team of four agents for twenty seconds. It needs no model, no network and no other
program. They build the web site of a lighthouse: an architect assigns tasks, a writer crashes on
purpose and its task is given out again, a designer asks you a question, and a reviewer follows
every link. Answer the question by typing, or let it pass. Ctrl-C stops everything.

The file of the team and the site are in a new folder, which stays there.`,
		Example: "  orchestrator demo",
		Args:    cli.ArgCount(0, 0), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error { return run(a) },
	}
	verb.AddCommand(&cobra.Command{
		Use: "play ROLE [FLAG…]", Short: "Play a member of the team", Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return Play(context.Background(), args) },
	})
	return verb
}

func run(a *cli.App) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "orchestrator-demo-")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	file := filepath.Join(dir, "orchestrator.hcl")
	text := strings.Replace(team, "[\"orchestrator\", \"demo\", \"play\"]", fmt.Sprintf("[%q, \"demo\", \"play\"]", self), 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("writing the file of the team: %w", err)
	}
	a.Flags.Config = file
	a.Note("To see it from elsewhere: orchestrator ui%s", a.Named())
	err = serve.UpUntilIdle(a)
	a.Note("The team is %s, and its site %s.", term.OneLine(file), term.OneLine(filepath.Join(dir, ".orchestrator", "site", "index.html")))
	return err
}
