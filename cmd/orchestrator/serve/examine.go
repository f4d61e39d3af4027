package serve

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/supervisor"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/hub"
	"orchestrator/supervisor/hub/team"
	"orchestrator/supervisor/settings"
)

// An Examined is an agent of the configuration with the findings about its program.
type Examined struct {
	Agent config.Agent
	Err   error // the program was not started
	supervisor.Examination
}

// Examine examines the programs of the agents of the file, or of the named agents. Replicas have
// one program. A handshake may take as long as patience. All programs are examined at the same
// time, so that a hanging one does not hold up the rest. In the order of the file, tell is called
// when a program and those before it have ended. It gets all agents, and the index of this one.
func Examine(ctx context.Context, a *cli.App, names []string, patience time.Duration, tell func(all []Examined, i int) error) error {
	p := new(hub.Place)
	c, err := ReadTeam(a, p.Run, names, "doctor")
	if err != nil {
		return err
	}
	state, err := os.MkdirTemp("", "orchestrator-doctor-")
	if err != nil {
		return fmt.Errorf("making a place for its state: %w", err)
	}
	defer os.RemoveAll(state)
	p.StateDir, p.Socket, p.Log = state, a.SocketPath(state), hclog.NewNullLogger()
	if err := p.Start(ctx); err != nil {
		return CannotHold(err, state)
	}
	defer p.Stop()
	return examine(ctx, p, c, hub.AgentBase(a.Environ), names, patience, tell)
}

// ReadTeam reads the file for a command that starts no team. It shows the warnings, and returns an error
// if the file has a mistake or does not have one of the named agents. The function run runs the
// commands of secrets.
func ReadTeam(a *cli.App, run func(ctx context.Context, command []string, dir string, env []string) ([]byte, error), names []string, verb string) (*config.Config, error) {
	file, err := a.FindConfig(a.Flags.Config)
	if err != nil {
		return nil, err
	}
	options := a.Options()
	options.Run, options.Rights = run, rights
	c, problems := config.Load(file, options)
	if problems.Errors() > 0 {
		return nil, a.Invalid(problems, "No program was started.")
	}
	if len(problems) > 0 {
		_ = a.ShowProblems(problems, "", cli.ExitOK)
	}
	return c, knowAgents(c, names, verb)
}

// rights returns the rights of an agent's user on a file.
func rights(user, path string) config.Rights {
	u, err := child.FindUser(user)
	if err != nil || u == nil { // the file has this mistake, or the agent has the rights of this process
		return config.Rights{}
	}
	return config.Rights{Read: u.MayRead(path), Replace: u.MayReplace(path)}
}

func examine(ctx context.Context, p *hub.Place, c *config.Config, base []string, names []string, patience time.Duration, tell func(all []Examined, i int) error) error {
	var all []Examined
	var specs []settings.Agent
	for i, spec := range team.Agents(c, base) {
		seen := slices.ContainsFunc(all, func(e Examined) bool { return e.Agent.Block == spec.Block })
		wanted := len(names) == 0 || slices.Contains(names, spec.Name) || slices.Contains(names, spec.Block)
		if wanted && !seen {
			all, specs = append(all, Examined{Agent: c.Agents[i]}), append(specs, spec)
		}
	}
	var group sync.WaitGroup
	defer group.Wait()
	soon, stop := context.WithTimeout(ctx, patience)
	defer stop()
	ended := make([]chan struct{}, len(all))
	for i := range all {
		ended[i] = make(chan struct{})
		group.Go(func() {
			defer close(ended[i])
			all[i].Examination, all[i].Err = supervisor.Examine(soon, p.Launch, &specs[i])
		})
	}
	for i := range all {
		<-ended[i]
		if ctx.Err() != nil { // it was interrupted, so the findings are not the fault of the program
			return nil
		}
		if err := tell(all, i); err != nil {
			return err
		}
	}
	return nil
}
