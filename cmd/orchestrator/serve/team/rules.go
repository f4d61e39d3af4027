package team

import (
	"fmt"
	"hash/fnv"
	"time"

	"orchestrator/handlers"
	"orchestrator/supervisor/config"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/hosts"
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

// Sessions returns the sessions of a configuration for package handlers. It rounds times up
// to milliseconds, because 0 means none.
func Sessions(c *config.Config) []session.Spec {
	milliseconds := func(d time.Duration) int64 { return (d + time.Millisecond - 1).Milliseconds() }
	var all []session.Spec
	for i := range c.Sessions {
		s := &c.Sessions[i]
		spec := session.Spec{
			Verify: s.Verify,
			ID:     s.Name, Validation: s.Validation, MaxIterations: int64(s.MaxIterations), OnMax: s.OnMax, RequireReview: s.RequireReview,
			TaskTimeout: milliseconds(s.TaskTimeout), ProgressAfter: milliseconds(s.ProgressAfter), ProgressEvery: milliseconds(s.ProgressEvery),
		}
		for _, m := range s.Members {
			spec.Members = append(spec.Members, session.Member{AgentID: m.Name, AgentType: m.Type})
		}
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

// HostRules returns the host blocks of a configuration.
func HostRules(c *config.Config) (rules []hosts.Rule) {
	for _, h := range c.Hosts {
		rules = append(rules, hosts.Rule(h))
	}
	return rules
}
