package supervisor

import (
	"cmp"
	"context"
	"syscall"
	"time"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/dispatch"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/control"
	"orchestrator/wire/mail"
)

// An Agent specifies what to run and how to keep it running.
type Agent struct {
	Name        string
	Block       string // name of the block, shared by the replicas of one agent
	Place       string // position in the configuration file
	Description string
	Role        string
	Actor       string   // the actor whose mail it reads; "": a worker, a new actor for each run
	Offers      []string // capabilities, in one list
	Names       []string // the capabilities that are only names
	Abilities   wire.Raw // a capabilities document, nil for none
	Capacity    int      // tasks at a time; 0: it gets no tasks
	OnExit      string   // what happens to its task when it exits: auto | fail | requeue
	Command     []string
	Dir         string
	// Environ returns the environment of one start. It runs outside the supervisor's goroutine,
	// so it may read files and block until ctx is done.
	Environ   func(ctx context.Context) ([]string, error)
	Client    *Client // its program is a coding agent; nil if it speaks our protocol
	Raw       bool    // it does not speak the protocol; nothing is sent to it
	NoStdin   bool
	Pty       bool
	DependsOn []string
	Autostart bool
	MaxLine   int // bytes
	Restart   Restart
	Stop      StopSequence
	Health    Health
	Mailbox   stdin.Limits
	Limits    child.Limits
	Output    output.Limits
}

// actor returns the actor whose mail a run reads.
func (a *Agent) actor(run string) string { return mail.ActorOfRun(cmp.Or(a.Actor, "W"), run) }

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

// A StopSequence holds the delays and the signal that stop an agent, in order.
type StopSequence struct {
	CloseStdin time.Duration // after the notice and the end of stdin; the notice states this time
	Unspoken   time.Duration // replaces CloseStdin for an agent that has sent no message in this run
	Signal     syscall.Signal
	Grace      time.Duration // after the signal; then the tree is killed
}

// Health determines when an agent counts as stalled.
type Health struct {
	Silence      time.Duration // without output; 0: never
	WriteTimeout time.Duration // how long a write to stdin may block
	Restart      bool          // restart a stalled agent instead of only marking it
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
	Agent
	voice *output.Agent

	state     control.State
	reason    string
	wanted    bool // it should run
	freely    bool // it runs without its dependencies
	removed   bool // no longer in the configuration
	next      *Agent
	as        string      // the named actor of its latest run, or ""
	joined    *connection // the connection that is its run, or nil
	guest     bool        // not in the configuration: exists as long as its connection
	heir      *Agent      // for a guest: the configured agent of the same name
	run       string
	child     Process
	channel   *dispatch.Channel // of its run; nil if all its output is log
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

	deaf, silent, stopped string    // reasons for stalling, by cause
	thaw                  *deadline // when it counts as stopped by a signal
}
