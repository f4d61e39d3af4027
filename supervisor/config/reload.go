package config

// The tables below must match the reload table of the package comment.

// agentTable lists every attribute of an agent, and what a change of it requires.
var agentTable = []struct {
	name  string
	needs Action
	of    func(*Agent) any
}{
	{name: "command", needs: ActionRestart, of: func(a *Agent) any { return a.Command }},
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
	{name: "depends_on", needs: ActionLive, of: func(a *Agent) any { return a.DependsOn }},
	{name: "autostart", needs: ActionLive, of: func(a *Agent) any { return a.Autostart }},
	{name: "on_exit", needs: ActionLive, of: func(a *Agent) any { return a.OnExit }},
	{name: "permission", needs: ActionRestart, of: func(a *Agent) any { return a.Client.Permission }},
	{name: "allow", needs: ActionRestart, of: func(a *Agent) any { return a.Client.Allow }},
	{name: "model", needs: ActionRestart, of: func(a *Agent) any { return a.Client.Model }},
	{name: "instructions", needs: ActionRestart, of: func(a *Agent) any { return a.Client.Instructions }},
	{name: "on_turn_end", needs: ActionRestart, of: func(a *Agent) any { return a.Client.OnTurnEnd }},
	{name: "resume", needs: ActionRestart, of: func(a *Agent) any { return a.Client.Resume }},
	{name: "mcp", needs: ActionRestart, of: func(a *Agent) any { return a.Client.Servers }},
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
	{name: "output.dir", needs: ActionRestart, of: func(a *Agent) any { return a.Output.Dir }},
	{name: "output.max_size", needs: ActionLive, of: func(a *Agent) any { return a.Output.MaxSize }},
	{name: "output.keep", needs: ActionLive, of: func(a *Agent) any { return a.Output.Keep }},
	{name: "output.tail", needs: ActionLive, of: func(a *Agent) any { return a.Output.Tail }},
	{name: "capabilities", needs: ActionLive, of: func(a *Agent) any { return a.Capabilities }},
}

// settingTable is the same for attributes outside agents.
var settingTable = []struct {
	name  string
	needs Action
	of    func(*Config) any
}{
	{name: "orchestrator.name", needs: ActionRefused, of: func(c *Config) any { return c.Orchestrator.Name }},
	{name: "orchestrator.state_dir", needs: ActionRefused, of: func(c *Config) any { return c.Orchestrator.StateDir }},
	{name: "orchestrator.shutdown", needs: ActionLive, of: func(c *Config) any { return c.Orchestrator.Shutdown }},
	{name: "http.listen", needs: ActionRefused, of: func(c *Config) any { return c.HTTP.Listen }},
	{name: "http.hosts", needs: ActionRefused, of: func(c *Config) any { return c.HTTP.Hosts }},
	{name: "http.max_body", needs: ActionRefused, of: func(c *Config) any { return c.HTTP.MaxBody }},
	{name: "http.rate", needs: ActionRefused, of: func(c *Config) any { return c.HTTP.Rate }},
	{name: "http.certificate", needs: ActionRefused, of: func(c *Config) any { return c.HTTP.Certificate }},
	{name: "http.key", needs: ActionRefused, of: func(c *Config) any { return c.HTTP.Key }},
	{name: "log.level", needs: ActionLive, of: func(c *Config) any { return c.Log.Level }},
	{name: "log.format", needs: ActionLive, of: func(c *Config) any { return c.Log.Format }},
	{name: "store.kind", needs: ActionRefused, of: func(c *Config) any { return c.Store.Kind }},
	{name: "store.path", needs: ActionRefused, of: func(c *Config) any { return c.Store.Path }},
	{name: "store.durable", needs: ActionRefused, of: func(c *Config) any { return c.Store.Durable }},
	{name: "protocol.max_line", needs: ActionLive, of: func(c *Config) any { return c.Protocol.MaxLine }},
	{name: "protocol.max_depth", needs: ActionLive, of: func(c *Config) any { return c.Protocol.MaxDepth }},
	{name: "protocol.rate", needs: ActionLive, of: func(c *Config) any { return c.Protocol.Rate }},
	{name: "protocol.burst", needs: ActionLive, of: func(c *Config) any { return c.Protocol.Burst }},
	{name: "protocol.request_timeout", needs: ActionLive, of: func(c *Config) any { return c.Protocol.RequestTimeout }},
	{name: "protocol.on_dependency_failure", needs: ActionLive, of: func(c *Config) any { return c.Protocol.OnDependencyFailure }},
	{name: "protocol.strict_results", needs: ActionLive, of: func(c *Config) any { return c.Protocol.StrictResults }},
	{name: "scheduler.on_create", needs: ActionLive, of: func(c *Config) any { return c.Scheduler.OnCreate }},
	{name: "scheduler.on_online", needs: ActionLive, of: func(c *Config) any { return c.Scheduler.OnOnline }},
	{name: "scheduler.assign_offline", needs: ActionLive, of: func(c *Config) any { return c.Scheduler.AssignOffline }},
	{name: "scheduler.count_assigned", needs: ActionLive, of: func(c *Config) any { return c.Scheduler.CountAssigned }},
	{name: "scheduler.max_attempts", needs: ActionLive, of: func(c *Config) any { return c.Scheduler.MaxAttempts }},
	{name: "scheduler.delegation_retries", needs: ActionLive, of: func(c *Config) any { return c.Scheduler.DelegationRetries }},
	{name: "bus.heartbeat", needs: ActionLive, of: func(c *Config) any { return c.Bus.Heartbeat }},
	{name: "bus.stale", needs: ActionLive, of: func(c *Config) any { return c.Bus.Stale }},
	{name: "bus.topics", needs: ActionLive, of: func(c *Config) any { return c.Bus.Topics }},
	{name: "session", needs: ActionLive, of: func(c *Config) any { return c.Sessions }},
}
