package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// A Command is a command that a team runs.
type Command struct {
	Of    string // its owner, such as "agent coder" or "secret token"
	Place string // of its block, such as "orchestrator.hcl:31"
	Argv  []string
	// Notes name rights of the command that other commands lack.
	Notes []string
	// Print is a digest of the command, and of the facts that select its program and rights: its folder, its environment,
	// and the rights of its agent. It does not depend on the values of secrets.
	Print string
}

// Commands returns the commands that the team may run: commands of agents, once for all replicas, of the MCP servers of
// coding agents, of secrets, and commands that verify tasks or set up their workspaces.
func (c *Config) Commands() []Command {
	var all []Command
	add := func(of, place string, argv, notes []string, rest ...any) {
		digest := sha256.Sum256(fmt.Appendf(nil, "%q %q %#v", of, argv, rest))
		all = append(all, Command{Of: of, Place: place, Argv: argv, Notes: notes, Print: hex.EncodeToString(digest[:])})
	}
	work := func(of, place string, w *Work) {
		for n, command := range w.Verify {
			add(fmt.Sprintf("verify %d of %s", n+1, of), place, command, nil)
		}
		if w.Workspace != nil {
			for n, command := range w.Workspace.Setup {
				add(fmt.Sprintf("setup %d of %s", n+1, of), place, command, nil)
			}
		}
	}
	for i := range c.Sessions {
		work("session "+c.Sessions[i].ID, c.Place("session."+c.Sessions[i].ID), &c.Sessions[i].Work)
	}
	for i := range c.Tasks {
		work("task "+c.Tasks[i].Name, c.Place("task."+c.Tasks[i].Name), &c.Tasks[i].Work)
	}
	seen := make(map[string]bool)
	for i := range c.Agents {
		a := &c.Agents[i]
		if seen[a.Block] {
			continue
		}
		seen[a.Block] = true
		rest := []any{a.Dir, a.EnvFile, a.InheritEnv, a.env.print, a.Protocol, a.Operator, a.Client.Opening.Permission, a.Client.Opening.Allow, a.Confined}
		if a.User != "" {
			rest = append(rest, a.User)
		}
		if a.Manage {
			rest = append(rest, "manage")
		}
		add("agent "+a.Block, a.Place, slices.Concat(a.Wrap, a.Command), a.notes(), rest...)
		work(a.Block, a.Place, &a.Work)
		for _, s := range a.Client.Opening.Servers {
			add("mcp "+s.Name+" of "+a.Block, a.Place, s.Command, nil)
		}
	}
	if c.Notify.Command != nil {
		add("notify", c.Place("notify.command"), c.Notify.Command, nil)
	}
	for _, name := range slices.Sorted(maps.Keys(c.secrets)) {
		if s := c.secrets[name]; s.command != nil {
			add("secret "+name, c.Place("secret."+name), s.command, nil)
		}
	}
	return all
}

// notes names the rights of an agent that other agents lack.
func (a *Agent) notes() []string {
	var notes []string
	if a.Operator {
		notes = append(notes, "operator = true")
	}
	if a.Manage {
		notes = append(notes, "manage = true")
	}
	if a.Client.Opening.Permission == "full" || a.Client.Opening.Permission == "auto" {
		notes = append(notes, fmt.Sprintf("permission = %q", a.Client.Opening.Permission))
	}
	return notes
}
