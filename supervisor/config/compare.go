package config

import (
	"reflect"
	"slices"
	"strings"
)

// An Action is what a difference between two configurations requires of a running orchestrator.
type Action string

// The actions.
const (
	ActionLive    Action = "live"    // takes effect without a stop
	ActionStart   Action = "start"   // the agent is new
	ActionStop    Action = "stop"    // the agent is gone
	ActionRestart Action = "restart" // the agent is drained and started again
	ActionRefused Action = "refused" // the orchestrator itself has to be restarted
)

// A Change is one difference. Agent is empty if it does not concern an agent.
type Change struct {
	Agent      string
	Action     Action
	Attributes []string // such as "restart.delay"
	Place      string
	Detail     string
}

// Compare returns the changes that applying next requires while prev runs. Changes of settings
// come first, then changed agents in the order of next, then removed agents. A nil Config is
// empty.
func Compare(prev, next *Config) []Change {
	var changes []Change
	if prev != nil && next != nil {
		changes = append(compareSettings(prev, next), compareTasks(prev, next)...)
	}
	old, now := prev.byName(), next.byName()
	if next != nil {
		for i := range next.Agents {
			a := &next.Agents[i]
			if c, ok := compareAgent(old[a.Name], a, prev.scaled(a.Block)); ok {
				changes = append(changes, c)
			}
		}
	}
	if prev != nil {
		for i := range prev.Agents {
			if a := &prev.Agents[i]; now[a.Name] == nil {
				changes = append(changes, stopped(a, next.scaled(a.Block)))
			}
		}
	}
	return changes
}

func (c *Config) byName() map[string]*Agent {
	agents := map[string]*Agent{}
	if c == nil {
		return agents
	}
	for i := range c.Agents {
		agents[c.Agents[i].Name] = &c.Agents[i]
	}
	return agents
}

// scaled returns the attribute that adds or removes an agent whose block is in both
// configurations.
func (c *Config) scaled(block string) []string {
	if c != nil && c.places["agent."+block] != "" {
		return []string{"replicas"}
	}
	return nil
}

func compareSettings(prev, next *Config) []Change {
	var changes []Change
	for _, s := range settingTable {
		if same(s.of(prev), s.of(next)) {
			continue
		}
		c := Change{Action: s.needs, Attributes: []string{s.name}, Place: next.Place(s.name)}
		if c.Place == "" {
			c.Place = prev.Place(s.name)
		}
		c.Detail = s.name + " takes effect at once"
		if s.needs == ActionRefused {
			c.Detail = s.name + " cannot change while the orchestrator runs; restart it"
		}
		changes = append(changes, c)
	}
	return changes
}

// compareTasks returns the changes of task blocks. A task is given out once, so a changed or
// removed block has no effect on it.
func compareTasks(prev, next *Config) []Change {
	var changes []Change
	add := func(place, name, detail string) {
		changes = append(changes, Change{Action: ActionLive, Attributes: []string{name}, Place: place, Detail: name + detail})
	}
	old := map[string]*Task{}
	for i := range prev.Tasks {
		old[prev.Tasks[i].Name] = &prev.Tasks[i]
	}
	for i := range next.Tasks {
		t := &next.Tasks[i]
		name := "task." + t.Name
		switch before := old[t.Name]; {
		case before == nil:
			add(next.Place(name), name, " is given out, unless it was before")
		case !same(*before, *t):
			add(next.Place(name), name, " was given out before, and its task stays as it was")
		}
		delete(old, t.Name)
	}
	for i := range prev.Tasks {
		if name := "task." + prev.Tasks[i].Name; old[prev.Tasks[i].Name] != nil {
			add(prev.Place(name), name, " is not declared any more; its task stays")
		}
	}
	return changes
}

func compareAgent(old, now *Agent, scaled []string) (Change, bool) {
	c := Change{Agent: now.Name, Place: now.Place}
	if old == nil {
		c.Action, c.Attributes, c.Detail = ActionStart, scaled, "is new"
		if scaled != nil {
			c.Detail = "is one more replica"
		}
		return c, true
	}
	var breaking []string
	for _, t := range agentTable {
		if same(t.of(old), t.of(now)) {
			continue
		}
		c.Attributes = append(c.Attributes, t.name)
		if t.needs == ActionRestart {
			breaking = append(breaking, t.name)
		}
	}
	switch {
	case len(c.Attributes) == 0:
		return Change{}, false
	case len(breaking) > 0:
		c.Action = ActionRestart
		c.Detail = strings.Join(breaking, ", ") + changeVerb(breaking) + " only at a start; it is drained and started again"
	default:
		c.Action = ActionLive
		c.Detail = strings.Join(c.Attributes, ", ") + changeVerb(c.Attributes) + " at once"
	}
	return c, true
}

