package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"orchestrator/cmd/orchestrator/plain"
	"orchestrator/wire"
)

// agentChangeCommand makes agent start, stop and restart: one request, one
// line an agent, and exit 1 when one of them did not do it.
func (a *app) agentChangeCommand(name, short, long string) *cobra.Command {
	var all, noDeps bool
	path := "orchestrator agent " + name
	verb := &cobra.Command{
		Use:               name + " AGENT…",
		Short:             short,
		Long:              long,
		Example:           fmt.Sprintf("  %s coder\n  %s coder reviewer --timeout 30s\n  %s --all --json", path, path, path),
		ValidArgsFunction: a.completeAgents,
		Args: func(_ *cobra.Command, names []string) error {
			switch {
			case len(names) == 0 && !all:
				return usageError(fmt.Sprintf("%q wants the names of agents, or --all", path), "See which there are: orchestrator agent ls")
			case len(names) > 0 && all:
				return usageError("--all already names every agent", "Leave out the names, or --all")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, names []string) error {
			return a.changeAgents(name, wire.AgentsRequest{Agents: names, NoDeps: noDeps})
		},
	}
	verb.Flags().BoolVar(&all, "all", false, "every agent")
	if name == "start" {
		verb.Flags().BoolVar(&noDeps, "no-deps", false, "start these without the agents that they depend on")
	}
	return verb
}

func (a *app) changeAgents(name string, request wire.AgentsRequest) error {
	ctx, stop := a.begin()
	defer stop()
	door, err := a.door()
	if err != nil {
		return err
	}
	done := a.patience("the agents to " + name)
	raw, err := door.ask(ctx, name+"-agent", request)
	done()
	if err != nil {
		return err
	}
	reply, err := decode[wire.AgentsReply](raw)
	if err != nil {
		return err
	}
	if a.flags.json {
		err = a.print("%s\n", raw)
	} else {
		err = a.showOutcomes(reply.Agents)
	}
	if err != nil {
		return err
	}
	for _, agent := range reply.Agents {
		if !agent.OK {
			return exitWith(exitNo)
		}
	}
	return nil
}

// showOutcomes prints one line for each agent that was asked to change, and
// under it the last words of one that failed.
func (a *app) showOutcomes(agents []wire.AgentOutcome) error {
	p := a.paint(a.stdout)
	wide := 0
	for _, agent := range agents {
		wide = max(wide, plain.Width(wire.Visible(agent.Name)))
	}
	for _, agent := range agents {
		name := wire.Visible(agent.Name)
		if a.flags.quiet && agent.OK {
			if err := a.print("%s\n", name); err != nil {
				return err
			}
			continue
		}
		said := wire.Visible(agent.Text)
		if !agent.OK {
			said = p.bad("Error:") + " " + said
		}
		if err := a.print("%s  %s\n", plain.Pad(name, wide), said); err != nil {
			return err
		}
		if err := a.showLastWords(agent); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) showLastWords(agent wire.AgentOutcome) error {
	if agent.OK || len(agent.LastWords) == 0 {
		return nil
	}
	if err := a.print("  = Last words:\n"); err != nil {
		return err
	}
	for _, line := range agent.LastWords {
		if err := a.print("      %s\n", wire.Visible(line)); err != nil {
			return err
		}
	}
	return a.print("  = Read more: orchestrator logs %s\n", wire.Visible(agent.Name))
}
