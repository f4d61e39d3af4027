package serve

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/supervisor"
	"orchestrator/supervisor/config"
)

// An Examined is an agent of the configuration and what was found out about its program.
type Examined struct {
	Agent config.Agent
	Err   error // the program was not started
	supervisor.Examination
}

// examinedAtOnce is how many programs are examined at the same time. The larger ones use a whole
// core for seconds.
const examinedAtOnce = 4

// Examine examines the programs of the agents of the file, or of those that are named. Replicas
// have one program. A handshake may take as long as patience.
func Examine(ctx context.Context, a *cli.App, names []string, patience time.Duration) ([]Examined, error) {
	file, err := a.FindConfig(a.Flags.Config)
	if err != nil {
		return nil, err
	}
	t := NewTeam()
	options := a.Options()
	options.Run = t.runCommand
	c, problems := config.Load(file, options)
	if problems.Errors() > 0 {
		return nil, a.Invalid(problems, "No program was started.")
	}
	if len(problems) > 0 {
		_ = a.ShowProblems(problems, "", cli.ExitOK)
	}
	if err := knowAgents(c, names, "doctor"); err != nil {
		return nil, err
	}
	state, err := os.MkdirTemp("", "orchestrator-doctor-")
	if err != nil {
		return nil, fmt.Errorf("making a place for its state: %w", err)
	}
	defer os.RemoveAll(state)
	if err := t.Hold(state, a.SocketPath(state), hclog.NewNullLogger()); err != nil {
		return nil, CannotHold(err, state)
	}
	defer t.Release()
	t.Base = AgentBase(a.Environ)
	return t.examine(ctx, c, names, patience), nil
}

func (t *Instance) examine(ctx context.Context, c *config.Config, names []string, patience time.Duration) []Examined {
	var all []Examined
	var specs []supervisor.Agent
	for i, spec := range t.specs(c) {
		seen := slices.ContainsFunc(all, func(e Examined) bool { return e.Agent.Block == spec.Block })
		wanted := len(names) == 0 || slices.Contains(names, spec.Name) || slices.Contains(names, spec.Block)
		if wanted && !seen {
			all, specs = append(all, Examined{Agent: c.Agents[i]}), append(specs, spec)
		}
	}
	var group errgroup.Group
	group.SetLimit(examinedAtOnce)
	for i := range all {
		group.Go(func() error {
			soon, stop := context.WithTimeout(ctx, patience)
			defer stop()
			all[i].Examination, all[i].Err = supervisor.Examine(soon, t.start, &specs[i])
			return nil
		})
	}
	_ = group.Wait() // no function fails
	return all
}
