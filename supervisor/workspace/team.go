package workspace

import (
	"context"
	"maps"
	"slices"

	"orchestrator/supervisor/child"
	"orchestrator/wire"
)

// Trees configures the worktrees of tasks. Without a Repository, tasks have no worktrees.
type Trees struct {
	Repository string                   // a folder of the repository
	Branch     func(task string) string // the name of the branch of a task
	Base       string                   // "": the branch or commit that is checked out in the repository
	KeepAll    bool                     // no worktree is removed
	Filters    bool                     // git runs the filters that the configuration of the repository names
	Setup      [][]string
}

// An Agent configures the tasks of one agent.
type Agent struct {
	Name  string
	Role  string
	Place string // in the configuration, such as orchestrator.hcl:12
	Trees
	Verify   [][]string
	Attempts int                                  // failures before a person decides
	Outputs  map[string]func(result []byte) error // checks of results, by the capability or the type of a task
	Placed   bool                                 // it runs on another machine
	Dir      string                               // where commands run without a worktree
	Wrapped  bool                                 // another program puts it into a sandbox, which may not show other folders
	// Fill sets all of a spec for a process of the agent, except its command.
	Fill func(ctx context.Context, spec *child.Spec) error
}

// A Group configures the tasks of a session or of a task block, whatever their agents are.
type Group struct {
	Name  string // its name in errors, such as "session checkout"
	Place string
	Trees
	Verify [][]string // for Check, and for hubs: each task has its own
	Agent  string     // as which git runs if it is not for a task
}

// A Team is the configuration of all agents, sessions and task blocks.
type Team struct {
	Agents   map[string]*Agent
	Sessions map[string]*Group // by their names
	Blocks   map[string]*Group // by the names of task blocks
	Shared   bool              // a group has worktrees
	Queue    bool              // branches are merged when their tasks are done
	Verifies bool              // the work of an agent is verified, or its report compared with the real changes
}

// groups yields all groups.
func (t *Team) groups(yield func(*Group) bool) {
	for _, all := range []map[string]*Group{t.Sessions, t.Blocks} {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !yield(all[name]) {
				return
			}
		}
	}
}

// of returns the settings for a task of an agent, or nil if the team has no such agent.
func (t *Team) of(agent string, task *wire.Task) *Agent {
	own := t.Agents[agent]
	if own == nil || task.Details == nil {
		return own
	}
	a := *own
	a.Verify = slices.Concat(a.Verify, task.Verify)
	for _, g := range []*Group{t.Sessions[task.SessionID], t.Blocks[task.Block]} {
		if g != nil && g.Repository != "" {
			a.Trees = g.Trees
		}
	}
	return &a
}

// as returns an agent with the commands of a group.
func (t *Team) as(g *Group) *Agent {
	own := t.Agents[g.Agent]
	if own == nil {
		return nil
	}
	a := *own
	a.Trees, a.Verify = g.Trees, g.Verify
	return &a
}

// asOf returns the agent as which git runs for a task that may have ended: its own, or else the given one of its
// repository.
func (t *Team) asOf(other *Agent, task *wire.Task) *Agent {
	if a := t.of(task.AssignedTo, task); a != nil && a.Repository != "" {
		return a
	}
	a := *other
	if task.Details != nil {
		a.Verify = slices.Concat(a.Verify, task.Verify)
	}
	return &a
}
