// Package settings has the settings of an agent: its program, its rights and limits, and the rules for starts,
// stops and restarts.
package settings

import (
	"context"
	"syscall"
	"time"

	"orchestrator/supervisor/adapter"
	"orchestrator/supervisor/child"
	"orchestrator/supervisor/hosts"
	"orchestrator/supervisor/output"
	"orchestrator/supervisor/stdin"
	"orchestrator/wire"
	"orchestrator/wire/control"
)

// An Agent specifies a program to run, and how to keep it running.
type Agent struct {
	Name  string
	Block string // name of the block, shared by the replicas of one agent
	Place string // position in the configuration file
	control.Profile
	Role      string
	Actor     string   // the actor that gets its mail; "": a worker, a new actor for each run
	Offers    []string // capabilities, in one list
	Names     []string // the capabilities that are only names
	Abilities wire.Raw // a capabilities document, nil for none
	Fixed     bool     // it can report less than Abilities and Capacity, but not more
	Manage    bool     // it manages all tasks over protocol A, as a planner does
	Capacity  int      // tasks at a time; 0: it gets no tasks
	OpenTasks int      // how many tasks that it submitted may be open; 0: any number
	Stored    int64    // bytes that it may store within a day; 0: any number
	RateBytes int64    // of messages a second; 0: any number
	OnExit    string   // how its task goes on when it exits: auto | fail | requeue
	Command   []string
	Wrap      []string // see child.Spec
	Dir       string
	// Environ returns the environment of one start. It runs outside the supervisor's goroutine,
	// so it may read files and block until ctx is done.
	Environ   func(ctx context.Context) ([]string, error)
	Client    Client // of a coding agent
	Raw       bool   // it does not speak the protocol, and gets no messages
	NoStdin   bool
	Pty       bool
	DependsOn []string
	Autostart bool
	MaxLine   int // bytes
	Restart   Restart
	Stop      Stop
	Health    Health
	Mailbox   stdin.Limits
	Limits    child.Limits
	Confine   *child.Confinement // nil: it has the rights of its user
	User      string             // the name of the user whom it runs as; "": the user of this process
	Output    output.Limits
	Placement *hosts.Placement // nil: it runs on this machine
	Wait      bool             // if its host is lost, it waits for that one
}

// Member returns the member for the decisions about an agent.
func (a *Agent) Member() wire.Member {
	return wire.Member{
		ID: a.Name, Role: a.Role, Capabilities: a.Offers, Capacity: a.Capacity, OpenTasks: a.OpenTasks, OnExit: a.OnExit, Deaf: a.Raw || a.NoStdin,
		Names: a.Names, Abilities: a.Abilities, Fixed: a.Fixed, Actor: a.Actor, Manual: !a.Autostart, Manage: a.Manage,
	}
}

// A Client with a protocol makes an agent a coding agent: its program speaks that protocol, and an adapter
// makes it a member of the team.
type Client struct {
	Protocol string // "claude", "codex", "acp", or "" for ours
	WireLog  bool   // the lines of its protocol are kept beside its output
	Resume   bool   // each run goes on with the conversation of the run before
	Opening  adapter.Opening
}

// A Policy determines after which exits an agent is restarted.
type Policy string

// The policies.
const (
	Always    Policy = "always"
	OnFailure Policy = "on-failure"
	Never     Policy = "never"
)

// Restart holds the restart settings of an agent.
type Restart struct {
	Policy     Policy
	Delay      time.Duration // before the first restart
	Factor     float64       // multiplies each further delay
	MaxDelay   time.Duration
	Jitter     float64       // fraction of the delay that is added or subtracted at random
	ResetAfter time.Duration // uptime after which the delay starts at Delay again
	Burst      int           // give up after more restarts than this within Window
	Window     time.Duration
	Permanent  []int // exit codes that another try cannot fix
}

// A StopSequence holds the delays and the signal that stop an agent, in order.
type Stop struct {
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

// An Action is the need of a change of settings while the orchestrator runs.
type Action string

// The actions.
const (
	ActionLive    Action = "live"    // the change takes effect without a stop
	ActionStart   Action = "start"   // the agent is new
	ActionStop    Action = "stop"    // the agent is gone
	ActionRestart Action = "restart" // the agent is drained and started again
	ActionRefused Action = "refused" // the orchestrator itself has to be restarted
)
