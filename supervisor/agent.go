package supervisor

import (
	"cmp"
	"context"
	"syscall"
	"time"

	"orchestrator/supervisor/child"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
)

// Agent says what to run and how to keep it running.
type Agent struct {
	Name        string
	Block       string // what replicas of one agent have in common
	Place       string // where it was written
	Description string
	Role        string
	Actor       string   // the actor as which it has mail; "": a worker, another one with each run
	Offers      []string // capabilities, in one list
	Names       []string // those of them that are nothing else
	Abilities   wire.Raw // a capabilities document, nil for none
	Capacity    int      // tasks at a time; 0: it is given none
	OnExit      string   // what becomes of its task: auto | fail | requeue
	Command     []string
	Dir         string
	// Environ makes the environment, anew for each start and off the
	// supervisor's goroutine: it may read files and wait, as long as ctx lasts.
	Environ   func(ctx context.Context) ([]string, error)
	Raw       bool // it knows no messages: it is told nothing
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

// actor is the actor as which a run has mail.
func (a *Agent) actor(run string) string { return wire.ActorOfRun(cmp.Or(a.Actor, "W"), run) }

// Process is one run of an agent: a child.Child, a connection by which a program
// has joined, or a function in a test.
type Process interface {
	PID() int // 0: it is no process of ours
	StartedAt() time.Time
	Stdin() child.Stdin
	CloseStdin() bool
	Signal(syscall.Signal)
	Kill()
	Unread() int64
	Usage() (cpuMS, rss int64)
}

// StopSequence is how an agent is stopped, rung by rung.
type StopSequence struct {
	CloseStdin time.Duration // after the notice and the end of stdin; the notice promises it
	Unspoken   time.Duration // the same for an agent that has sent no message in this run
	Signal     syscall.Signal
	Grace      time.Duration // after the signal; then the tree is killed
}

// Health says when an agent counts as stalled.
type Health struct {
	Silence      time.Duration // without output; 0: never
	WriteTimeout time.Duration // stdin takes nothing
	Restart      bool          // a stalled agent is restarted, not only marked
}
