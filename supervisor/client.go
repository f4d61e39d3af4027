package supervisor

import (
	"fmt"
	"strings"

	"orchestrator/handlers"
	"orchestrator/supervisor/adapter"
	"orchestrator/supervisor/adapter/acp"
	"orchestrator/supervisor/adapter/claude"
	"orchestrator/supervisor/adapter/codex"
	"orchestrator/supervisor/child"
	"orchestrator/wire/activity"
)

// A Client makes an agent a coding agent: its program speaks a protocol of its own, and an
// adapter makes it a member of the team.
type Client struct {
	Protocol string // one of the keys of clients
	Resume   bool   // each run goes on with the conversation of the run before
	Opening  adapter.Opening
}

// clients has the protocols of coding agents.
var clients = map[string]struct {
	launch func(command []string, o *adapter.Opening) []string
	begin  func() adapter.Client
}{
	"claude": {claude.Launch, func() adapter.Client { return claude.New() }},
	"codex":  {codex.Launch, func() adapter.Client { return codex.New() }},
	"acp":    {acp.Launch, func() adapter.Client { return acp.New() }},
}

// turn returns what a running agent does at the moment, or nil if it does not report that.
func (a *agent) turn() *activity.Turn {
	if a.child == nil || a.channel == nil {
		return nil
	}
	return a.channel.Turn()
}

// conversation returns the conversation of the program of an agent, or "". The conversation of
// a coding agent is only for the program and the folder in which it was begun.
func (l *lifecycle) conversation(spec *Agent) (id string) {
	l.dispatcher.Look(func(s *handlers.State) {
		known := s.Activity(spec.Name)
		if known != nil && (spec.Client == nil || known.Kind == spec.Client.Protocol && known.Dir == spec.Dir) {
			id = known.Conversation
		}
	})
	return id
}

// startClient creates the process of a coding agent.
func (l *lifecycle) startClient(sr *startRequest, spec child.Spec, conversation string) (Process, error) {
	c := sr.spec.Client
	kind, ok := clients[c.Protocol]
	if !ok {
		return nil, fmt.Errorf("there is no protocol %q", c.Protocol)
	}
	o := c.Opening
	o.Agent, o.Run, o.Dir, o.Protocol = sr.spec.Name, sr.run, sr.spec.Dir, c.Protocol
	if c.Resume {
		o.Conversation = conversation
	}
	if c.Protocol != "acp" {
		o.Door = nil // it takes our tools in band
	}
	for _, entry := range spec.Env {
		if name, _, _ := strings.Cut(entry, "="); name == "ORC_SOCKET" || name == "ORC_AGENT_ID" {
			o.DoorEnv = append(o.DoorEnv, entry)
		}
	}
	if c.Protocol == "acp" {
		spec.Env = append(spec.Env, acp.Environ(spec.Command, &o)...)
	}
	spec.Command = kind.launch(spec.Command, &o)
	start := func(spec child.Spec) (adapter.Program, error) { return l.options.Start(spec) }
	return adapter.Start(start, spec, adapter.NewMachine(kind.begin(), &o), sr.spec.MaxLine)
}