func changeVerb(names []string) string {
	if len(names) == 1 {
		return " takes effect"
	}
	return " take effect"
}

func stopped(a *Agent, scaled []string) Change {
	c := Change{Agent: a.Name, Action: ActionStop, Attributes: scaled, Place: a.Place, Detail: "is not declared any more"}
	if scaled != nil {
		c.Detail = "is a replica too many"
	}
	return c
}

// same compares values of attributes. An empty list equals a nil one.
func same(a, b any) bool {
	if x, ok := a.([]string); ok {
		return slices.Equal(x, b.([]string))
	}
	if x, ok := a.([]int); ok {
		return slices.Equal(x, b.([]int))
	}
	return reflect.DeepEqual(a, b)
}

// The tables below must match the reload table of the package comment.

// agentTable lists every attribute of an agent, and what a change of it requires.
var agentTable = []struct {
	name  string
	needs Action
	of    func(*Agent) any
}{
	{name: "command", needs: ActionRestart, of: func(a *Agent) any { return a.Command }},
	{name: "wrap", needs: ActionRestart, of: func(a *Agent) any { return a.Wrap }},
	{name: "user", needs: ActionRestart, of: func(a *Agent) any { return a.User }},
	{name: "description", needs: ActionLive, of: func(a *Agent) any { return a.Description }},
	{name: "dir", needs: ActionRestart, of: func(a *Agent) any { return a.Dir }},
	{name: "env", needs: ActionRestart, of: func(a *Agent) any { return a.env.print }},
	{name: "env_file", needs: ActionRestart, of: func(a *Agent) any { return a.EnvFile }},
	{name: "inherit_env", needs: ActionRestart, of: func(a *Agent) any { return a.InheritEnv }},
	{name: "protocol", needs: ActionRestart, of: func(a *Agent) any { return a.Protocol }},
	{name: "stdin", needs: ActionRestart, of: func(a *Agent) any { return a.Stdin }},
	{name: "role", needs: ActionLive, of: func(a *Agent) any { return a.Role }},
	{name: "actor", needs: ActionRestart, of: func(a *Agent) any { return a.Actor }},
	{name: "pty", needs: ActionRestart, of: func(a *Agent) any { return a.Pty }},
	{name: "operator", needs: ActionLive, of: func(a *Agent) any { return a.Operator }},
	{name: "manage", needs: ActionLive, of: func(a *Agent) any { return a.Manage }},
	{name: "depends_on", needs: ActionLive, of: func(a *Agent) any { return a.DependsOn }},
	{name: "autostart", needs: ActionLive, of: func(a *Agent) any { return a.Autostart }},
	{name: "on_exit", needs: ActionLive, of: func(a *Agent) any { return a.OnExit }},
	{name: "verify", needs: ActionLive, of: func(a *Agent) any { return a.Verify }},
	{name: "verify_env", needs: ActionLive, of: func(a *Agent) any { return a.VerifyEnv }},
	{name: "permission", needs: ActionRestart, of: func(a *Agent) any { return a.Client.Permission }},
	{name: "allow", needs: ActionRestart, of: func(a *Agent) any { return a.Client.Allow }},
	{name: "model", needs: ActionRestart, of: func(a *Agent) any { return a.Client.Model }},
	{name: "instructions", needs: ActionRestart, of: func(a *Agent) any { return a.Client.Instructions }},
	{name: "on_turn_end", needs: ActionRestart, of: func(a *Agent) any { return a.Client.OnTurnEnd }},
	{name: "resume", needs: ActionRestart, of: func(a *Agent) any { return a.Client.Resume }},
	{name: "wire_log", needs: ActionRestart, of: func(a *Agent) any { return a.Client.WireLog }},
	{name: "restart.policy", needs: ActionLive, of: func(a *Agent) any { return a.Restart.Policy }},
	{name: "restart.delay", needs: ActionLive, of: func(a *Agent) any { return a.Restart.Delay }},
	{name: "restart.factor", needs: ActionLive, of: func(a *Agent) any { return a.Restart.Factor }},
	{name: "restart.max_delay", needs: ActionLive, of: func(a *Agent) any { return a.Restart.MaxDelay }},
	{name: "restart.jitter", needs: ActionLive, of: func(a *Agent) any { return a.Restart.Jitter }},
	{name: "restart.reset_after", needs: ActionLive, of: func(a *Agent) any { return a.Restart.ResetAfter }},
	{name: "restart.burst", needs: ActionLive, of: func(a *Agent) any { return a.Restart.Burst }},
	{name: "restart.window", needs: ActionLive, of: func(a *Agent) any { return a.Restart.Window }},
	{name: "restart.permanent", needs: ActionLive, of: func(a *Agent) any { return a.Restart.Permanent }},
	{name: "stop.close_stdin", needs: ActionLive, of: func(a *Agent) any { return []any{a.Stop.CloseStdin, a.Stop.Unspoken} }},
	{name: "stop.signal", needs: ActionLive, of: func(a *Agent) any { return a.Stop.Signal }},
	{name: "stop.grace", needs: ActionLive, of: func(a *Agent) any { return a.Stop.Grace }},
	{name: "health.silence", needs: ActionLive, of: func(a *Agent) any { return a.Health.Silence }},
	{name: "health.write_timeout", needs: ActionLive, of: func(a *Agent) any { return a.Health.WriteTimeout }},
	{name: "health.on_stalled", needs: ActionLive, of: func(a *Agent) any { return a.Health.OnStalled }},
	{name: "limits.mailbox", needs: ActionRestart, of: func(a *Agent) any { return a.Limits.Mailbox }},
	{name: "limits.mailbox_bytes", needs: ActionRestart, of: func(a *Agent) any { return a.Limits.MailboxBytes }},
	{name: "limits.open_files", needs: ActionRestart, of: func(a *Agent) any { return a.Limits.OpenFiles }},
	{name: "limits.memory", needs: ActionRestart, of: func(a *Agent) any { return a.Limits.Memory }},
	{name: "limits.processes", needs: ActionRestart, of: func(a *Agent) any { return a.Limits.Processes }},
	{name: "limits.cpu", needs: ActionRestart, of: func(a *Agent) any { return a.Limits.CPU }},
	{name: "limits.open_tasks", needs: ActionLive, of: func(a *Agent) any { return a.Limits.OpenTasks }},
	{name: "limits.stored", needs: ActionLive, of: func(a *Agent) any { return a.Limits.Stored }},
	{name: "limits.rate_bytes", needs: ActionRestart, of: func(a *Agent) any { return a.Limits.RateBytes }},
	{name: "limits.connections", needs: ActionLive, of: func(a *Agent) any { return a.Limits.Connections }},
	{name: "output.dir", needs: ActionRestart, of: func(a *Agent) any { return a.Output.Dir }},
	{name: "output.max_size", needs: ActionLive, of: func(a *Agent) any { return a.Output.MaxSize }},
	{name: "output.keep", needs: ActionLive, of: func(a *Agent) any { return a.Output.Keep }},
	{name: "output.tail", needs: ActionLive, of: func(a *Agent) any { return a.Output.Tail }},
	{name: "confine", needs: ActionRestart, of: func(a *Agent) any { return a.Confine }},
	{name: "capabilities", needs: ActionLive, of: func(a *Agent) any { return a.Capabilities }},
	{name: "mcp", needs: ActionRestart, of: func(a *Agent) any { return a.Client.Servers }},
	{name: "placement", needs: ActionRestart, of: func(a *Agent) any { return a.Placement }},
	{name: "workspace", needs: ActionLive, of: func(a *Agent) any { return a.Workspace }},
	{name: "budget", needs: ActionLive, of: func(a *Agent) any { return a.Budget }},
}

