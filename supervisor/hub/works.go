package hub

import (
	"context"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/home"
	"orchestrator/supervisor/hub/team"
	"orchestrator/supervisor/workspace"
)

// works are the part of a hub that gives tasks their workspaces, verifies them and merges their branches.
type works struct {
	*workspace.Manager
	own    *requester
	config *config.Config
	file   *File
	queue  *workspace.Queue // nil if only people merge branches
}

// prepare makes the workspaces of a place that is held.
func (w *works) prepare(p *Place) {
	w.Manager = workspace.New(workspace.Options{
		Start: func(spec child.Spec) (workspace.Process, error) { return p.Host.Start(spec) }, Tasks: workTasks{w.own},
		Log: p.Log.Named("workspaces"), Apart: p.Home.Apart, Notes: home.Notes(p.Home.Dir),
	})
	w.Set(team.Workspaces(w.config, w.file.Base))
}

// Start begins to merge, if the configuration has a queue.
func (w *works) Start(context.Context) error {
	w.merge(w.config)
	return nil
}

// Stop ends merging.
func (w *works) Stop() { w.queue.Close() }

// merge begins to merge the branches of tasks that are done, or ends that, by a configuration.
func (w *works) merge(c *config.Config) {
	if !c.Merge.Queue {
		w.queue.Close()
		w.queue = nil
	}
	if w.queue == nil && c.Merge.Queue {
		w.queue = w.OpenQueue(w.own.Seq())
	}
}
