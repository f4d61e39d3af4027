package team

import (
	"fmt"
	"hash/fnv"

	"orchestrator/handlers"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/dispatch"
	"orchestrator/wire"
	"orchestrator/wire/hub"
	"orchestrator/wire/session"
)

// Rules returns the settings of the configuration for messages and tasks.
func Rules(c *config.Config) (handlers.Rules, dispatch.Protocol) {
	p := c.Protocol
	m := c.Scheduler
	return handlers.Rules{
			RequestTimeout: p.RequestTimeout, OnDependencyFailure: p.OnDependencyFailure, LenientResults: !p.StrictResults,
			MatchOnCreate: m.OnCreate, IgnoreArrivals: !m.OnOnline, OnlineOnly: !m.AssignOffline,
			MergeQueue: c.Merge.Queue, CountAssigned: m.CountAssigned, MaxAttempts: m.MaxAttempts, DelegationRetries: m.DelegationRetries, Heartbeat: c.Bus.Heartbeat, Stale: c.Bus.Stale, Topics: c.Bus.Topics,
		},
		dispatch.Protocol{Depth: p.MaxDepth, Rate: p.Rate, Burst: p.Burst}
}

// Sessions returns the sessions of a configuration for package handlers.
func Sessions(c *config.Config) []session.Spec {
	var all []session.Spec
	for i := range c.Sessions {
		spec := c.Sessions[i].Spec
		spec.Verify = c.Sessions[i].Work.Verify
		all = append(all, spec)
	}
	return all
}

// Tasks returns the task blocks of a configuration as tasks to submit. Sum is a hash of all
// attributes of the block, with the names of the tasks that it needs.
func Tasks(c *config.Config) []wire.SubmitTask {
	var all []wire.SubmitTask
	for i := range c.Tasks {
		t := &c.Tasks[i]
		sum := fnv.New64a()
		_, _ = fmt.Fprintf(sum, "%q", []any{t.Title, t.Spec, t.Agent, t.Role, t.Requires, t.Needs})
		if t.Verify != nil {
			_, _ = fmt.Fprintf(sum, "%q", t.Verify)
		}
		all = append(all, wire.SubmitTask{
			Type: "task", Name: t.Title, Description: t.Spec, RequiredRole: t.Role, RequiredCapabilities: t.Requires, AssignTo: t.Agent,
			Verify: t.Verify,
			Block:  &hub.TaskBlock{Name: t.Name, Sum: sum.Sum64(), Needs: t.Needs},
		})
	}
	return all
}
