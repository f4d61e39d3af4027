package supervisor

import (
	"context"
	"syscall"
	"time"

	"orchestrator/supervisor/adapter"
	"orchestrator/supervisor/adapter/acp"
	"orchestrator/supervisor/adapter/claude"
	"orchestrator/supervisor/adapter/codex"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/settings"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire/activity"
	"orchestrator/wire/control"
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

// An agent is the runtime state of an Agent. Only the goroutine of Run uses it. A change replaces its settings and does
// not write to them, so that its runs can share them.
type agent struct {
	*settings.Agent
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

// turn returns the current activity of a running agent, or nil if it does not report that.
func (a *agent) turn() *activity.Turn {
	if a.child == nil || a.channel == nil {
		return nil
	}
	return a.channel.Turn()
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
