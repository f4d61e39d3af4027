package serve

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"

	"orchestrator/cmd/orchestrator/cli"
	"orchestrator/cmd/orchestrator/client"
	"orchestrator/supervisor"
	"orchestrator/supervisor/api"
	"orchestrator/supervisor/config"
	"orchestrator/wire"
)

// pipe lets a program join as an agent.
func (t *Instance) pipe(ctx context.Context, query url.Values, accept func() (*api.Conn, error)) error {
	guest, err := t.guest(ctx, query)
	if err != nil {
		return err
	}
	return t.Super.Join(ctx, guest, func() (supervisor.Conn, error) {
		conn, err := accept()
		if err != nil {
			return nil, err // avoid a nil pointer in the interface
		}
		return conn, nil
	})
}

// guest returns the agent that a program wants to be, if its name is free.
func (t *Instance) guest(ctx context.Context, query url.Values) (supervisor.Agent, error) {
	name, role, capabilities := query.Get("as"), query.Get("role"), query["capability"]
	works := role != "" || len(capabilities) > 0
	if role == "" {
		role = wire.RoleWorker
	}
	switch {
	case !config.IsName(name):
		return supervisor.Agent{}, unfit("as", fmt.Sprintf("%.80q is no name for an agent", name), "Agents are named with "+config.NameRule)
	case !config.IsRole(role):
		return supervisor.Agent{}, unfit("role", fmt.Sprintf("%.80q is not a role", role), "Roles are written with "+config.NameRule)
	case slices.Contains(capabilities, ""):
		return supervisor.Agent{}, unfit("capability", "a capability is not empty", "")
	}
	select { // no reload while the configuration is read
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return supervisor.Agent{}, context.Cause(ctx)
	}
	if t.config == nil {
		return supervisor.Agent{}, &wire.Error{
			Code: wire.CodeConflict, Message: "this orchestrator runs one command, and no program can join it",
			Hint: "Start a team: orchestrator up",
		}
	}
	alone := *t.config
	alone.Agents = []config.Agent{alone.Guest(name, role, capabilities, works)}
	return t.specs(&alone)[0], nil
}

func unfit(field, message, hint string) error {
	return &wire.Error{Code: wire.CodeInvalid, Message: message, Hint: hint, Details: map[string]any{"field": field}}
}

// pipeAlone starts an orchestrator with a temporary state directory, joins it, and stops it
// after the pipe.
func pipeAlone(a *cli.App, f pipeFlags) error {
	stateDir, err := os.MkdirTemp("", "orchestrator-pipe-")
	if err != nil {
		return fmt.Errorf("making a place for its state: %w", err)
	}
	defer os.RemoveAll(stateDir)
	c := config.Alone(a.Dir, stateDir, "pipe", nil)
	c.Agents = nil
	c.Store.Kind = "memory" // the state directory is temporary
	t := NewTeam()
	if err := t.Hold(stateDir, a.SocketPath(stateDir), logger(a, c, a.Flags.JSON)); err != nil {
		return CannotHold(err, stateDir)
	}
	defer t.Release()
	t.config = c
	if err := t.Supervise(c, supervisor.Options{Name: "pipe"}); err != nil {
		return err
	}
	shut := t.Serve()
	ran := make(chan error, 1)
	go func() { ran <- t.Super.Run(context.Background()) }()
	err = pipeInto(a, t, f)
	t.Super.Stop("its pipe has ended")
	if failed := <-ran; err == nil {
		err = failed
	}
	shut()
	return err
}

// pipeInto joins a team in this process through its socket.
func pipeInto(a *cli.App, t *Instance, f pipeFlags) error {
	to := client.Target{Socket: t.listener.Addr().String(), Subject: "this pipe"}
	d := a.NewClient(to)
	link, err := join(a, d, f)
	if err != nil {
		return joinFailed(d, err)
	}
	return converse(a, link, to, f,
		fmt.Sprintf("No orchestrator runs here: %s has joined one of its own, for as long as this lasts.", f.as),
		"Look at it: orchestrator status --host "+to.Socket)
}
