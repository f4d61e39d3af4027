package project

import (
	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
)

// verdict is the JSON answer of validate.
type verdict struct {
	FormatVersion string           `json:"format_version"`
	Valid         bool             `json:"valid"`
	File          string           `json:"file"`
	Agents        int              `json:"agent_count"`
	Processes     int              `json:"process_count"`
	Errors        int              `json:"error_count"`
	Warnings      int              `json:"warning_count"`
	Diagnostics   []config.Problem `json:"diagnostics"`
}

// ValidateCommand returns the validate command.
func ValidateCommand(a *cli.App) *cobra.Command {
	var strict, noEnv bool
	verb := &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check the file without starting anything",
		Long: `Checks the configuration exactly as "up" does, and starts nothing. It shows all
mistakes at once, each with its place and the correct form.

--no-env treats values from the environment and from secrets as unknown, for machines
that do not have them.`,
		Example: `  orchestrator validate
  orchestrator validate deploy/orchestrator.hcl --strict
  orchestrator validate --json --no-env     in CI`,
		Args: cli.ArgCount(0, 1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return []cobra.Completion{"hcl", "json"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return validate(a, append(args, a.Flags.Config)[0], strict, noEnv)
		},
	}
	verb.Flags().BoolVar(&strict, "strict", false, "treat warnings as errors")
	verb.Flags().BoolVar(&noEnv, "no-env", false, "treat env() and secrets as unknown")
	return verb
}

func validate(a *cli.App, name string, strict, noEnv bool) error {
	file, err := a.FindConfig(name)
	if err != nil {
		return err
	}
	options := a.Options()
	options.NoEnv = noEnv
	c, problems := config.Load(file, options)
	valid := problems.Errors() == 0 && (!strict || problems.Warnings() == 0)
	if !a.Flags.JSON {
		return showVerdict(a, a.Short(file), c, problems, valid)
	}
	if err := a.Document(verdictOf(file, c, problems, valid)); err != nil || valid {
		return err
	}
	return cli.ExitWith(cli.ExitNo)
}

func verdictOf(file string, c *config.Config, problems config.Problems, valid bool) verdict {
	v := verdict{
		FormatVersion: wire.FormatVersion, Valid: valid, File: file,
		Errors: problems.Errors(), Warnings: problems.Warnings(), Diagnostics: problems,
	}
	if c != nil {
		v.Agents, v.Processes = teamSize(c)
	}
	return v
}

func showVerdict(a *cli.App, file string, c *config.Config, problems config.Problems, valid bool) error {
	if !valid {
		return a.ShowProblems(problems, "The file is not valid.", cli.ExitNo)
	}
	if len(problems) > 0 {
		if err := a.ShowProblems(problems, "", cli.ExitOK); err != nil {
			return err
		}
	}
	if a.Flags.Quiet {
		return nil
	}
	agents, processes := teamSize(c)
	size := term.Count(agents, "agent")
	if processes != agents {
		size += " (" + term.Count(processes, "process") + ")"
	}
	return a.Print("%s is valid: %s.\n", file, size)
}

// teamSize returns the number of agent blocks of a file and of their processes.
func teamSize(c *config.Config) (agents, processes int) {
	blocks := map[string]bool{}
	for _, agent := range c.Agents {
		blocks[agent.Block] = true
	}
	return len(blocks), len(c.Agents)
}
