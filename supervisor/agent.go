package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"orchestrator/handlers"
	"orchestrator/supervisor/adapter"
	"orchestrator/supervisor/adapter/acp"
	"orchestrator/supervisor/adapter/claude"
	"orchestrator/supervisor/adapter/codex"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/settings"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/activity"
	"orchestrator/wire/control"
	"orchestrator/wire/mail"
	"orchestrator/wire/object"
	"orchestrator/wire/session"
)

// A Process is one run of an agent: a child.Child, a connection of a program that joined, or a
// function in a test.
type Process interface {
	PID() int // 0 if it is not a child process
	StartedAt() time.Time
	Stdin() child.Stdin
	CloseStdin() bool
	Signal(syscall.Signal)
	Kill()
	Unread() int64
	Usage() (cpuMS, rss int64)
}

// A named actor belongs to one run at a time. If the configuration gives the name to another
// agent, that agent starts only after the run that holds the name has ended. Otherwise two
// agents would send as the same actor and read the same mail.

// takeActor records which actor the new run of a uses for its mail.
func (l *lifecycle) takeActor(a *agent) {
	a.as = a.Actor
	if a.as != "" && !mail.PerRun(a.as) {
		l.actors[a.as] = a
	}
}

// actorHolder returns the agent that still holds the actor that a needs, or nil.
func (l *lifecycle) actorHolder(a *agent) *agent {
	actor := a.Actor
	if a.next != nil {
		actor = a.next.Actor
	}
	holder := l.actors[actor]
	if holder == nil || holder == a || holder.as != actor || holder.child == nil && holder.state != control.StateStarting {
		return nil
	}
	return holder
}

// vacateActor releases the actor of an ended run and wakes the agents that waited for it.
func (l *lifecycle) vacateActor(a *agent) {
	if l.actors[a.as] == a {
		delete(l.actors, a.as)
		l.wakeWaiting()
	}
}

// An agent is the runtime state of an Agent. Only the goroutine of Run uses it.
type agent struct {
	settings.Agent
	voice *output.Agent

	state     control.State
	reason    string
	wanted    bool // it should run
	freely    bool // it runs without its dependencies
	removed   bool // no longer in the configuration
	next      *settings.Agent
	as        string          // the named actor of its latest run, or ""
	joined    *connection     // the connection that is its run, or nil
	lostHost  string          // the host that it waits for, or ""
	guest     bool            // not in the configuration: exists as long as its connection
	heir      *settings.Agent // for a guest: the configured agent of the same name
	run       string
	child     Process
	channel   *dispatch.Channel // of its run; nil if all its output is log
	speech    *output.Run       // the output of its run
	mail      *stdin.Mailbox
	exit      *child.Exit // exit of the current run, once the leader is dead
	lastExit  string
	lastUp    time.Duration
	lastStop  string // how its last stop went
	endedRun  string // the last run that has ended
	survivors int    // processes left by its last run
	starts    int
	restarts  int
	refused   int64 // messages refused in earlier runs
	history   restartHistory
	halt      *stopRequest // nil unless a stop was requested
	due       *deadline    // the next restart, or the next rung of the stop
	watch     *deadline    // the next check for silence
	proof     *deadline    // when the start counts as successful
	expected  []expectation
	cancel    context.CancelFunc // cancels the start in progress
	afresh    bool               // start it again, on request, when its tree is empty

	deaf, silent, stopped, far string    // reasons for stalling, by cause
	thaw                       *deadline // when it counts as stopped by a signal
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
func (l *lifecycle) conversation(spec *settings.Agent) (id string) {
	l.dispatcher.Look(func(s *handlers.State) {
		known := s.Activity(spec.Name)
		if known != nil && (spec.Client == nil || known.Kind == spec.Client.Protocol && known.Dir == spec.Dir) {
			id = known.Conversation
		}
	})
	return id
}

// startClient creates the process of a coding agent. The run is that of spec. The wrap function gets
// the client of the adapter before it is used; nil leaves it as it is.
func startClient(a *settings.Agent, start func(child.Spec) (Process, error), spec child.Spec, conversation string, wrap func(adapter.Client) adapter.Client) (Process, error) {
	c := a.Client
	kind, ok := clients[c.Protocol]
	if !ok {
		return nil, fmt.Errorf("there is no protocol %q", c.Protocol)
	}
	o := c.Opening
	o.Agent, o.Run, o.Dir, o.Protocol = a.Name, spec.Run, a.Dir, c.Protocol
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
	if o.Door != nil && !spec.User.MayExecute(o.Door[0]) {
		return nil, &child.StartError{
			Reason: fmt.Sprintf("user %q cannot execute %s, which gives the agent its tools", spec.User.Name, o.Door[0]),
			Hint:   "install orchestrator where all users can execute it, such as /usr/local/bin", Err: os.ErrPermission,
		}
	}
	if c.Protocol == "acp" {
		spec.Env = append(spec.Env, acp.Environ(spec.Command, &o)...)
	}
	spec.Command = kind.launch(spec.Command, &o)
	client := kind.begin()
	var wire *adapter.WireLog
	switch {
	case wrap != nil: // it is only examined
		client = wrap(client)
	case c.WireLog:
		wire = &adapter.WireLog{Dir: filepath.Join(a.Output.Dir, a.Name)}
	}
	program := func(spec child.Spec) (adapter.Program, error) { return start(spec) }
	return adapter.Start(program, spec, adapter.NewMachine(client, &o), a.MaxLine, wire)
}

// sessionSpecs are the sessions of the configuration, in order.
type sessionSpecs []session.Spec

// environment returns the environment variables that describe an agent's session, or the first of
// several.
func (s sessionSpecs) environment(agent string) []string {
	for i := range s {
		for _, m := range s[i].Members {
			if m.AgentID == agent {
				return []string{"ORC_SESSION=" + s[i].ID, "ORC_SESSION_TYPE=" + m.AgentType}
			}
		}
	}
	return nil
}

// sessionClosed stops the agents that are to end with their session. Some of them may run
// elsewhere.
func (l *lifecycle) sessionClosed(r *wire.Record) {
	var over struct {
		Reason string   `json:"reason"`
		Stop   []string `json:"stop"`
	}
	if err := object.DecodeOwn(r.Payload, &over); err != nil {
		l.options.Log.Error("it cannot be read which agents end with a session", "seq", r.Seq, "error", err)
		return
	}
	if len(over.Stop) == 0 {
		return
	}
	l.post(func() {
		if l.stopping != nil {
			return // all agents are being stopped
		}
		var agents []*agent
		for _, name := range over.Stop {
			if a := l.agents[name]; a != nil && !a.removed && !slices.Contains(agents, a) {
				agents = append(agents, a)
			}
		}
		l.halts(agents, "its session was aborted: "+over.Reason)
	})
}

// hasArchitect reports whether an agent is the architect of a session of the configuration.
func (s sessionSpecs) hasArchitect(agent string) bool {
	for i := range s {
		for _, m := range s[i].Members {
			if m.AgentID == agent && m.AgentType == session.AgentArchitect {
				return true
			}
		}
	}
	return false
}
