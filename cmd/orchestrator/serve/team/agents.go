package team

import (
	"context"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"orchestrator/supervisor/adapter"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/hosts"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/settings"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/hub"
)

// Agents returns the agents of a configuration for the supervisor. base is the environment that they may inherit.
func Agents(c *config.Config, base []string) []settings.Agent {
	var specs []settings.Agent
	for i := range c.Agents {
		a := &c.Agents[i]
		specs = append(specs, settings.Agent{
			Name:      a.Name,
			Block:     a.Block,
			Place:     a.Place,
			Profile:   control.Profile(a.Profile),
			Role:      a.Role,
			Actor:     busActor(a.Actor),
			Offers:    offers(&a.Capabilities),
			Names:     a.Capabilities.Names,
			Abilities: abilities(&a.Capabilities),
			Fixed:     a.Capabilities.Fixed,
			Manage:    a.Manage,
			Capacity:  a.Capabilities.MaxConcurrentTasks,
			OpenTasks: a.Limits.OpenTasks,
			Stored:    a.Limits.Stored,
			RateBytes: a.Limits.RateBytes,
			OnExit:    a.OnExit,
			Command:   a.Command,
			Wrap:      a.Wrap,
			User:      a.User,
			Dir:       a.Dir,
			Environ:   func(ctx context.Context) ([]string, error) { return c.Environ(ctx, a, base) },
			Client:    codingAgent(c, a),
			Raw:       a.Protocol == "raw",
			NoStdin:   a.Stdin == "null",
			Pty:       a.Pty,
			DependsOn: a.DependsOn,
			Autostart: a.Autostart,
			MaxLine:   int(c.Protocol.MaxLine),
			Restart: settings.Restart{
				Policy: settings.Policy(a.Restart.Policy), Delay: a.Restart.Delay, Factor: a.Restart.Factor,
				MaxDelay: a.Restart.MaxDelay, Jitter: a.Restart.Jitter, ResetAfter: a.Restart.ResetAfter,
				Burst: a.Restart.Burst, Window: a.Restart.Window, Permanent: a.Restart.Permanent,
			},
			Stop:      settings.Stop{CloseStdin: a.Stop.CloseStdin, Unspoken: a.Stop.Unspoken, Signal: signalNumber(a.Stop.Signal), Grace: a.Stop.Grace},
			Health:    settings.Health{Silence: a.Health.Silence, WriteTimeout: a.Health.WriteTimeout, Restart: a.Health.OnStalled == "restart"},
			Mailbox:   stdin.Limits{Messages: a.Limits.Mailbox, Bytes: a.Limits.MailboxBytes},
			Limits:    limits(a),
			Confine:   Confinement(c, a),
			Output:    output.Limits{Dir: a.Output.Dir, MaxSize: a.Output.MaxSize, Keep: a.Output.Keep, Tail: a.Output.Tail},
			Placement: placement(a.Placement),
			Wait:      a.Placement != nil && a.Placement.OnLost == "wait",
		})
	}
	return specs
}

// patience is how long a coding agent may be silent in a turn while no tool runs.
const patience = 10 * time.Minute

// codingAgent returns the settings of a coding agent, or nil for another agent.
func codingAgent(c *config.Config, a *config.Agent) *settings.Client {
	if !a.IsClient() {
		return nil
	}
	o := adapter.Opening{
		Permission: a.Client.Permission, Confined: Confinement(c, a).Complete(), Allow: a.Client.Allow, Model: a.Client.Model, Instructions: a.Client.Instructions,
		OnTurnEnd: a.Client.OnTurnEnd, Patience: patience,
	}
	if self, err := os.Executable(); err == nil { // or the agent has no tools, and says so
		o.Door = []string{self, "mcp"}
	}
	for _, s := range a.Client.Servers {
		o.Servers = append(o.Servers, adapter.Server{Name: s.Name, Command: s.Command})
	}
	return &settings.Client{Protocol: a.Protocol, Resume: a.Client.Resume, WireLog: a.Client.WireLog, Opening: o}
}

// limits returns the limits of the processes of an agent.
func limits(a *config.Agent) child.Limits {
	return child.Limits{OpenFiles: a.Limits.OpenFiles, Memory: a.Limits.Memory, Processes: a.Limits.Processes, CPU: a.Limits.CPU}
}

// Confinement returns what an agent is confined to, or nil.
func Confinement(c *config.Config, a *config.Agent) *child.Confinement {
	x := &a.Confine
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

// busActor returns the bus actor of an agent, "" if the configuration says auto.
func busActor(actor string) string {
	if actor == "auto" {
		return ""
	}
	return actor
}

func signalNumber(name string) syscall.Signal {
	if sig := unix.SignalNum(name); sig != 0 {
		return sig
	}
	return syscall.SIGTERM
}

// offers returns the capabilities of an agent as one list.
func offers(c *config.Capabilities) []string {
	var flat []string
	for _, names := range [][]string{c.Names, c.Languages, c.Tools, c.Tags} {
		for _, name := range names {
			if !slices.Contains(flat, name) {
				flat = append(flat, name)
			}
		}
	}
	return flat
}

// abilities returns the capabilities of an agent as a document.
func abilities(c *config.Capabilities) wire.Raw {
	all := hub.Capabilities{
		Languages: c.Languages, Tools: c.Tools, Environments: c.Environments, Tags: c.Tags, Capacity: c.MaxConcurrentTasks,
	}
	for _, r := range c.Repos {
		all.Repos = append(all.Repos, hub.Repo{Name: r.Name, Path: r.Path, Languages: r.Languages, Tools: r.Tools})
	}
	return all.Spell()
}

// placement returns where an agent runs; nil: on this machine.
func placement(p *config.Placement) *hosts.Placement {
	if p == nil {
		return nil
	}
	return &hosts.Placement{Hosts: p.Hosts, Labels: p.Labels, Spread: p.Spread}
}
