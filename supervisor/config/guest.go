package config

import "slices"

// NameRule describes the valid names of agents.
const NameRule = "up to 63 letters, digits, dots, - and _, the first a letter or digit"

// IsRole reports whether word is a valid role. The word none means no role.
func IsRole(word string) bool { return IsName(word) && word != "none" }

// IsName reports whether name is a valid name of an agent.
func IsName(name string) bool { return agentName().MatchString(name) }

// Guest returns an agent that is in no file, because a program joins over a connection. It has
// default settings and no command. It gets tasks only if works is true.
func (c *Config) Guest(name, role string, capabilities []string, works bool) Agent {
	a := standardAgent()
	a.Name, a.Block, a.Place, a.Description = name, name, "a pipe", "joined by pipe"
	a.Role, a.Capabilities.Names = role, slices.Clone(capabilities)
	if !works {
		a.Capabilities.MaxConcurrentTasks = 0
	}
	a.Autostart = false
	a.Output.Dir = within(c.Orchestrator.StateDir, a.Output.Dir)
	return a
}
