package hub

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"orchestrator/supervisor/config"
	"orchestrator/supervisor/hub/team"
	"orchestrator/supervisor/settings"
	"orchestrator/wire"
)

// A File is the configuration of a team that runs, and the way to read it again.
type File struct {
	Config *config.Config                           // applies now; nil: no program can join the team
	Load   func() (*config.Config, config.Problems) // reads it again; nil: the team has no file
	Base   []string                                 // the environment that agents inherit
	Chosen []string                                 // agents named to start; if empty, the file decides
	NoDeps bool                                     // do not start their dependencies
	turn   chan struct{}                            // holds a value while Config is used or changed
}

// NewFile returns a File without a configuration.
func NewFile() *File { return &File{turn: make(chan struct{}, 1)} }

// lock waits until no other caller uses or changes the configuration.
func (f *File) lock(ctx context.Context) error {
	select {
	case f.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (f *File) unlock() { <-f.turn }

// specs returns the agents of a configuration for the supervisor. It starts the agents that were chosen when the
// team was started.
func (f *File) specs(c *config.Config) []settings.Agent {
	return only(team.Agents(c, f.Base), f.Chosen, f.NoDeps)
}

// only sets Autostart for the named agents and clears it for all other agents.
func only(specs []settings.Agent, names []string, noDeps bool) []settings.Agent {
	if len(names) == 0 {
		return specs
	}
	for i := range specs {
		s := &specs[i]
		s.Autostart = slices.Contains(names, s.Name) || slices.Contains(names, s.Block)
		if s.Autostart && noDeps {
			s.DependsOn = nil
		}
	}
	return specs
}

// AgentBase returns the environment that agents may inherit: all of this program, without
// variables that are only for it.
func AgentBase(environ []string) []string {
	var base []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES",
			"ORC_SESSION", "ORC_SESSION_TYPE", UpgradeEnv:
		default:
			base = append(base, entry)
		}
	}
	return base
}

// guest returns the agent that a program wants to be, if its name is free.
func (f *File) guest(ctx context.Context, query url.Values) (settings.Agent, error) {
	name, role, capabilities := query.Get("as"), query.Get("role"), query["capability"]
	onExit := cmp.Or(query.Get("on_exit"), "auto")
	works := role != "" || len(capabilities) > 0
	if role == "" {
		role = wire.RoleWorker
	}
	switch {
	case !config.IsName(name):
		return settings.Agent{}, unfit("as", fmt.Sprintf("%.80q is not a name for an agent", name), "A name has "+config.NameRule)
	case !config.IsRole(role):
		return settings.Agent{}, unfit("role", fmt.Sprintf("%.80q is not a role", role), "A role has "+config.NameRule)
	case slices.Contains(capabilities, ""):
		return settings.Agent{}, unfit("capability", "a capability must not be empty", "")
	case !slices.Contains(config.OnExits, onExit):
		return settings.Agent{}, unfit("on_exit", fmt.Sprintf("on_exit must be one of %s, not %.80q", strings.Join(config.OnExits, ", "), onExit), "")
	}
	if err := f.lock(ctx); err != nil {
		return settings.Agent{}, err
	}
	defer f.unlock()
	if f.Config == nil {
		return settings.Agent{}, &wire.Error{
			Code: wire.CodeConflict, Message: "this orchestrator runs one command, and no program can join it",
			Hint: "Start a team: orchestrator up",
		}
	}
	alone := *f.Config
	guest := alone.Guest(name, role, capabilities, works)
	guest.OnExit = onExit
	alone.Agents = []config.Agent{guest}
	return f.specs(&alone)[0], nil
}

func unfit(field, message, hint string) error {
	return &wire.Error{Code: wire.CodeInvalid, Message: message, Hint: hint, Details: map[string]any{"field": field}}
}
