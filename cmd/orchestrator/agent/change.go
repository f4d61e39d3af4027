package agent

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/term"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// agentChangeCommand returns agent start, stop or restart. The command prints a line for
// each agent, and exits with 1 if one failed.
func agentChangeCommand(a *cli.App, name, short, long string) *cobra.Command {
	var all, noDeps bool
	path := "orchestrator agent " + name
	verb := &cobra.Command{
		Use:               name + " AGENT…",
		Short:             short,
		Long:              long,
		Example:           fmt.Sprintf("  %s coder\n  %s coder reviewer --timeout 30s\n  %s --all --json", path, path, path),
		ValidArgsFunction: a.CompleteAgents,
		Args: func(_ *cobra.Command, names []string) error {
			switch {
			case len(names) == 0 && !all:
				return cli.UsageError(fmt.Sprintf("%q wants the names of agents, or --all", path), "See which there are: orchestrator agent ls")
			case len(names) > 0 && all:
				return cli.UsageError("--all already names every agent", "Leave out the names, or --all")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, names []string) error {
			return changeAgents(a, name, control.AgentsRequest{Agents: names, NoDeps: noDeps})
		},
	}
	verb.Flags().BoolVar(&all, "all", false, "every agent")
	if name == "start" {
		verb.Flags().BoolVar(&noDeps, "no-deps", false, "start only these agents, without their dependencies")
	}
	return verb
}

func changeAgents(a *cli.App, name string, request control.AgentsRequest) error {
	return cli.Query[control.AgentsReply]{
		Operation: name + "-agent", Request: request, Awaits: "the agents to " + name,
		Text: func(reply *control.AgentsReply) error { return showOutcomes(a, reply.Agents) },
		Judge: func(reply *control.AgentsReply) error {
			if slices.ContainsFunc(reply.Agents, func(agent control.AgentOutcome) bool { return !agent.OK }) {
				return cli.ExitWith(cli.ExitNo)
			}
			return nil
		},
	}.Run(a)
}

// showOutcomes prints a line for each changed agent, followed by the last output of one
// that failed.
func showOutcomes(a *cli.App, agents []control.AgentOutcome) error {
	p := a.Paint(a.Stdout)
	wide := 0
	for _, agent := range agents {
		wide = max(wide, term.Width(wire.Visible(agent.Name)))
	}
	for _, agent := range agents {
		name := wire.Visible(agent.Name)
		if a.Flags.Quiet && agent.OK {
			if err := a.Print("%s\n", name); err != nil {
				return err
			}
			continue
		}
		said := wire.Visible(agent.Text)
		if !agent.OK {
			said = p.Bad("Error:") + " " + said
		}
		if err := a.Print("%s  %s\n", term.Pad(name, wide), said); err != nil {
			return err
		}
		if err := showLastWords(a, agent); err != nil {
			return err
		}
	}
	return nil
}

func showLastWords(a *cli.App, agent control.AgentOutcome) error {
	if agent.OK || len(agent.LastWords) == 0 {
		return nil
	}
	if err := a.Print("  = Last words:\n"); err != nil {
		return err
	}
	for _, line := range agent.LastWords {
		if err := a.Print("      %s\n", wire.Visible(line)); err != nil {
			return err
		}
	}
	return a.Print("  = Read more: orchestrator logs %s\n", wire.Visible(agent.Name))
}
