package team

import (
	"context"
	"os"
	"slices"
	"time"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
)

// Agents returns the agents of a configuration for the supervisor. base is the environment that they may inherit.
func Agents(c *config.Config, base []string) []settings.Agent {
	all := make([]settings.Agent, 0, len(c.Agents))
	for i := range c.Agents {
		a := &c.Agents[i]
		spec := a.Agent
		spec.Offers, spec.Abilities = offers(a), abilities(a)
		spec.Environ = func(ctx context.Context) ([]string, error) { return c.Environ(ctx, a, base) }
		spec.MaxLine, spec.Confine = int(c.Protocol.MaxLine), Confinement(c, a)
		if o := &spec.Client.Opening; a.IsClient() {
			o.Confined, o.Patience = spec.Confine.Complete(), patience
			if self, err := os.Executable(); err == nil { // otherwise the agent has no tools, and reports that
				o.Door = []string{self, "mcp"}
			}
		}
		all = append(all, spec)
	}
	return all
}

// patience is how long a coding agent may be silent in a turn while no tool runs.
const patience = 10 * time.Minute

// Confinement returns the confinement of an agent, or nil.
func Confinement(c *config.Config, a *config.Agent) *child.Confinement {
	x := &a.Confined
	if !x.On {
		return nil
	}
	return &child.Confinement{
		Write: x.Write, Read: x.Read, Hide: x.Hide, Keep: x.Keep, Repositories: repositories(c),
		Limited: x.Limited, Ports: x.Ports, BestEffort: x.BestEffort,
	}
}

// repositories returns the folders of the repositories of all workspaces.
func repositories(c *config.Config) (all []string) {
	add := func(w *config.Workspace) {
		if w != nil {
			all = append(all, w.Worktree)
		}
	}
	for i := range c.Agents {
		add(c.Agents[i].Workspace)
	}
	for i := range c.Sessions {
		add(c.Sessions[i].Workspace)
	}
	for i := range c.Tasks {
		add(c.Tasks[i].Workspace)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// offers returns the capabilities of an agent as one list.
func offers(a *config.Agent) []string {
	var flat []string
	for _, name := range slices.Concat(a.Names, a.Capabilities.Languages, a.Capabilities.Tools, a.Capabilities.Tags) {
		if !slices.Contains(flat, name) {
			flat = append(flat, name)
		}
	}
	return flat
}

// abilities returns the capabilities of an agent as a document.
func abilities(a *config.Agent) wire.Raw {
	all := a.Capabilities
	all.Capacity = a.Capacity
	return all.Spell()
}
