package config

import "path/filepath"

// Alone returns the configuration of a single command without a file. It has the default
// settings, its state in stateDir, and no restarts.
func Alone(dir, stateDir, name string, command []string) *Config {
	c := standard(filepath.Join(dir, "orchestrator.hcl"))
	c.Orchestrator.Name, c.Orchestrator.StateDir = name, stateDir
	c.Store.Path = within(stateDir, c.Store.Path)
	a := standardAgent()
	a.Name, a.Block, a.Place = name, name, "the command line"
	a.Command, a.Dir = command, dir
	a.Restart.Policy = "never"
	a.Output.Dir = within(stateDir, a.Output.Dir)
	c.Agents = []Agent{a}
	return c
}
