package serve

import (
	"context"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"orchestrator/supervisor"
	"orchestrator/supervisor/adapter"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/stdin"
)

// specs returns the agents of a configuration for the supervisor. It starts the agents that
// were chosen when the team was started.
func (t *Instance) specs(c *config.Config) []supervisor.Agent {
	var specs []supervisor.Agent
	for i := range c.Agents {
		a := &c.Agents[i]
		specs = append(specs, supervisor.Agent{
			Name:        a.Name,
			Block:       a.Block,
			Place:       a.Place,
			Description: a.Description,
			Role:        a.Role,
			Actor:       busActor(a.Actor),
			Offers:      offers(&a.Capabilities),
			Names:       a.Capabilities.Names,
			Abilities:   abilities(&a.Capabilities),
			Capacity:    a.Capabilities.MaxConcurrentTasks,
			OnExit:      a.OnExit,
			Command:     a.Command,
			Dir:         a.Dir,
			Environ:     func(ctx context.Context) ([]string, error) { return c.Environ(ctx, a, t.Base) },
			Client:      codingAgent(a),
			Raw:         a.Protocol == "raw",
			NoStdin:     a.Stdin == "null",
			Pty:         a.Pty,
			DependsOn:   a.DependsOn,
			Autostart:   a.Autostart,
			MaxLine:     int(c.Protocol.MaxLine),
			Restart: supervisor.Restart{
				Policy: supervisor.Policy(a.Restart.Policy), Delay: a.Restart.Delay, Factor: a.Restart.Factor,
				MaxDelay: a.Restart.MaxDelay, Jitter: a.Restart.Jitter, ResetAfter: a.Restart.ResetAfter,
				Burst: a.Restart.Burst, Window: a.Restart.Window, Permanent: a.Restart.Permanent,
			},
			Stop:    supervisor.StopSequence{CloseStdin: a.Stop.CloseStdin, Unspoken: a.Stop.Unspoken, Signal: signalNumber(a.Stop.Signal), Grace: a.Stop.Grace},
			Health:  supervisor.Health{Silence: a.Health.Silence, WriteTimeout: a.Health.WriteTimeout, Restart: a.Health.OnStalled == "restart"},
			Mailbox: stdin.Limits{Messages: a.Limits.Mailbox, Bytes: a.Limits.MailboxBytes},
			Limits:  child.Limits{OpenFiles: a.Limits.OpenFiles, Memory: a.Limits.Memory},
			Output:  output.Limits{Dir: a.Output.Dir, MaxSize: a.Output.MaxSize, Keep: a.Output.Keep, Tail: a.Output.Tail},
		})
	}
	return only(specs, t.chosen, t.noDeps)
}

// patience is how long a coding agent may be silent in a turn while no tool runs.
const patience = 10 * time.Minute

// codingAgent returns the settings of a coding agent, or nil for another agent.
func codingAgent(a *config.Agent) *supervisor.Client {
	if !a.IsClient() {
		return nil
	}
	o := adapter.Opening{
		Permission: a.Client.Permission, Allow: a.Client.Allow, Model: a.Client.Model, Instructions: a.Client.Instructions,
		OnTurnEnd: a.Client.OnTurnEnd, Patience: patience,
	}
	if self, err := os.Executable(); err == nil { // or the agent has no tools, and says so
		o.Door = []string{self, "mcp"}
	}
	for _, s := range a.Client.Servers {
		o.Servers = append(o.Servers, adapter.Server{Name: s.Name, Command: s.Command})
	}
	return &supervisor.Client{Protocol: a.Protocol, Resume: a.Client.Resume, Opening: o}
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
