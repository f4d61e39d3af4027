package config

import "slices"

// NameRule says what agents may be called.
const NameRule = "up to 63 letters, digits, dots, - and _, the first a letter or digit"

// IsRole reports whether agents may have a role. The word none means no role at all.
func IsRole(word string) bool { return IsName(word) && word != "none" }

// IsName reports whether an agent may be called that.
func IsName(name string) bool { return agentName().MatchString(name) }

// Guest is an agent that is in no file, because a program joins by a connection:
// everything at its default, and no command. It is given tasks only if it works.
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