// settingTable is the same for attributes outside agents.
var settingTable = []struct {
	name  string
	needs Action
	of    func(*Config) any
}{
	{name: "orchestrator.name", needs: ActionRefused, of: func(c *Config) any { return c.Orchestrator.Name }},
	{name: "orchestrator.state_dir", needs: ActionRefused, of: func(c *Config) any { return c.Orchestrator.StateDir }},
	{name: "orchestrator.shutdown", needs: ActionRefused, of: func(c *Config) any { return c.Orchestrator.Shutdown }},
	{name: "http.listen", needs: ActionRefused, of: func(c *Config) any { return c.HTTP.Listen }},
	{name: "http.hosts", needs: ActionRefused, of: func(c *Config) any { return c.HTTP.Hosts }},
	{name: "http.max_body", needs: ActionRefused, of: func(c *Config) any { return c.HTTP.MaxBody }},
	{name: "http.rate", needs: ActionRefused, of: func(c *Config) any { return c.HTTP.Rate }},
	{name: "http.certificate", needs: ActionRefused, of: func(c *Config) any { return c.HTTP.Certificate }},
	{name: "http.key", needs: ActionRefused, of: func(c *Config) any { return c.HTTP.Key }},
	{name: "log.level", needs: ActionLive, of: func(c *Config) any { return c.Log.Level }},
	{name: "log.format", needs: ActionRefused, of: func(c *Config) any { return c.Log.Format }},
	{name: "store.kind", needs: ActionRefused, of: func(c *Config) any { return c.Store.Kind }},
	{name: "store.path", needs: ActionRefused, of: func(c *Config) any { return c.Store.Path }},
	{name: "store.durable", needs: ActionRefused, of: func(c *Config) any { return c.Store.Durable }},
	{name: "store.keep", needs: ActionRefused, of: func(c *Config) any { return [2]int64{int64(c.Store.KeepFor), c.Store.KeepBytes} }},
	{name: "store.url", needs: ActionRefused, of: func(c *Config) any { return []any{c.Store.URL, c.Store.Servers, c.Store.User} }},
	{name: "store.monitor", needs: ActionRefused, of: func(c *Config) any { return c.Store.Monitors }},
	{name: "store.peers", needs: ActionRefused, of: func(c *Config) any { return []any{c.Store.Peers, c.Store.Node} }},
	{name: "store.log", needs: ActionRefused, of: func(c *Config) any { return c.Store.Log }},
	{name: "store.credentials", needs: ActionRefused, of: func(c *Config) any { return c.Store.Credentials }},
	{name: "store.ca", needs: ActionRefused, of: func(c *Config) any { return c.Store.CA }},
	{name: "store.certificate", needs: ActionRefused, of: func(c *Config) any { return c.Store.Certificate }},
	{name: "store.key", needs: ActionRefused, of: func(c *Config) any { return c.Store.Key }},
	{name: "protocol.max_line", needs: ActionRefused, of: func(c *Config) any { return c.Protocol.MaxLine }},
	{name: "protocol.max_depth", needs: ActionRefused, of: func(c *Config) any { return c.Protocol.MaxDepth }},
	{name: "protocol.rate", needs: ActionRefused, of: func(c *Config) any { return c.Protocol.Rate }},
	{name: "protocol.burst", needs: ActionRefused, of: func(c *Config) any { return c.Protocol.Burst }},
	{name: "protocol.request_timeout", needs: ActionLive, of: func(c *Config) any { return c.Protocol.RequestTimeout }},
	{name: "protocol.on_dependency_failure", needs: ActionLive, of: func(c *Config) any { return c.Protocol.OnDependencyFailure }},
	{name: "protocol.strict_results", needs: ActionLive, of: func(c *Config) any { return c.Protocol.StrictResults }},
	{name: "scheduler.on_create", needs: ActionLive, of: func(c *Config) any { return c.Scheduler.OnCreate }},
	{name: "scheduler.on_online", needs: ActionLive, of: func(c *Config) any { return c.Scheduler.OnOnline }},
	{name: "scheduler.assign_offline", needs: ActionLive, of: func(c *Config) any { return c.Scheduler.AssignOffline }},
	{name: "scheduler.count_assigned", needs: ActionLive, of: func(c *Config) any { return c.Scheduler.CountAssigned }},
	{name: "scheduler.max_attempts", needs: ActionLive, of: func(c *Config) any { return c.Scheduler.MaxAttempts }},
	{name: "scheduler.verify_attempts", needs: ActionLive, of: func(c *Config) any { return c.Scheduler.VerifyAttempts }},
	{name: "scheduler.delegation_retries", needs: ActionLive, of: func(c *Config) any { return c.Scheduler.DelegationRetries }},
	{name: "bus.heartbeat", needs: ActionLive, of: func(c *Config) any { return c.Bus.Heartbeat }},
	{name: "bus.stale", needs: ActionLive, of: func(c *Config) any { return c.Bus.Stale }},
	{name: "bus.topics", needs: ActionLive, of: func(c *Config) any { return c.Bus.Topics }},
	{name: "notify", needs: ActionLive, of: func(c *Config) any { return c.Notify }},
	{name: "prices", needs: ActionLive, of: func(c *Config) any { return c.Prices }},
	{name: "merge.queue", needs: ActionLive, of: func(c *Config) any { return c.Merge.Queue }},
	{name: "host", needs: ActionLive, of: func(c *Config) any { return c.Hosts }},
	{name: "session", needs: ActionLive, of: func(c *Config) any { return c.Sessions }},
}
